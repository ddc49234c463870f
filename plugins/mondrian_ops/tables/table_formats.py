"""Directories that are a table of Delta Lake, Hudi or Iceberg, which is more than its files.

Such a table keeps files whose rows were removed or replaced since; only its log tells which files
count. Read as a folder, it would give back the rows of people who were removed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from mondrian_ops.errors import InputError
from mondrian_ops.stores.files import concurrently, exists, names_in
from mondrian_ops.stores.locations import joined, parts_of, shown
from mondrian_ops.stores.store import store_of

_MARKS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_METADATA = "metadata"
_ICEBERG_ENDINGS = (".metadata.json", ".metadata.json.gz")


def refuse_table(directory: str, names: Collection[str]) -> None:
    """Raise InputError if a directory with these names in it is a table."""
    for mark, kind in _MARKS.items():
        if mark in names:
            raise _refused(directory, kind, mark)
    if _METADATA in names and _is_iceberg(joined(directory, _METADATA)):
        raise _refused(directory, "Iceberg", f"{_METADATA}/*{_ICEBERG_ENDINGS[0]}")


def refuse_tables_above(directories: Iterable[str]) -> None:
    """Raise InputError if one of the directories, or a directory above one, is a table."""
    lineage = {above: None for directory in directories for above in _with_those_above(directory)}
    places = [(above, name) for above in lineage for name in (*_MARKS, _METADATA)]
    names: dict[str, set[str]] = {}
    if not places:
        return
    if store_of(places[0][0]).has_round_trips:
        found = concurrently(_is_there, places)
    else:
        found = list(map(_is_there, places))
    for (above, name), is_there in zip(places, found, strict=True):
        if is_there:
            names.setdefault(above, set()).add(name)
    for above, here in names.items():
        refuse_table(above, here)


def _refused(directory: str, kind: str, mark: str) -> InputError:
    name_it = "give the table by its catalog, iceberg://CATALOG/NAMESPACE.TABLE, or "
    return InputError(
        f"{shown(directory)}: is a table of {kind}, for it holds {mark}, and its files also have "
        f"rows that were removed or replaced; {name_it if kind == 'Iceberg' else ''}write a "
        "snapshot of the table as Parquet files into a directory outside it, for example with "
        "Spark or DuckDB, and give that as `input`"
    )


def _is_iceberg(metadata: str) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return any(name.endswith(_ICEBERG_ENDINGS) for name in names_in(metadata))
    return False


def _is_there(place: tuple[str, str]) -> bool:
    """Whether a directory of a store has a name; who may not look there cannot know."""
    with suppress(PermissionError):
        return exists(joined(*place))
    return False


def _with_those_above(directory: str) -> Iterator[str]:
    """A directory, with absolute path, and those above it."""
    base, path = parts_of(directory)
    while True:
        yield base + path
        if path == posixpath.dirname(path):
            return
        path = posixpath.dirname(path)
