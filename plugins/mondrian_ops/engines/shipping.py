"""The package as a zip that travels with a Spark job, so that executors need no installation.

The zip contains the compiled kernels of every kind of machine that they are built for
(:mod:`mondrian_ops.native.build`). No library can be loaded from a zip, so an executor unpacks it
once, into a folder named after its content, and imports from there. Python can also run the zip,
as the driver of an application (:mod:`mondrian_ops.spark_app`). The modules of packages that extend
this one (docs/extend.md) travel with it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import secrets
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from mondrian_ops.errors import StorageError
from mondrian_ops.stores.shared_folders import Folder, by_handle

PLACE_VARIABLE = "MONDRIAN_OPS_CACHE"

_PACKAGE = "mondrian_ops"
_NAME = re.compile(rf"{_PACKAGE}-\w+(\.zip)?")
_SHIPPED = ("*.py", "*.pyi", "native/kernels-*.so", "*.css", "*.html", "*.svg")
_PROGRAM = "spark_app/program.py"
_EXTENDED = tuple(f"{_PACKAGE}.{each}" for each in ("criteria", "stores", "tables"))
"""Groups of entry points."""
_ADDED = f"{_PACKAGE}_added-0.dist-info"  # the entry points of packages that travel along
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_WEEKS_S = 14 * 24 * 3600


@cache
def packed() -> str:
    """The path of the zip, made if it is missing; the same content has the same name."""
    if (archive := _archive()) is not None:
        return str(archive)
    root = Path(__file__).resolve().parents[1]
    files = {
        f"{_PACKAGE}/{path.relative_to(root)}": path.read_bytes()
        for path in sorted(path for pattern in _SHIPPED for path in root.rglob(pattern))
    }
    files |= _added()
    files["__main__.py"] = (root / _PROGRAM).read_bytes()
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file}\0".encode() + content)
    name = f"{_PACKAGE}-{digest.hexdigest()[:16]}.zip"
    with _place() as place:
        if not place.has(name):
            _write(place, name, files)
        os.utime(name, dir_fd=place.handle, follow_symlinks=False)
        return os.path.join(place.path, name)


def _added() -> dict[str, bytes]:
    """The files of packages that extend this one, by their names in the zip, and entry points.

    Of such a package its own modules travel, not what it depends on.
    """
    from importlib.metadata import entry_points

    files, listed = dict[str, bytes](), ""
    for group in _EXTENDED:
        listed += f"[{group}]\n"
        for entry in sorted(entry_points(group=group)):
            listed += f"{entry.name} = {entry.value}\n"
            files |= _modules(entry.module.partition(".")[0])
    if files:
        files[f"{_ADDED}/entry_points.txt"] = listed.encode()
        files[f"{_ADDED}/METADATA"] = f"Name: {_PACKAGE}_added\nVersion: 0\n".encode()
    return files


def _modules(top: str) -> dict[str, bytes]:
    """The files of a package or module that is installed here, by their names in the zip.

    A package without ``__init__.py`` has folders, and no file of its own.
    """
    spec = importlib.util.find_spec(top)
    if spec is None:
        return {}
    if spec.submodule_search_locations is None:
        return {f"{top}.py": Path(str(spec.origin)).read_bytes()}
    return {
        f"{top}/{path.relative_to(folder)}": path.read_bytes()
        for folder in spec.submodule_search_locations
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def bootstrap() -> None:
    """If this package was imported from a zip, import the rest of it from an unpacked copy."""
    archive = _archive()
    if archive is None:
        return
    home = _unpacked(archive)
    for name in (_PACKAGE, f"{_PACKAGE}.stores", f"{_PACKAGE}.engines"):  # what this module imports
        sys.modules[name].__path__ = [str(home.joinpath(*name.split(".")))]
    if home.joinpath(_ADDED).is_dir():
        sys.path.insert(0, str(home))


def _archive() -> Path | None:
    """The zip that this module was imported from."""
    return next((path for path in Path(__file__).parents if path.is_file()), None)


def _write(place: Folder, archive: str, files: Mapping[str, bytes]) -> None:
    temporary = f"{secrets.token_hex(8)}.tmp"
    handle = place.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as packing:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            packing.writestr(entry, content, zipfile.ZIP_DEFLATED, 1)
    place.rename(temporary, place, archive)
    _forget_old(place)


def _forget_old(place: Folder) -> None:
    """Remove packages that were not used for weeks."""
    with place.scanned() as entries:
        names = [each.name for each in entries if _NAME.fullmatch(each.name)]
    for name in names:
        with suppress(OSError):  # another process removes it, too
            if time.time() - place.status(name).st_mtime >= _WEEKS_S:
                place.remove_tree(name)


def _unpacked(archive: Path) -> Path:
    """The folder with the content of the zip; several processes may unpack it at once."""
    with _place() as place:
        if not place.has(archive.stem):
            beside = secrets.token_hex(8)
            place.make_private(beside)
            with place.own(beside) as folder, zipfile.ZipFile(archive) as packed_files:
                packed_files.extractall(by_handle(folder.handle))
            try:
                place.rename(beside, place, archive.stem)
            except OSError:  # another process was quicker
                place.remove_tree(beside)
            _forget_old(place)
        place.own(archive.stem).close()
        os.utime(archive.stem, dir_fd=place.handle, follow_symlinks=False)  # used: not removed
        return Path(place.path, archive.stem)


def _place() -> Folder:
    """A folder that only this user can write to, since code is run from it.

    Raises StorageError if others can, or it is a link.
    """
    default = Path(tempfile.gettempdir()) / f"{_PACKAGE}-{os.geteuid()}"
    named = Path(os.environ.get(PLACE_VARIABLE) or default).absolute()
    named.parent.mkdir(parents=True, exist_ok=True)
    remedy = f"or name a private folder in {PLACE_VARIABLE}"
    try:
        with Folder(str(named.parent)) as parent:
            with suppress(FileExistsError):
                parent.make_private(named.name)
            place = parent.own(named.name)
    except StorageError as error:
        raise StorageError(f"{error}, {remedy}") from None
    if os.fstat(place.handle).st_mode & 0o022:
        place.close()
        raise StorageError(
            f"{named}: other users can write to it, and could put code there; remove it, {remedy}"
        )
    return place
