"""The site, built once for the tests of all workers, and served.

The variable DOCS_SITE may name the folder of a site that `make docs` has just built, as in CI.
"""

import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The built site's folder. The first worker builds it; the others wait for its lock."""
    if built := os.environ.get("DOCS_SITE"):
        return Path(built)
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of the workers' own folders
    built = shared / "site"
    with FileLock(shared / "site.lock"):
        if not built.exists():
            draft = shared / "site.draft"
            build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", "docs", str(draft)]
            subprocess.run(build, cwd=ROOT, check=True)
            draft.rename(built)
    return built


@pytest.fixture(scope="session")
def site(folder):
    """The built site's address."""
    with served(folder, Quiet) as address:
        yield address


@pytest.fixture
def site_without_snapshots(folder):
    """The address of the site where it lacks the snapshots of Python's memory."""
    with served(folder, WithoutSnapshots) as address:
        yield address


@contextlib.contextmanager
def served(folder, handler):
    handler = functools.partial(handler, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    """A browser of the module's own, which may reach only this machine."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="the docs extra is not installed")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as opened:
        yield opened


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *arguments):
        """A browser that leaves a page ends its requests."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class WithoutSnapshots(Quiet):
    def translate_path(self, path):
        return super().translate_path(path.replace(".bin.gz", ".missing"))
