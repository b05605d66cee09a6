"""An entry is made once, rebuilt when damaged, and safe to share between processes."""

import errno
import platform
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock

import layouts
from cutedsl_gemm.kernels.compile import build, cache, library
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.rungs import pingpong


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def maker(calls):
    def make(path):
        calls.append(path)
        path.write_bytes(b"object code")

    return make


def test_an_entry_is_made_once_and_found_again():
    calls = []
    first, second = cache.entry("key", maker(calls)), cache.entry("key", maker(calls))
    assert first == second
    assert first.read_bytes() == b"object code"
    assert len(calls) == 1


@pytest.mark.parametrize("damage", [b"", b"object", b"object kode"])
def test_a_damaged_entry_is_rebuilt(damage):
    calls = []
    cache.entry("key", maker(calls)).write_bytes(damage)
    assert cache.entry("key", maker(calls)).read_bytes() == b"object code"
    assert len(calls) == 2


def test_a_damaged_entry_is_deleted(folder):
    """Its name has the digest of its bytes: if the new ones differ, it would stay for ever."""
    cache.entry("key", maker([])).write_bytes(b"damaged")
    made = cache.entry("key", lambda path: path.write_bytes(b"other code"))
    assert [*folder.glob("*.so")] == [made]


def test_an_entry_that_cannot_be_read_is_made_again(folder):
    folder.mkdir()
    (folder / "key.0123456789abcdef.so").symlink_to(folder / "nowhere")
    assert cache.entry("key", maker([])).read_bytes() == b"object code"
    assert len([*folder.glob("key.*.so")]) == 1


def test_a_folder_below_one_that_cannot_be_entered_has_no_entries(folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "glob", refuse)
    assert cache.entries() == []
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(cache.CacheError, match=r"\(Permission denied\); set"):
        cache.entry("key", maker([]))


