"""The commands `init` and `schema`, for those who begin."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mondrian_ops.cli.output import write, write_json


def add(commands: Any) -> None:
    """Declare the commands and their arguments."""
    schema = commands.add_parser("schema", help="print the JSON Schema of a job, for editors")
    schema.set_defaults(command=_schema)

    init = commands.add_parser("init", help="copy the DAGs and their example data into a folder")
    init.add_argument("folder", metavar="DIR", help="the folder above the DAGs folder")
    init.set_defaults(command=_init)


def _schema(_options: argparse.Namespace) -> int:
    from mondrian_ops.job.schema import job_schema

    write_json(job_schema())
    return 0


_NEXT = """
The DAG mondrian_sweep is not paused when Airflow finds it: every hour it removes working files that
no run needs, below what `[mondrian_ops] allowed_outputs` lists. The other DAGs wait for you.

Next: trigger mondrian_anonymize in Airflow; its form is filled in for the example data. For a drop
every night put a job into {folder}/include/jobs, files named by their day into
{folder}/data/landing/DATASET, and unpause mondrian_nightly.
"""


def _init(options: argparse.Namespace) -> int:
    from mondrian_ops import stores

    for part, pattern in (("dags", "mondrian_*.py"), ("include", "*/*")):
        source = stores.shipped(part)
        for file in sorted(source.glob(pattern)):
            target = Path(options.folder, part, file.relative_to(source))
            write(f"{target}{_copied(file, target)}")
    write(_NEXT.format(folder=options.folder).rstrip())
    return 0


def _copied(file: Path, target: Path) -> str:
    """Copy a file, unless there is one; what to add to its line."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as written:
            written.write(file.read_bytes())
    except FileExistsError:
        return ": is there already, not changed"
    return ""
