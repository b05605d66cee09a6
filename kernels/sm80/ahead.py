"""sm80 GEMM that loads ahead twice: serves `ahead` and the rungs above it.

    cp.async   │ k-block b + stages - 1 asked for │ …                    global ▶ shared memory
    ldmatrix   │ step 1 │ step 2 │ step 3 ┃ step 0 of b + 1 │ …          shared memory ▶ registers
    mma        │ step 0 │ step 1 │ step 2 ┃ step 3          │ …

The barrier ┃ of a k-block stands before its last step: behind it the next block's bytes are there
for all, this block's have been read by all, and the warps still have a step to multiply.
"""

from cutedsl_gemm.kernels.sm80.multistage import Multistage


class Ahead(Multistage):
    """The same kernel with every step's fragments loaded while the step before is multiplied."""

    def start(self, fetch):
        """The fragments of the first step."""
        self.wait()
        fetch(0, 0)

    def round(self, block, fetch, multiply, ask, whole):
        """One k-block, and the request for the one `stages - 1` behind it."""
        stages, last = self.plan.stages, self.plan.steps - 1
        for step in range(last):
            fetch(step + 1, block % stages)
            if step == 0:
                ask(block + stages - 1, whole)
            multiply(step)
        self.wait()
        fetch(0, (block + 1) % stages)
        multiply(last)
