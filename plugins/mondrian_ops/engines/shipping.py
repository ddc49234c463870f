"""The package as a zip that travels with a Spark job, so that executors need no installation.

The zip contains the compiled kernels of every kind of machine that they are built for
(:mod:`mondrian_ops.native.build`). No library can be loaded from a zip, so an executor unpacks it
once, into a folder named after its content, and imports from there. Python can also run the zip,
as the driver of an application (:mod:`mondrian_ops.spark_app`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path

__all__ = ["bootstrap", "packed"]

PLACE_VARIABLE = "MONDRIAN_OPS_CACHE"

_PACKAGE = "mondrian_ops"
_SHIPPED = ("*.py", "native/kernels-*.so", "*.css", "*.html", "*.svg")
_PROGRAM = "spark_app/program.py"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_WEEKS_S = 14 * 24 * 3600


@cache
def packed() -> str:
    """The path of the zip, made if it is missing; the same content has the same name."""
    if (archive := _archive()) is not None:
        return str(archive)
    root = Path(__file__).resolve().parents[1]
    files = sorted(path for pattern in _SHIPPED for path in root.rglob(pattern))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    archive = _place() / f"{_PACKAGE}-{digest.hexdigest()[:16]}.zip"
    if not archive.exists():
        _write(archive, root, files)
    os.utime(archive)
    return str(archive)


def bootstrap() -> None:
    """If this package was imported from a zip, import the rest of it from an unpacked copy."""
    archive = _archive()
    if archive is None:
        return
    home = _unpacked(archive)
    os.utime(home)  # recently used: not removed
    for name in (_PACKAGE, f"{_PACKAGE}.engines"):
        sys.modules[name].__path__ = [str(home.joinpath(*name.split(".")))]


def _archive() -> Path | None:
    """The zip that this module was imported from."""
    return next((path for path in Path(__file__).parents if path.is_file()), None)


def _write(archive: Path, root: Path, files: list[Path]) -> None:
    handle, temporary = tempfile.mkstemp(dir=archive.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as packing:
        for path in files:
            name = zipfile.ZipInfo(f"{_PACKAGE}/{path.relative_to(root)}", _LONG_AGO)
            packing.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED, 1)
        packing.writestr(zipfile.ZipInfo("__main__.py", _LONG_AGO), (root / _PROGRAM).read_bytes())
    Path(temporary).replace(archive)
    _forget_old(archive.parent)


def _forget_old(place: Path) -> None:
    """Remove packages that were not used for weeks."""
    for path in place.glob(f"{_PACKAGE}-*"):
        if time.time() - path.stat().st_mtime < _WEEKS_S:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _unpacked(archive: Path) -> Path:
    """The folder with the content of the zip; several processes may unpack it at once."""
    home = _place() / archive.stem
    if not home.exists():
        beside = Path(tempfile.mkdtemp(dir=home.parent))
        with zipfile.ZipFile(archive) as packed_files:
            packed_files.extractall(beside)
        try:
            beside.rename(home)
        except OSError:  # another process was quicker
            shutil.rmtree(beside)
        _forget_old(home.parent)
    return home


def _place() -> Path:
    """A folder that only this user can write to, since code is run from it.

    Raises PermissionError where others can.
    """
    default = Path(tempfile.gettempdir()) / f"{_PACKAGE}-{os.geteuid()}"
    place = Path(os.environ.get(PLACE_VARIABLE) or default)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.stat().st_uid != os.geteuid() or place.stat().st_mode & 0o022:
        raise PermissionError(
            f"{place}: other users can write to it, and could put code there; remove it, or name "
            f"a private folder in {PLACE_VARIABLE}"
        )
    return place
