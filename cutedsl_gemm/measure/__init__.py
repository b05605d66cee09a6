"""What is measured, and how it is reported.

bench          gemm beside torch.mm, quack and Triton
  providers, triton_gemm                     those that it compares
  distribution, random_shapes, odd_shapes, batches   many shapes
  decode, gathered                           few rows; several GPUs
  epilogues, layers, experts                 epilogues, also those of batches
  host                                       host time of a call
  accuracy                                   the error of a result, compared with float64
  report, power                              tables, plots and CSV; clock and power
ladder         every rung of the ladder
wavefronts     the bank model beside Nsight Compute's counters
hierarchy      block, warp and thread tiles
demo           the library in one run
"""
