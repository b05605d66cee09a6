"""The tests of this folder share the modules `SHARED`, which are here, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

SHARED = "epilogues", "family", "on_gpu", "sanitized"
collect_ignore = [f"{name}.py" for name in SHARED]  # which have no doctests
