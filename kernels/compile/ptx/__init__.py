"""PTX: what each thread of a compiled kernel does, found by running it on the CPU.

reader      the text of a module as kernels and instructions
translate   a kernel as a Python function of one thread
machine     trace: runs one thread of a launch, and lists its events
events      the events: barriers, TMA, wgmma, stores, with their values
plans       launches: a plan's kernels with the arguments of a problem

What a thread of the first consumer does, step by step (needs the DSL, no GPU):

    from cutedsl_gemm.kernels.compile.ptx.machine import trace
    from cutedsl_gemm.kernels.compile.ptx.plans import launches
    from cutedsl_gemm.kernels.sm90.rungs import pingpong

    (launch,) = launches(pingpong(), 512, 512, 256)
    for event in trace(launch, block=0, blocks=16, thread=128):
        print(event)

The control flow of a thread depends on no other thread: a wait only blocks. So the list is what the
thread does on a GPU, in program order, whatever the others do.
"""
