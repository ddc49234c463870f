"""Hierarchy files: where they are looked up, and how they are read."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TextIO

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import HierarchyError
from mondrian_ops.stores import documents
from mondrian_ops.stores.access_policy import check_location
from mondrian_ops.stores.locations import check_path, home
from mondrian_ops.stores.policies import check_hierarchy
from mondrian_ops.stores.regular_files import content_within

FOLDERS_VARIABLE = "MONDRIAN_OPS_HIERARCHIES"
_FOLDER = "include/hierarchies"


def find_hierarchy(name: str, beside: str | None) -> str:
    """The path of a hierarchy file, looked up beside the job, then in ``include/hierarchies/``.

    Args:
        name: as the job gives it, a path relative to one of these folders.
        beside: the directory of the job's file; None if it has none.

    That is in the home, then in what is :func:`shipped`. The environment variable
    ``MONDRIAN_OPS_HIERARCHIES`` (directories, separated like ``PATH``) replaces both. A file
    outside these folders is refused, for the name may come from a form. Beside the job a file is
    read only where a job may be read, and nowhere if it lies in the input of a policy.

    Raises:
        HierarchyError: it is in none of them, or in the input of a policy.
        JobError: no file can have this name, or no job may read it.
    """
    check_path("hierarchy", name)
    folders = ([beside] if beside else []) + _shared_folders()
    is_outside = False
    for folder in folders:
        root = Path(folder).resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):  # whether a file is there is not told
            is_outside = True
        elif path.is_file():
            if folder == beside:
                check_location("hierarchy", str(path), exact=True)
            check_hierarchy(name, str(path))
            return str(path)
    problem = "no such hierarchy file"
    if is_outside:
        problem = "is outside the folders where hierarchies may lie"
    raise HierarchyError(
        f"{name}: {problem}; put it beside the job's file or into one of {', '.join(folders)}"
    )


def _shared_folders() -> list[str]:
    named = os.environ.get(FOLDERS_VARIABLE)
    if named:
        return [folder for folder in named.split(os.pathsep) if folder]
    folders = [Path(home(), _FOLDER), shipped(_FOLDER)]
    return list(dict.fromkeys(map(str, folders)))


def shipped(folder: str) -> Path:
    """A folder that comes with this package: inside it in a wheel, beside ``plugins`` otherwise."""
    package = Path(__file__).resolve().parents[1]
    installed = package / folder
    return installed if installed.is_dir() else package.parents[1] / folder


def read_hierarchy(path: str) -> Hierarchy:
    """Read a hierarchy: CSV separated by ``;`` or ``,`` without a header, or a JSON tree.

    Raises:
        HierarchyError: the file is missing, not UTF-8, not valid, not one tree, or beyond one of
            the limits ``hierarchy_file``, ``hierarchy_rows``, ``hierarchy_levels``.
    """
    name = Path(path).name
    try:
        content = content_within(path, "hierarchy_file", name, HierarchyError)
        if path.lower().endswith(".json") or _text(content).read(1024).lstrip()[:1] in ("{", "["):
            return Hierarchy.from_tree(_json(content.decode("utf-8-sig"), name), name)
        return _from_csv(content, name)
    except FileNotFoundError:
        raise HierarchyError(f"{name}: no such hierarchy file; check the name") from None
    except UnicodeDecodeError:
        raise HierarchyError(f"{name}: not UTF-8 text; convert the file to UTF-8") from None


def _json(text: str, name: str) -> object:
    try:
        return documents.parsed_json(text)
    except documents.DocumentError as error:
        raise HierarchyError(f"{name}{error}; correct the file") from None


def _from_csv(content: bytes, name: str) -> Hierarchy:
    rows = csv.reader(_text(content), delimiter=_delimiter(content, name))
    try:
        return Hierarchy.from_rows(rows, name)
    except csv.Error:
        raise HierarchyError(f"{name}, line {rows.line_num}: not valid CSV") from None


def _text(content: bytes) -> TextIO:
    """The text, decoded as it is read rather than as a whole."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def _delimiter(content: bytes, name: str) -> str:
    first = next((line for line in _text(content) if line.strip()), "")
    try:
        return ";" if len(next(csv.reader([first], delimiter=";"), [])) > 1 else ","
    except csv.Error:
        raise HierarchyError(f"{name}: not valid CSV in its first line") from None
