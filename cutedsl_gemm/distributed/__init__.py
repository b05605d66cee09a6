"""Products over several GPUs, on torch.distributed.

symmetric       memory that every rank of a group can address
overlap         what products that overlap with a collective share
all_gather      all-gather → product
reduce_scatter  product → reduce-scatter
collectives     both as functions, with their derivatives, and as operators
sharding        the sharding rules of DTensor for the operators
sharded_linear  linear of DTensors without an operator, where no communication is needed
"""
