"""Hierarchy files: where they are looked for, and how their text is read."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TextIO

from mondrian_ops.core.errors import HierarchyError
from mondrian_ops.core.hierarchy import Hierarchy
from mondrian_ops.storage import documents
from mondrian_ops.storage.files import content_within
from mondrian_ops.storage.locations import check_path

__all__ = ["find_hierarchy", "read_hierarchy"]

PLACES_VARIABLE = "MONDRIAN_OPS_HIERARCHIES"


def find_hierarchy(name: str, beside: str | None) -> str:
    """The path of a hierarchy file, looked up beside the job, then in ``include/hierarchies/``.

    Args:
        name: as the job gives it, a path relative to one of these places.
        beside: the directory of the job's file; None if it has none.

    That folder is beside ``plugins/`` in a checkout, and in the package where a wheel is installed.
    The environment variable ``MONDRIAN_OPS_HIERARCHIES`` (directories, separated like ``PATH``)
    replaces it. A file outside these places is refused, for the name may come from a form.

    Raises:
        HierarchyError: it is in none of them.
        JobError: no file can have this name.
    """
    check_path("hierarchy", name)
    places = ([beside] if beside else []) + _shared_places()
    for place in places:
        root = Path(place).resolve()
        path = (root / name).resolve()
        if path.is_relative_to(root) and path.is_file():
            return str(path)
    raise HierarchyError(
        f"{name}: no such hierarchy file; put it beside the job's file or into one of "
        f"{', '.join(places)}"
    )


def _shared_places() -> list[str]:
    named = os.environ.get(PLACES_VARIABLE)
    if named:
        return [place for place in named.split(os.pathsep) if place]
    package = Path(__file__).resolve().parents[1]
    installed = package / "include" / "hierarchies"  # the wheel has them there
    return [str(installed if installed.is_dir() else package.parents[1] / "include/hierarchies")]


def read_hierarchy(path: str) -> Hierarchy:
    """Read a hierarchy: CSV separated by ``;`` or ``,`` without a header, or a JSON tree.

    Raises:
        HierarchyError: missing, not UTF-8, not JSON, not one tree, or beyond one of the limits
            ``hierarchy_file``, ``hierarchy_rows``, ``hierarchy_levels``.
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
        return Hierarchy.from_rows((row for row in rows if any(row)), name)
    except csv.Error:
        raise HierarchyError(f"{name}, line {rows.line_num}: not valid CSV") from None


def _text(content: bytes) -> TextIO:
    """What is decoded as it is read, and never there as a whole."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def _delimiter(content: bytes, name: str) -> str:
    first = next((line for line in _text(content) if line.strip()), "")
    try:
        return ";" if len(next(csv.reader([first], delimiter=";"), [])) > 1 else ","
    except csv.Error:
        raise HierarchyError(f"{name}: not valid CSV in its first line") from None
