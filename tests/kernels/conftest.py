"""What several tests look at is compiled once, by the first worker that needs it."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from cutedsl_gemm.kernels.compile import build


@pytest.fixture(scope="session", autouse=True)
def shared_dumps(tmp_path_factory):
    """The PTX and the cubins that the DSL writes for `build.ptx` and `build.inspect`."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of the workers' own folders
    dumped = build._dumped

    @contextmanager
    def shared(plan, arch, kind):
        path = folder / f"{build.key(plan, arch)}.{kind}"
        with FileLock(f"{path}.lock"):
            if not path.exists():
                with dumped(plan, arch, kind) as made:
                    shutil.copy(made, draft := Path(f"{path}.draft"))
                draft.rename(path)
        yield path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_dumped", shared)
        yield
