"""What a call does, found once for each signature: copies, the launch, the result's memory.

call        gemm(a, b)
fused       gemm(a, b, epilogue=…)
signature   what a call with an epilogue depends on
results     the tensors that a call returns
run         the launch of a plan, on a GPU or through its executor
copies      matrices to and from rows that TMA reads
on_device   a call with its device as the current one
"""
