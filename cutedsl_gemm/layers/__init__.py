"""Layers of networks, each as one product or two.

functions     linear, addmm, swiglu, geglu
mlp           two layers, whose derivatives are epilogues, too
linear_calls  linear without an activation, as a remembered call
hooks         whether a module computes what its class says
activations   the epilogues of activations and gates
"""
