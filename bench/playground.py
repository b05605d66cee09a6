"""How long a reader of the playground waits.

    make docs && python bench/playground.py [SITE] [--repeats 5]

It opens the playground of a built site in headless Chromium, types, and prints the least and the
median of several waits in seconds, with the CPU time of the browser; the machine should be idle.
The targets are 3 s from opening to an answer, 1 s from the last key, and 5 s to the first symbol.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PATIENCE = 90  # seconds

#: What is typed where Python runs already.
TYPED = (
    "(4,8):(8,1)",
    "composition((6,2):(8,2), (4,3):(3,1))",
    "compare(naive=(8,64):(64,1), padded=(8,64):(72,1), swizzled=S<3,3,3> o 0 o (8,64):(64,1))",
    'mma("m16n8k16", "bf16")',
    'banks(S<3,3,3> o 0 o (8,64):(64,1), "ldmatrix.x1", lanes=8:1)',
    "(64,64):(64,1)",
)
SYMBOLIC = "prove(Injective((8*m,n):(n,1)))"
ENDLESS = "table((9999,9999):(9999,1), limit=None)"

TYPE = """
document.body.dataset.ready = "";
fields.expression.value = arguments[0];
fields.expression.dispatchEvent(new Event("input"));
"""
READY = "return document.body.dataset.ready"


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a site."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/playground.html"
        server.shutdown()


class Page:
    """The playground in a browser of its own, whose caches are empty."""

    def __init__(self, address: str) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(argument)
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options=options, service=service)
        self.address, self.driver = address, service.process.pid

    def wait(self, script: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.browser.execute_script(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.01)

    def open(self, expression: str = "") -> None:
        self.browser.get(self.address + (f"#{quote(expression, safe='')}" if expression else ""))
        self.wait("return document.body.dataset.started")

    def type(self, expression: str) -> None:
        self.browser.execute_script(TYPE, expression)
        self.wait(READY)

    def cpu(self) -> float:
        """Seconds of CPU of the browser's processes."""
        tree, ticks = {self.driver}, 0
        for process in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
            try:
                stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if process in tree or int(stat[1]) in tree:  # a child is younger than its parent
                tree.add(process)
                ticks += int(stat[11]) + int(stat[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def waits(address: str) -> dict[str, tuple[float, float]]:
    """Each wait, and the CPU time of the browser meanwhile, both in seconds."""
    found: dict[str, tuple[float, float]] = {}
    page = Page(address)

    def measure(name: str, call: Callable[..., None], *arguments: str) -> None:
        start, cpu = time.monotonic(), page.cpu()
        call(*arguments)
        found[name] = time.monotonic() - start, page.cpu() - cpu

    try:
        measure("open → Python's answer", page.open)
        page.wait("return pythons.sympy.ready")
        for expression in TYPED:
            measure(f"last key → {expression}", page.type, expression)
        measure(f"last key → {SYMBOLIC}", page.type, SYMBOLIC)
        page.browser.execute_script(TYPE, ENDLESS)
        page.wait("return pythons.layouts.running")
        measure("last key, in the place of an endless question", page.type, TYPED[0])
        page.browser.get("about:blank")
        measure("open a link with symbols → answer", page.open, SYMBOLIC)
    finally:
        page.browser.quit()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("site", nargs="?", type=Path, default=SITE)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with served(options.site) as address:
        runs = [waits(address) for _ in range(options.repeats)]
    table = Table("wait", "least s", "median s", "CPU s", box=None)
    for name in runs[0]:
        seconds = [run[name][0] for run in runs]
        cpu = min(run[name][1] for run in runs)
        table.add_row(
            name, f"{min(seconds):.2f}", f"{statistics.median(seconds):.2f}", f"{cpu:.1f}"
        )
    Console(width=120).print(table)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
