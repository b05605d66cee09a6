"""Faults of products over several GPUs: a placement that is not the result's, data too early."""

from __future__ import annotations

from .fault import Fault

LINEAR = "cutedsl_gemm/distributed/sharded_linear.py"
RULES = "cutedsl_gemm/distributed/sharding.py"
COLLECTIVES = "cutedsl_gemm/distributed/collectives.py"
OVERLAP = "cutedsl_gemm/distributed/overlap.py"
GATHER = "cutedsl_gemm/distributed/all_gather.py"
SCATTER = "cutedsl_gemm/distributed/reduce_scatter.py"
BUFFER = "cutedsl_gemm/distributed/symmetric.py"

FAULTS = (
    Fault(
        "batch_shares_its_operands",
        "cutedsl_gemm/distributed/sharding.py",
        "own = operand.tensor_modes",
        "own = operand.modes",
        "Ranks that have some matrices of a batch add the biases of all.",
    ),
    Fault(
        "batch_k_of_a_matrix",
        RULES,
        'a, b = f"{of_batch}MK", f"{of_batch}KN"',
        'a, b = "MK", f"{of_batch}KN"',
        "Each rank multiplies rows of a batch by columns that belong to others.",
    ),
    Fault(
        "k_divided_in_x_alone",
        LINEAR,
        "if kinds == (Shard, Replicate) and x != Shard(last):",
        "if kinds == (Shard, Replicate):",
        "Each rank multiplies its columns of x by all of the weight.",
    ),
    Fault(
        "bias_placed_anywhere",
        LINEAR,
        "    if has_bias and bias != (weight if kinds[1] is Shard else replica):\n"
        "        return None\n",
        "",
        "A shard of the bias is added to columns of another rank.",
    ),
    Fault(
        "gradient_not_summed",
        LINEAR,
        "return x, x, x, Partial()",
        "return x, x, x, replica",
        "Each rank's weight learns from its own tokens alone.",
    ),
    Fault(
        "gradient_as_it_comes",
        LINEAR,
        "        if grad.placements != layout.grad:\n"
        "            grad = grad.redistribute(placements=layout.grad)\n",
        "",
        "A replicated gradient is multiplied as if it were a shard.",
    ),
    Fault(
        "shards_in_any_order",
        LINEAR,
        "if any(each.mesh != x.mesh or not _in_default_order(each) for each in given):",
        "if any(each.mesh != x.mesh for each in given):",
        "The columns of a weight that two dimensions of the mesh divide come in another order.",
    ),
    Fault(
        "data_not_awaited",
        LINEAR,
        "return local.wait() if isinstance(local, AsyncCollectiveTensor) else local",
        "return local.elem if isinstance(local, AsyncCollectiveTensor) else local",
        "A product reads what a collective has not written yet.",
    ),
    Fault(
        "invariant_sums_over_ranks",
        RULES,
        "    if invariant:  # the bits of a sum over ranks depend on their number\n",
        "    if False:\n",
        "The bits of a product with invariant=True depend on the number of ranks.",
    ),
    Fault(
        "extrema_of_nothing",
        RULES,
        "    if not even:\n",
        "    if False:\n",
        "A rank without rows takes part in a maximum.",
    ),
    Fault(
        "products_of_partial_sums",
        RULES,
        "            return first + second\n",
        "            return max(first, second)\n",
        "An epilogue that squares a sum squares each rank's part of it.",
    ),
    Fault(
        "divided_by_a_partial_sum",
        RULES,
        '        case "div", (first, 0):\n',
        '        case "div", (first, _):\n',
        "An epilogue divides by each rank's part of a sum.",
    ),
    Fault(
        "sums_of_unlike_degrees",
        RULES,
        "return first if first == second else None",
        "return first",
        "An epilogue adds a constant to each rank's part of a sum.",
    ),
    Fault(
        "gate_without_value",
        RULES,
        "each.is_replicate() or each.is_partial() or each == Shard(1)",
        "True",
        "A rank with the gate's rows, and not the value's, multiplies one by the other.",
    ),
    Fault(
        "own_rows_from_the_buffer",
        GATHER,
        "    copy(stream, target + first, a.data_ptr(), each)\n",
        "    copy(stream, target + first, source + first, each)\n",
        "The gradient of b is made of rows that this rank never wrote.",
    ),
    Fault(
        "views_of_a_freed_buffer",
        BUFFER,
        "        self.prepared.clear()\n",
        "",
        "A call after a larger one writes into memory that is gone.",
    ),
    Fault(
        "rows_of_another_alignment",
        OVERLAP,
        "return a.shape, a.stride(), a.dtype, b.shape, b.stride(), b.dtype, b.device, addresses",
        "return a.shape, a.stride(), a.dtype, b.shape, b.stride(), b.dtype, b.device",
        "TMA faults on a b whose address is odd after one whose address is not.",
    ),
    Fault(
        "flag_before_the_rows",
        GATHER,
        "        copy(buffer.copy_stream, there, a.data_ptr(), a.nbytes)\n"
        "        write_flag(buffer.copy_stream, flag, epoch)\n",
        "        write_flag(buffer.copy_stream, flag, epoch)\n"
        "        copy(buffer.copy_stream, there, a.data_ptr(), a.nbytes)\n",
        "Another rank multiplies rows that have not come.",
    ),
    Fault(
        "no_barrier_before_the_rows",
        GATHER,
        "    buffer.barrier()\n    buffer.copy_stream_waits_for(stream)\n",
        "    buffer.copy_stream_waits_for(stream)\n",
        "Rows are overwritten while the call before multiplies them.",
    ),
    Fault(
        "gathered_in_a_graph",
        OVERLAP,
        "default_kernel(a.device).name == DEFAULT and not _captured(a)",
        "default_kernel(a.device).name == DEFAULT",
        "A replayed graph waits for the epoch of its capture, and does not wait at all.",
    ),
    Fault(
        "tiles_of_two_ranks",
        OVERLAP,
        "if height % (each.tile[0] * each.cluster[0]) == 0]",
        "if height]",
        "A tile waits for the flag of one of the two ranks that send its rows.",
    ),
    Fault(
        "pieces_by_plan",
        SCATTER,
        "    raster = Raster(PIECE_ROWS // plan.cluster_tile[0])\n",
        "    raster = plan.raster\n",
        "A rank waits for the flag of other rows than another rank has sent.",
    ),
    Fault(
        "sent_before_it_is_stored",
        SCATTER,
        "call.calls * piece.elements)",
        "0)",
        "Copy engines send what the kernel has not stored.",
    ),
    Fault(
        "counts_of_one_call",
        SCATTER,
        "call.calls * piece.elements",
        "piece.elements",
        "The second call of a shape sends what the first has counted.",
    ),
    Fault(
        "flag_before_the_piece",
        SCATTER,
        "        copy(buffer.copy_stream, each.there, first + each.first, each.bytes)\n"
        "        for piece in each.pieces:\n"
        "            write_flag(buffer.copy_stream, piece.flag, epoch)\n",
        "        for piece in each.pieces:\n"
        "            write_flag(buffer.copy_stream, piece.flag, epoch)\n"
        "        copy(buffer.copy_stream, each.there, first + each.first, each.bytes)\n",
        "Another rank adds a part that has not come.",
    ),
    Fault(
        "no_barrier_before_the_parts",
        SCATTER,
        "    buffer.barrier()\n    call.launch(a, b, call.parts",
        "    call.launch(a, b, call.parts",
        "Parts are overwritten while the call before adds them.",
    ),
    Fault(
        "gradient_of_the_gathered_rows_alone",
        COLLECTIVES,
        "of_b = product_like(b, _product, rows[0].mT, grad) if rows else None",
        "of_b = product_like(b, _product, rows[0].mT[:, :8], grad[:8]) if rows else None",
        "The gradient of b is that of this rank's rows.",
    ),
    Fault(
        "epoch_never_wraps",
        BUFFER,
        "self.epoch = (self.epoch + 1 + 2**31) % 2**32 - 2**31",
        "self.epoch += 1",
        "After two billion calls an epoch does not fit into a flag.",
    ),
)
