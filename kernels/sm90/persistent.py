"""Persistent sm90 GEMMs: as many blocks as run at once, each walking tile after tile.

When   block 0   │ tile 0 │ tile G     │ tile 2G     │ …     G blocks (clusters of them)
       block 1   │ tile 1 │ tile G + 1 │ tile 2G + 1 │ …     the raster says which tile is where
"""

import cutlass.cute as cute

from cutedsl_gemm.kernels.sm90.epilogue import PanelGemm


class PersistentGemm(PanelGemm):
    """The consumers and a producer walk the tiles; subclasses say how the consumers share them."""

    def grid_size(self, tiles, sms):
        """As few blocks as need the same number of waves.

        Blocks that would idle in the last wave only take power and L2 from the others: without them
        it is 1.01 to 1.05 times as fast (docs/performance).
        """
        size = self.plan.cluster_size
        return cute.ceil_div(tiles, cute.ceil_div(tiles, sms // size)) * size
