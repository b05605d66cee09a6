"""python -m tests.peers fetch [--from FOLDER]; python -m tests.peers [SUITE ...] [--all]"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .sources import COMMAND, SOURCES, fetch
from .suites import SUITES, Result


def main() -> int:
    """Fetch, or run; 1 if a case fails that is not among those that differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"fetch, or some of {', '.join(SUITES)}")
    parser.add_argument("--from", dest="mirror", type=Path, help="a folder of git directories")
    options = parser.parse_args()
    if options.suites == ["fetch"]:
        for source in SOURCES:
            fetch(source, options.mirror)
            print(f"{source.repository} {source.commit[:10]} is in {source.folder}")
        return 0
    results = []
    for name in options.suites or SUITES:
        if not SUITES[name].source.is_fetched:
            print(f"{name}: {SUITES[name].source.repository} is not here; {COMMAND}")
            continue
        results.append(Result(name))
        print(results[-1])
    return 1 if any(result.unexpected for result in results) else 0


sys.exit(main())
