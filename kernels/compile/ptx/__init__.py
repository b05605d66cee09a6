"""PTX: what each thread of a compiled kernel does, found by running it on the CPU.

reader      the text of a module as kernels and instructions
translate   a kernel as a Python function of one thread
machine     trace: runs one thread of a launch, and lists its events
arguments   what a launch passes: tensors and tensor maps
events      the events: barriers, TMA, wgmma, stores, with their values

The control flow of a thread depends on no other thread: a wait only blocks. So the list is what the
thread does on a GPU, in program order, whatever the others do. `kernels/sm90/launches.py` makes the
launches of a plan, and has an example.
"""
