"""Arguments that several commands take."""

from __future__ import annotations

import argparse
import getpass
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mondrian_ops.job.job import Job


def takes_job(parser: argparse.ArgumentParser) -> None:
    """Let a command take a job file and changes of its keys, which :func:`allowed_job` reads."""
    parser.add_argument("job", metavar="JOB", help="job file: YAML or JSON")
    takes_set(parser)


def takes_set(parser: argparse.ArgumentParser) -> None:
    """Let a command take changes of a job's keys."""
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one key of the job, such as k=10 or partitioning.fragments=4; repeatable",
    )


def allowed_job(options: argparse.Namespace, publishes: bool = True) -> Job:
    """The job, held to the policies; ``publishes``: whether rows or their conditions are shown.

    Raises JobError if it names anything that the environment does not allow, or asks too little.
    """
    from mondrian_ops import publish, stores

    job = stores.load_job(options.job, options.overrides)
    return publish.check_job(job, publishes=publishes)


def user() -> str:
    """Who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return f"user {os.getuid()}"


def whole_rows(text: str) -> int:
    """A number of rows, at least 1, as an argument; raises ArgumentTypeError."""
    try:
        rows = int(text.replace("_", ""))
    except ValueError:
        rows = 0
    if rows < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of rows; give a whole number of at least 1"
        )
    return rows
