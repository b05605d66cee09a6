"""From a plan to a callable: compile, cache on disk, load, read the machine code."""
