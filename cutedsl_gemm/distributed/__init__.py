"""Products over several GPUs, on torch.distributed.

symmetric       memory that every rank of a group can address
collectives     all-gather → product and product → reduce-scatter
sharding        the sharding rules of DTensor for the operators
sharded_linear  linear of DTensors without an operator, where no communication is needed
"""
