"""Faults between a call and its kernel: what a run does with tensors, devices and memory."""

from __future__ import annotations

from .fault import Fault

CALL = "cutedsl_gemm/calls/call.py"
RUN = "cutedsl_gemm/calls/run.py"
ON_DEVICE = "cutedsl_gemm/calls/on_device.py"
BUILD = "kernels/compile/build.py"

FAULTS = (
    Fault(
        "copy_of_rows_that_are_apart",
        "cutedsl_gemm/calls/copies.py",
        "return batch.stride(0) == rows * batch.stride(1)",
        "return True",
        "The aligned copy of a batch has rows of the first matrix in all others.",
    ),
    Fault(
        "out_not_transposed",
        RUN,
        "run(b.mT, a.mT, out.mT)",
        "run(b.mT, a.mT, out)",
        "A column-major out receives the transposed result.",
    ),
    Fault(
        "launched_on_the_current_device",
        ON_DEVICE,
        "        with torch.cuda.device(device):\n            return call(*arguments)\n",
        "        return call(*arguments)\n",
        "Tensors of the second GPU are multiplied on the stream of the first.",
    ),
    Fault(
        "one_device_assumed",
        ON_DEVICE,
        "    return call_on_device",
        "    return call",
        "Tensors of the second GPU are multiplied on the stream of the first.",
    ),
    Fault(
        "negative_bit_ignored",
        RUN,
        "launch_checked(a.resolve_neg(), b.resolve_neg(), out)",
        "launch_checked(a, b.resolve_neg(), out)",
        "The imaginary half of a conjugate is multiplied with the wrong sign.",
    ),
    Fault(
        "padded_result_not_copied",
        RUN,
        "        run(a, b, padded)\n        copy((padded, out))\n",
        "        run(a, b, padded)\n",
        "A result that the kernel cannot store in place is lost.",
    ),
    Fault(
        "one_multiprocessor",
        RUN,
        "build.load(plan, arch), multiprocessors(device, plan)",
        "build.load(plan, arch), 1",
        "One multiprocessor computes every tile.",
    ),
    Fault(
        "workspace_of_ct",
        BUILD,
        "workspace(a.device, a.shape[0], b.shape[-1])",
        "workspace(a.device, b.shape[-1], a.shape[0])",
        "Partial sums of a wide C are written behind the workspace.",
    ),
    Fault(
        "compiled_during_a_capture",
        BUILD,
        "    if capturing():\n        raise RuntimeError(\n            f",
        "    if False:\n        raise RuntimeError(\n            f",
        "The compile ends the capture of a CUDA graph, with an error of the driver.",
    ),
    Fault(
        "two_threads_compile",
        "kernels/device/compiler.py",
        "DSL_LOCK = threading.RLock()",
        "DSL_LOCK = threading.Semaphore(99)",
        "Two threads that compile at once end the process.",
    ),
    Fault(
        "empty_product_not_zeroed",
        CALL,
        "return a.new_zeros(*a.shape[:-1], b.shape[-1])",
        "return a.new_empty(*a.shape[:-1], b.shape[-1])",
        "A product with K = 0 is whatever the memory held.",
    ),
    Fault(
        "null_b_is_launched",
        CALL,
        "if not (a.data_ptr() and b.data_ptr()):",
        "if not a.data_ptr():",
        "A kernel reads a fake tensor's null pointer.",
    ),
    Fault(
        "version_of_out_stays",
        CALL,
        "            torch.autograd.graph.increment_version(out)\n",
        "",
        "autograd uses a saved tensor that has been overwritten.",
    ),
    Fault(
        "unaligned_out_not_staged",
        CALL,
        "unaligned_out = out is not None and not aligned(out, requirements)",
        "unaligned_out = False",
        "A product on copies into an unaligned out is refused, or called again without end.",
    ),
    Fault(
        "rows_of_a_copy_overlap",
        "cutedsl_gemm/calls/copies.py",
        "if pair[0].stride(1) == pair[1].stride(1) == 1 and disjoint_rows:",
        "if pair[0].stride(1) == pair[1].stride(1) == 1:",
        "Rows of a target that overlap are written in any order.",
    ),
    Fault(
        "overlap_on_older_gpus",
        "cutedsl_gemm/calls/copies.py",
        "overlap=capability >= OVERLAP",
        "overlap=capability <= OVERLAP",
        "On an A100 the copy is compiled with an instruction of sm_90.",
    ),
)
