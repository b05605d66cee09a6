"""What all plans share: checks, raster, thread partition, TMA boxes, memory report."""