def test_a_full_disk_is_told_of_the_variable(folder):
    def fail(path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(cache.CacheError, match=r"\(No space left on device\); set"):
        cache.entry("key", fail)
    assert not [*folder.iterdir()]


def test_a_failed_make_leaves_no_entry(folder):
    def fail(path):
        path.write_bytes(b"half")
        raise RuntimeError("compiler")

    with pytest.raises(RuntimeError, match="compiler"):
        cache.entry("key", fail)
    assert not list(folder.glob("*.so"))
    assert cache.entry("key", maker([])).read_bytes() == b"object code"


RACE = """
import sys, time
from cutedsl_gemm.kernels.compile import cache

def make(path):
    print("made", flush=True)
    time.sleep(0.3)
    path.write_bytes(b"object code")

assert cache.entry("key", make).read_bytes() == b"object code"
"""


def test_processes_that_race_make_one_entry():
    runs = [
        subprocess.Popen([sys.executable, "-c", RACE], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert "".join(printed).count("made") == 1


def test_what_changes_the_code_changes_the_key(monkeypatch):
    plan = pingpong()
    keys = {
        build.key(plan),
        build.key(pingpong(b_major="MN")),
        build.key(pingpong(raster=Raster(1))),
        build.key(pingpong(dtype="float16")),
    }
    for module, name, other in (
        (build, "_tools", ("4.9.0", "0.1.15")),
        (platform, "machine", "aarch64"),
        (build, "_source", "another source"),
    ):
        monkeypatch.setattr(module, name, lambda other=other: other)
        keys.add(build.key(plan))
    assert len(keys) == 7


def test_each_architecture_has_its_own_key():
    assert len({build.key(pingpong(), arch) for arch in ("sm_80", "sm_90", "sm_90a")}) == 3


def test_a_release_is_one_source_and_one_set_of_tools(monkeypatch):
    releases = {build.release()}
    for name, other in (("_source", "another source"), ("_tools", ("4.9.0", "0.1.15"))):
        monkeypatch.setattr(build, name, lambda other=other: other)
        releases.add(build.release())
    assert len(releases) == 3


def test_a_file_in_any_folder_of_layouts_and_kernels_changes_the_source(monkeypatch):
    read, digests = Path.read_bytes, {build._source.__wrapped__()}
    top = Path(layouts.__file__).parent, Path(build.__file__).parents[1]  # layouts, kernels
    files = {path.parent: path for package in top for path in package.rglob("*.py")}
    for changed in files.values():  # one of each folder
        monkeypatch.setattr(
            Path, "read_bytes", lambda path, of=changed: read(path) + b"#" * (path == of)
        )
        digests.add(build._source.__wrapped__())
    assert len(digests) == 1 + len(files) > 15


def test_a_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    taken = tmp_path / "file"
    taken.write_bytes(b"")
    monkeypatch.setenv(cache.VARIABLE, str(taken / "cache"))
    with pytest.raises(cache.CacheError, match=r"cannot be written.*set CUTEDSL_GEMM_CACHE_DIR"):
        cache.entry("key", maker([]))


def test_a_folder_that_is_a_file_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    with pytest.raises(cache.CacheError, match=r"cannot be written \(it is a file\); set"):
        cache.check()


def test_a_user_without_a_home_folder_is_told_of_the_variable(monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "~nobody-of-this-name/cache")
    with pytest.raises(cache.CacheError, match="there is no home folder"):
        cache.folder()


def test_an_entry_is_read_without_writing(monkeypatch):
    cache.entry("key", maker([]))
    monkeypatch.delattr(cache, "lock")
    assert cache.entry("key", maker([])).read_bytes() == b"object code"


def test_nothing_but_entries_stays(folder):
    cache.entry("key", maker([]))
    with cache.lock("other"):
        assert (folder / "other.lock").exists()
    assert [path.suffix for path in folder.iterdir()] == [".so"]


def test_who_waits_for_a_lock_gets_it_after_its_file_is_deleted(folder):
    """The next holder may not hold the deleted file while a newcomer holds another of its name."""
    inside, most = [], []

    def hold():
        with cache.lock("key"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    with cache.lock("key"):
        threads = [Thread(target=hold) for _ in range(4)]
        threads[0].start()
        time.sleep(0.05)
    for newcomer in threads[1:]:
        newcomer.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_what_a_killed_process_left_is_swept_and_what_one_holds_is_not(folder):
    cache.entry("key", maker([]))
    for name in ("old.lock", "old.draft"):
        (folder / name).touch()
    with cache.lock("held"):
        (folder / "held.draft").touch()
        cache.sweep()
        assert {path.suffix for path in folder.iterdir()} == {".so", ".lock", ".draft"}
        assert not [*folder.glob("old.*")]


def test_a_kernel_that_cannot_be_kept_is_compiled_for_the_process_with_a_warning(
    monkeypatch, tmp_path
):
    """Once for the process: the second call finds the function in memory."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    exported = []
    monkeypatch.setattr(build, "export", lambda plan, path, arch: exported.append(path))
    monkeypatch.setattr(library, "load", lambda path: lambda *tensors: path)
    build.load.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"cannot be written .*each process compiles"):
            first = build.load(pingpong())
        assert build.load(pingpong()) is first
    finally:
        build.load.cache_clear()
    assert len(exported) == 1
    assert not exported[0].parent.exists()


LOAD = """
import sys
sys.modules["torch"] = None  # TVM-FFI would import it, for 2 s
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.sm90.rungs import pingpong
kernel = build.load(pingpong())
try:
    kernel(1, 2, 3, 4)
except TypeError as error:
    assert "bfloat16" in str(error), error
assert "cutlass" not in sys.modules
"""


@pytest.mark.slow
def test_a_compiled_kernel_loads_without_the_dsl():
    """This process exports; another loads without importing the DSL. Neither needs a GPU."""
    build.make(pingpong())
    subprocess.run([sys.executable, "-c", LOAD], check=True)


def test_a_missing_linker_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(library.LibraryError, match="ld, which is not on the PATH: install"):
        library.link(None, tmp_path / "kernel.so")


def test_a_disk_that_is_full_for_the_library_is_a_cache_error(monkeypatch, folder):
    """ld itself would end in an error without a number."""

    class Compiled:
        def export_to_c(self, path, function_name):
            Path(path).write_bytes(b"object code")

    def full(source, target):
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(cache.CacheError, match="No space left on device"):
        cache.entry("key", lambda draft: library.link(Compiled(), draft))
    assert not [*folder.iterdir()]


def test_a_folder_that_is_relative_is_one_here(monkeypatch, tmp_path):
    """dlopen looks for a name without a slash elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, ".")
    assert cache.entry("key", maker([])).parent == tmp_path


def test_a_process_says_for_which_lock_it_waits(monkeypatch, folder):
    folder.mkdir()
    held, waits = FileLock(folder / "key.lock"), []

    @contextmanager
    def spinner(text):
        waits.append(text)
        held.release()
        yield

    monkeypatch.setattr(cache, "spinner", spinner)
    held.acquire()
    with cache.lock("key"), cache.lock("another"):
        pass
    assert waits == [f"waiting for the process that holds {folder / 'key.lock'}"]


def test_the_message_of_the_linker_is_passed_on(tmp_path):
    class Compiled:
        def export_to_c(self, path, function_name):
            Path(path).write_bytes(b"no object")

    with pytest.raises(library.LibraryError, match=r"ld -shared .* failed: .*format"):
        library.link(Compiled(), tmp_path / "kernel.so")
