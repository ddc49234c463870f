"""The command `sweep`."""

from __future__ import annotations

import argparse
from typing import Any

from mondrian_ops.cli.output import REFUSED, write


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    sweep = commands.add_parser(
        "sweep", help="remove working files, which hold original rows, of runs that were killed"
    )
    sweep.add_argument(
        "folders", nargs="+", metavar="DIR", help="path or URL below which to look, at any depth"
    )
    sweep.add_argument(
        "--keep-hours",
        type=float,
        default=24.0,
        metavar="N",
        help="leave files that changed in the last N hours; default: 24",
    )
    sweep.add_argument(
        "--all",
        action="store_true",
        help="also the files of runs in Airflow, which may still need them; without this option "
        "they are left to its DAG mondrian_sweep",
    )
    sweep.set_defaults(command=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    from datetime import timedelta
    from itertools import chain

    from mondrian_ops import publish, series, stores

    keep = timedelta(hours=options.keep_hours)
    failed = False
    for folder in map(stores.resolved, options.folders):
        stores.check_location("folder", folder, exact=True)
        works = publish.sweep(folder, keep, lambda _: None if options.all else True)
        for swept in chain(works, series.sweep(folder, keep)):
            write(str(swept))
            failed |= swept.state == "failed"
    return REFUSED if failed else 0
