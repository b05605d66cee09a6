"""Faults of keys: two calls, plans or releases that differ are taken for one."""

from __future__ import annotations

from .fault import Fault

CALL = "cutedsl_gemm/calls/call.py"
BUILD = "kernels/compile/build.py"
TUNE = "cutedsl_gemm/select/tune.py"

# The signature of a call without out, and of one with out.
PLAIN = """\
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune, invariant,
            )
        else:
"""
INTO_OUT = """\
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune, invariant, out.stride(), unaligned_out,
"""


def _signature_without(name: str, part: str, harm: str, signature: str = PLAIN) -> Fault:
    left = signature.replace(f" {part},", "", 1)
    return Fault(f"signature_without_{name}", CALL, signature, left, harm)


SIGNATURES = (
    _signature_without(
        "the_dtype", "a.dtype", "bfloat16 runs the plan of float16, and is refused or read as it."
    ),
    _signature_without(
        "the_shape_of_b", "b.shape", "A product of other columns is stored in too small a result."
    ),
    _signature_without(
        "the_strides_of_b", "b.stride()", "A column-major b runs the plan of a row-major one."
    ),
    _signature_without(
        "the_device", "a.get_device()", "A tensor of one GPU is launched on another, or on the CPU."
    ),
    _signature_without("the_tile", "tile", "A call with a tile runs the one before it."),
    _signature_without("the_kernel", "kernel", "A call with a kernel runs the one before it."),
    _signature_without("tune", "tune", "A call with tune=True measures nothing."),
    _signature_without("invariant", "invariant", "A call with invariant=True sums in any order."),
    _signature_without(
        "the_strides_of_out",
        "out.stride()",
        "A column-major out runs the plan of a row-major one.",
        INTO_OUT,
    ),
    _signature_without(
        "the_alignment_of_out",
        "unaligned_out",
        "A call on copies runs itself again, without end.",
        INTO_OUT,
    ),
    _signature_without(
        "the_tile_into_out", "tile", "A call with a tile runs the one before it.", INTO_OUT
    ),
)

FILES = (
    Fault(
        "key_without_the_plan",
        BUILD,
        "_digest(repr(plan), arch,",
        "_digest(plan.name, arch,",
        "A plan runs the kernel of another plan with the same name.",
    ),
    Fault(
        "key_without_the_architecture",
        BUILD,
        "repr(plan), arch, platform",
        "repr(plan), platform",
        "An A100 is given the code of a Hopper, or vice versa.",
    ),
    Fault(
        "key_without_the_host",
        BUILD,
        "arch, platform.machine(), _source()",
        "arch, _source()",
        "A folder that both use gives an Arm host the library of an x86 one.",
    ),
    Fault(
        "key_without_the_source",
        BUILD,
        "platform.machine(), _source(), *_tools())",
        "platform.machine(), *_tools())",
        "Kernels of an older release run after an update.",
    ),
    Fault(
        "source_without_layouts",
        BUILD,
        "for package in (Path(layouts.__file__).parent, Path(__file__).parents[1]):",
        "for package in (Path(__file__).parents[1],):",
        "Kernels from an older layout algebra run after an update.",
    ),
    Fault(
        "source_of_the_compiler_alone",
        BUILD,
        "Path(__file__).parents[1]):",
        "Path(__file__).parents[0]):",
        "Kernels of an older release run after an update.",
    ),
    Fault(
        "key_without_the_tools",
        BUILD,
        "platform.machine(), _source(), *_tools())",
        "platform.machine(), _source())",
        "A library runs under another DSL than it was made for.",
    ),
    Fault(
        "release_without_the_source",
        BUILD,
        "return _digest(_source(), *_tools())",
        "return _digest(*_tools())",
        "Winners that an older release measured are taken for this one's.",
    ),
    Fault(
        "damaged_entries_are_used",
        "kernels/compile/cache.py",
        'if path.name == f"{key}.{_digest(path)}.so":',
        "if path.name:",
        "Half a library is loaded after a disk was full.",
    ),
    Fault(
        "an_entry_made_twice",
        "kernels/compile/cache.py",
        "    with lock(key):\n        if (path := _intact(key)) is not None:\n"
        "            return path\n",
        "    with lock(key):\n",
        "Every process that waited for a kernel compiles it again.",
    ),
    Fault(
        "tuned_for_any_dtype",
        TUNE,
        "{problem.dtype} {'-'.join",
        "{'-'.join",
        "float16 takes what was measured for bfloat16.",
    ),
    Fault(
        "tuned_for_any_major",
        TUNE,
        "{'-'.join(problem.majors)} rows",
        "rows",
        "Column-major operands take what was measured for row-major ones.",
    ),
    Fault(
        "tuned_invariant_or_not",
        TUNE,
        "{of_c}{invariant}{fused}",
        "{of_c}{fused}",
        "invariant=True may take a plan that splits K.",
    ),
    Fault(
        "tuned_on_any_device",
        TUNE,
        "known.setdefault(device, {})[shape]",
        'known.setdefault("GPU", {})[shape]',
        "Winners are stored under another name than they are looked up.",
    ),
    Fault(
        "occupancy_of_small_blocks",
        "kernels/device/occupancy.py",
        "plan.cluster_size, plan.smem_bytes)",
        "plan.cluster_size, 1024)",
        "More clusters are launched than run at once: the last ones take a wave of their own.",
    ),
    Fault(
        "tuned_without_invariance",
        "cutedsl_gemm/select/tune.py",
        'invariant = " invariant" if problem.invariant else ""',
        'invariant = ""',
        "A tuned product that must be invariant takes a plan that is not.",
    ),
    Fault(
        "tuned_for_any_rows",
        TUNE,
        " rows {rows}{of_c}",
        "",
        "Rows off 128-byte lines take the plan that was measured for rows on lines.",
    ),
    Fault(
        "stored_plan_unchecked",
        "cutedsl_gemm/select/tune.py",
        "        _plan(problem, entry)\n    except",
        "    except",
        "A stored plan that cannot serve the problem raises in gemm.",
    ),
    Fault(
        "release_without_tools",
        "kernels/compile/build.py",
        "    return _digest(_source(), *_tools())",
        "    return _digest(_source())",
        "Plans tuned with another DSL stay chosen.",
    ),
    Fault(
        "damaged_entry_stays",
        "kernels/compile/cache.py",
        "            damaged.unlink(missing_ok=True)\n",
        "            pass\n",
        "Damaged libraries fill the disk.",
    ),
)

FAULTS = SIGNATURES + FILES
