"""The command `frontier`."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Any

from mondrian_ops.cli.arguments import allowed_job, takes_job, whole_rows
from mondrian_ops.cli.output import write, write_json
from mondrian_ops.cli.signals import SIGNALS


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    frontier = commands.add_parser(
        "frontier", help="measure loss and risk over a grid of k and l; publishes nothing"
    )
    takes_job(frontier)
    frontier.add_argument(
        "--k",
        type=_numbers,
        default="2,5,10,25,50,100",
        metavar="K,…",
        help="the values of k; default: %(default)s",
    )
    frontier.add_argument(
        "--l",
        type=_numbers,
        default="1",
        metavar="L,…",
        help="the values of l; 1 sets no requirement; default: %(default)s",
    )
    size = frontier.add_mutually_exclusive_group()
    size.add_argument("--sample", type=float, metavar="RATE", help="share of the rows to measure")
    size.add_argument(
        "--rows",
        type=whole_rows,
        metavar="N",
        help="about how many rows to measure; default: 200000",
    )
    frontier.add_argument(
        "--output",
        metavar="DIR",
        help="directory for CSV, SVG and HTML; default: the job's output with _frontier appended",
    )
    frontier.add_argument("--quiet", action="store_true", help="no progress and no table")
    frontier.add_argument("--json", action="store_true", help="print the figures as JSON")
    frontier.set_defaults(command=_frontier)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(int(part) if part.strip().isdigit() else float(part)
                     for part in text.split(","))  # fmt: skip
    except ValueError:
        message = f"{text!r} is not a list of numbers; write it as 2,5,10"
        raise argparse.ArgumentTypeError(message) from None


def _frontier(options: argparse.Namespace) -> int:
    from mondrian_ops.pipeline import frontier
    from mondrian_ops.progress import display
    from mondrian_ops.report import frontier_text

    job = allowed_job(options, publishes=False)
    grid = frontier.points(options.k, options.l)
    folder = frontier.folder_of(job, options.output)
    with display(sys.stderr, options.quiet) as progress:
        figures = frontier.trace(
            job,
            grid,
            rows=options.rows,
            rate=options.sample,
            progress=SIGNALS.watched(progress),
        )
    written = frontier.write(figures, folder)
    if options.json:
        write_json(figures)
    elif not options.quiet:
        write(frontier_text(figures, shutil.get_terminal_size().columns))
        write("\n" + "\n".join(written))
    return 0
