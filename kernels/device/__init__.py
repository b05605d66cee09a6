"""What the device code of all families shares.

lower      `cute` objects from the layouts of a plan
tile       tile coordinates, a thread's partition, guarded copies, cp.async
words      words of several elements that lie between aligned ones
opaque     a condition that ptxas cannot decide, and the wait for the previous launch
flags      flags and counts between GPUs
smem       the DSL's allocator of shared memory
epilogue, tile_epilogue    an epilogue in device code: its tensors over C, and that of a tile
launch     the host side of kernels with one tile per block
allocation new tensors, in half the time of `new_empty`
cards      the cards of the machine, as the driver tells them
occupancy  how many blocks run at once
compiler   the DSL's compiler, for one thread at a time
probe      a kernel of one shared-memory instruction, for ncu
"""
