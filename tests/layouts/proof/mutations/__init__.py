"""Forged proofs: true ones with anything in them changed, which `verify` must not accept if false.

python -m tests.layouts.proof.mutations --cases 100000 --seed 1

statements   random statements about small layouts of every kind
truth        whether a statement holds, and whether a counterexample is one, by brute force
mutate       a proof with a number, a tuple, a type or a part of it changed
__main__     many forgeries, and what became of them
"""
