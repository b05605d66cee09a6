"""Statements about layouts, decided for all indices with a certificate or a counterexample.

Read `prove` first.  Each kind of statement has a file of its own:

    prove          `prove`, and what a proof and a statement are
    injective      a layout is injective
    bijective      a layout is a bijection onto a range of offsets
    equivalence    two layouts are the same function
    laws           the laws of composition, inverses, complement, divide and product
    copies         a layout and copies of it, as one function
    law_bases      what these laws have in common
    postcondition  what an operation promises of its result, as such a statement
    theorems       theorems about all swizzles
    agreement      how it is decided that two chains of functions agree
    digits         a chain read digit by digit, with every step recorded
    certificates   what remains to be checked, and the independent checker"""
