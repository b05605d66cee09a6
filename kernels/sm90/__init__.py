"""The sm90 family (TMA, wgmma, warp specialization): plans, device code, executor."""
