"""The commands on a generalization hierarchy: `hierarchy missing`."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable
from typing import Any

from mondrian_ops.cli.arguments import allowed_job, takes_job
from mondrian_ops.cli.output import write
from mondrian_ops.errors import StorageError

_NO_NAME = re.compile(r"[^\w.-]")
_MARKS = re.compile(r'[;,"\r\n]')


def add(commands: Any) -> None:
    """Declare the commands and their arguments."""
    hierarchy = commands.add_parser("hierarchy", help="complete a generalization hierarchy")
    actions = hierarchy.add_subparsers(dest="action", metavar="ACTION", required=True)
    missing = actions.add_parser(
        "missing",
        help="write the values of a column that are not leaves of its hierarchy to a new private "
        "file, one a line, as they have to be in the hierarchy",
    )
    takes_job(missing)
    missing.add_argument(
        "--column",
        required=True,
        metavar="C",
        help="a column to which the job gives a hierarchy file",
    )
    missing.add_argument(
        "--output",
        metavar="PATH",
        help="the file, which only this user can read; never one that is there already; default: "
        "missing_C.csv in the current directory",
    )
    missing.set_defaults(command=_missing)


def _missing(options: argparse.Namespace) -> int:
    from mondrian_ops import stores
    from mondrian_ops.pipeline.missing_leaves import missing_leaves

    job = allowed_job(options)
    name = _NO_NAME.sub("_", options.column)
    path = stores.local_path(options.output or f"missing_{name}.csv")
    stores.check_location("--output", os.path.abspath(path), writing=True)
    if os.path.lexists(path):
        raise _is_there(path)
    values, hierarchy = missing_leaves(job, options.column)
    if not values:
        write(f"no file is written: all values of the column are leaves of {hierarchy}")
        return 0
    _write_private(path, values)
    count = "1 value is no leaf" if len(values) == 1 else f"{len(values):,} values are no leaves"
    write(f"{count} of {hierarchy}: {path}")
    return 0


def _write_private(path: str, values: Iterable[str]) -> None:
    """Write a new file that only this user can read; an error leaves none.

    Raises StorageError if there is one already.
    """
    try:
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise _is_there(path) from None
    try:
        with open(made, "w", encoding="utf-8", newline="") as file:
            file.writelines(f"{_cell(value)}\n" for value in values)
    except BaseException:
        os.unlink(path)
        raise


def _cell(value: str) -> str:
    """A value as a cell of CSV, for either separator that a hierarchy may have."""
    if value and not _MARKS.search(value):
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def _is_there(path: str) -> StorageError:
    return StorageError(
        f"--output: {path} is there already, and is not overwritten; remove it, or give another "
        "path"
    )
