"""The commands on a series of releases: `series refit`."""

from __future__ import annotations

import argparse
from typing import Any

from mondrian_ops.cli.output import write


def add(commands: Any) -> None:
    """Declare the commands and their arguments."""
    series = commands.add_parser("series", help="change a series of releases")
    decisions = series.add_subparsers(dest="decision", metavar="DECISION", required=True)
    refit = decisions.add_parser(
        "refit",
        help="fit new boundaries in the next night (series.boundaries: stable); counts before and "
        "after cannot be compared",
    )
    refit.add_argument("output", metavar="DIR", help="the output of any night of the series")
    refit.set_defaults(command=_refit)


def _refit(options: argparse.Namespace) -> int:
    from mondrian_ops import series, stores

    series.ask_to_refit(stores.resolved(options.output))
    write("the next release of the series has new boundaries")
    return 0
