"""The tests of this folder share `on_gpu`, `family` and `sanitized`, which are here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["on_gpu.py", "family.py", "sanitized.py"]  # which have no doctests
