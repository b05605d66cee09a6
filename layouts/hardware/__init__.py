"""What the hardware does with layouts.

Read in this order; each file imports from those above it only:

    facts            warps, banks, sectors: the numbers and their sources
    instructions     the shared-memory instructions: lanes, width, phases
    byte_addresses   lanes to byte addresses
    wavefronts       how many wavefronts an access to shared memory takes
    conflict_free    the statement that it takes one per phase, and its certificate
    sectors          how many sectors an access to global memory moves
    fragment         a matrix over the threads that hold it, and instructions that draw theirs
    atoms            fragments: thread-value layouts of wgmma, mma, ldmatrix, stmatrix
    tensor_memory    fragments of tcgen05, and the accumulator in tensor memory
    mfma             fragments of AMD's matrix instructions
    lane_addresses   the row address that each lane supplies to ldmatrix or stmatrix
    banks            an instruction on a tile: which address each lane supplies, and the wavefronts
    padding          the padding that frees accesses of conflicts
    no_swizzle       the statement that no swizzle does, and its certificate
    synthesis        the smallest swizzle that does
    stmatrix_report  the accumulator staged by stmatrix: naive, padded, swizzled
    descriptor       the matrix descriptor of wgmma and its canonical layouts"""
