"""The command `inspect`."""

from __future__ import annotations

import argparse
import os
import shutil
from typing import Any

from mondrian_ops.cli.arguments import whole_rows
from mondrian_ops.cli.output import write, write_json
from mondrian_ops.errors import StorageError


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    inspect = commands.add_parser(
        "inspect", help="show what an unknown table holds of people, and propose a job"
    )
    inspect.add_argument(
        "input", metavar="INPUT", help="a file, a directory, a glob or a URL, as in a job"
    )
    inspect.add_argument("--write", metavar="FILE", help="write the proposed job; none is replaced")
    inspect.add_argument(
        "--rows",
        type=whole_rows,
        default=1_000_000,
        metavar="N",
        help="about how many random rows to look at; default: 1000000",
    )
    inspect.add_argument("--json", action="store_true", help="print what was found as JSON")
    inspect.set_defaults(command=_inspect)


def _inspect(options: argparse.Namespace) -> int:
    from mondrian_ops import stores
    from mondrian_ops.inspection.inspector import inspect
    from mondrian_ops.inspection.starter_job import starter_job
    from mondrian_ops.inspection.text import render_text

    if options.write is not None and os.path.lexists(options.write):
        raise _is_there(options.write)
    inspection = inspect(stores.resolved(options.input), rows=options.rows)
    job = starter_job(inspection)
    if options.json:
        write_json({**inspection.to_dict(), "job": job})
    else:
        write(render_text(inspection, shutil.get_terminal_size().columns))
        if options.write is None:
            write(f"\nA job to begin with; --write FILE writes it\n\n{job}".rstrip())
    if options.write is not None:
        _write_new(options.write, job)
        if not options.json:
            write(f"\njob             {options.write}")
    return 0


def _write_new(path: str, job: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(job)
    except FileExistsError:
        raise _is_there(path) from None


def _is_there(path: str) -> StorageError:
    return StorageError(f"--write: {path} is there already, and is not replaced; give another path")
