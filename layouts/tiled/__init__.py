"""Layouts with data, cut among threads: C++ CuTe's tensors, tiled copies and tiled MMAs.

Read in this order; each file imports from those above it only:

    tensor        a layout with data: elements, slices, tiles
    thread_value  (thread, value) → element: made, and sliced at a thread
    copy_atom     what one copy instruction moves between threads
    tiled_mma     a matrix instruction over threads and a tile
    tiled_copy    a copy instruction over threads and a tile
    algorithm     copy and gemm, executed as the instructions would
"""
