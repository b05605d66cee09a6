"""What the device code of all families shares.

lower      `cute` objects from the layouts of a plan
tile       tile coordinates, a thread's partition, guarded copies, cp.async
computed   arithmetic that ptxas must not move
launch     the host side of kernels with one tile per block
cards      the cards of the machine, as the driver tells them
occupancy  how many blocks run at once
compiler   the DSL's compiler, for one thread at a time
probe      a kernel of one shared-memory instruction, for ncu
"""
