"""sm80 GEMM with a second pipeline, in registers: serves `ahead` and the rungs above it.

    cp.async   │ k-tile b + stages - 1  │ …                          global ▶ shared memory
    ldmatrix   │ step 1 │ step 2 │ step 3 ┃ step 0 of b + 1 │ …      shared memory ▶ registers
    mma        │ step 0 │ step 1 │ step 2 ┃ step 3          │ …

The barrier ┃ of a k-tile comes before its last step. After it, the next k-tile is visible to all
threads, all have read this one, and the warps still have a step to multiply.
"""

from cutedsl_gemm.kernels.sm80.multistage import Multistage


class RegisterPipeline(Multistage):
    """The same kernel, in which a step's fragments are loaded while the step before multiplies."""

    def prologue(self, load_fragments):
        """Load the fragments of the first step."""
        self.wait()
        load_fragments(0, 0)

    def round(self, k_tile, load_fragments, multiply, load, whole):
        """Multiply one k-tile; load the one `stages - 1` after it."""
        stages, last = self.plan.stages, self.plan.steps - 1
        for step in range(last):
            load_fragments(step + 1, k_tile % stages)
            if step == 0:
                load(k_tile + stages - 1, whole)
            multiply(step)
        self.wait()
        load_fragments(0, (k_tile + 1) % stages)
        multiply(last)
