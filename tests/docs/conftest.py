"""The site, built once for all its tests, and served."""

import functools
import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The built site's folder."""
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", "docs", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="session")
def site(folder):
    """The built site's address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass
