"""Faults of the protocol: the pipeline of a plan says what its warps must not do."""

from __future__ import annotations

from .fault import Fault

PIPELINE = "kernels/sm90/pipeline.py"

FAULTS = (
    Fault(
        "empty_parity",
        PIPELINE,
        'steps.Wait("empty", flipped=True, leader=True)',
        'steps.Wait("empty", leader=True)',
        "The producer waits for a release before it has loaded anything: a deadlock.",
    ),
    Fault(
        "empty_count_without_warps",
        PIPELINE,
        'Mbarrier("empty", plan.stage_readers)',
        'Mbarrier("empty", plan.consumers_per_tile)',
        "A stage is empty when one warp of four has read it.",
    ),
    Fault(
        "full_counts_slices",
        PIPELINE,
        'Mbarrier("full", 1)',
        'Mbarrier("full", 2)',
        "A full mbarrier waits for an arrival that never comes.",
    ),
    Fault(
        "bytes_of_whole_operands",
        PIPELINE,
        "bytes = plan.operand_bytes(operand) // operand.slices",
        "bytes = plan.operand_bytes(operand)",
        "In a cluster, more bytes arrive than the full mbarrier expects.",
    ),
    Fault(
        "two_k_tiles_in_flight",
        PIPELINE,
        "steps.MultiplyWait(IN_FLIGHT), _release",
        "steps.MultiplyWait(IN_FLIGHT + 1), _release",
        "A stage is released while wgmmas still read it.",
    ),
    Fault(
        "releases_the_k_tile_in_flight",
        PIPELINE,
        "_release(plan, IN_FLIGHT)\n",
        "_release(plan)\n",
        "A stage is released while wgmmas still read it.",
    ),
    Fault(
        "first_tile_waits_for_a_turn",
        PIPELINE,
        'steps.Sync(f"turn {consumer}", when="later tiles")',
        'steps.Sync(f"turn {consumer}")',
        "Consumer 0 waits for a turn that nobody hands over.",
    ),
    Fault(
        "turn_kept",
        PIPELINE,
        'steps.SyncArrive(f"turn {1 - consumer}"',
        'steps.SyncArrive(f"turn {consumer}"',
        "The other consumer waits for its turn forever.",
    ),
    Fault(
        "turns_share_panel_barriers",
        PIPELINE,
        "return 1 + CONSUMERS + consumer, CONSUMERS * WARPGROUP",
        "return 1 + consumer, CONSUMERS * WARPGROUP",
        "A turn and the panels of a consumer share a named barrier.",
    ),
    Fault(
        "unfinished_sums_stored",
        PIPELINE,
        'finish = steps.MultiplyWait(0), Loop("last k_tile"',
        'finish = steps.MultiplyWait(1), Loop("last k_tile"',
        "C is stored while the last wgmmas still add to it.",
    ),
    Fault(
        "panel_reused_early",
        PIPELINE,
        "steps.StoreWait(plan.pending_stores(store), leader=True)",
        "steps.StoreWait(plan.pending_stores(store) + 1, leader=True)",
        "stmatrix overwrites a panel that TMA has not read yet.",
    ),
    Fault(
        "panel_without_fence",
        PIPELINE,
        "            if tma:\n                program.append(steps.Fence())\n",
        "",
        "TMA may read what the panel held before stmatrix wrote it.",
    ),
    Fault(
        "panel_without_the_second_barrier",
        PIPELINE,
        "program += sync, steps.StorePanel(store, buffer, asynchronous=tma, leader=tma)",
        "program += (steps.StorePanel(store, buffer, asynchronous=tma, leader=tma),)",
        "TMA stores a panel that three of four warps have not written yet.",
    ),
    Fault(
        "ends_before_the_last_store",
        PIPELINE,
        "return (steps.StoreWait(0, leader=True),) if plan.stored_by_tma else ()",
        "return ()",
        "TMA reads shared memory of a block that has ended.",
    ),
    Fault(
        "released_to_the_end",
        PIPELINE,
        '"always" if plan.cluster_size == 1 else "reloaded"',
        '"always"',
        "A block arrives on an mbarrier of a block that may have ended.",
    ),
    Fault(
        "block_barrier_for_a_cluster",
        PIPELINE,
        'steps.ClusterSync() if plan.cluster_size > 1 else steps.Sync("block")',
        'steps.Sync("block")',
        "A slice arrives on an mbarrier of another block that is not initialised.",
    ),
    Fault(
        "single_reloads_without_a_barrier",
        PIPELINE,
        'steps.MultiplyWait(0), steps.Sync("block"), *load',
        "steps.MultiplyWait(0), *load",
        "TMA overwrites a stage that another warp still multiplies.",
    ),
    Fault(
        "reduction_without_a_wait",
        PIPELINE,
        "(steps.GridWait(), steps.Reduce())",
        "(steps.Reduce(),)",
        "The second kernel adds partial sums that are not stored yet.",
    ),
    Fault(
        "a_wait_that_need_not_follow_the_phase_before",
        "kernels/pipeline/decide.py",
        "not order.precedes(before, waiting.before)",
        "not order.precedes(before, waiting.passed)",
        "A wait that passes by the parity of an earlier phase is not found.",
    ),
    Fault(
        "one_tile_boundary_whoever_has_the_turn",
        "kernels/pipeline/decide.py",
        "// k_tiles) + _turns(pipeline)",
        "// k_tiles) + 1",
        "A turn that one of two consumers gives away early is not found.",
    ),
    Fault(
        "no_fence_behind_cp_async",
        "kernels/pipeline/decide.py",
        "steps.WritePanel | steps.CopyAsync)",
        "steps.WritePanel)",
        "wgmma reads what cp.async wrote, and nothing shows it to the async proxy.",
    ),
)
