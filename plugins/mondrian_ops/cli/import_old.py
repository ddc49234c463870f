"""The command `import`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mondrian_ops.cli.output import REFUSED, fail, write
from mondrian_ops.core.errors import JobError

if TYPE_CHECKING:
    from mondrian_ops.catalogue.old_files import Imported

__all__ = ["add"]


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    importing = commands.add_parser(
        "import",
        help="import what older versions kept in files into the catalogue; may be repeated",
    )
    importing.add_argument(
        "--reports", metavar="DIR", help="path or URL of an archive of reports, for the pages"
    )
    importing.add_argument(
        "--ledger",
        metavar="DIR",
        help="path or URL of a ledger; its key becomes the key of the catalogue, which must not "
        "have another one",
    )
    importing.add_argument(
        "--population",
        default="",
        metavar="NAME",
        help="the population of the jobs that used the ledger; default: that of all jobs that "
        "name none",
    )
    importing.set_defaults(command=_import)


def _import(options: argparse.Namespace) -> int:
    from mondrian_ops import catalogue, storage
    from mondrian_ops.catalogue import old_files

    if not (options.reports or options.ledger):
        raise JobError("import: name what to import: --reports, --ledger or both")
    opened, statuses = catalogue.current(), []
    if options.ledger:
        done = old_files.import_ledger(opened, storage.resolved(options.ledger), options.population)
        statuses.append(_write_imported("ledger", done))
    if options.reports:
        done = old_files.import_reports(opened, storage.resolved(options.reports))
        statuses.append(_write_imported("archive of reports", done))
    return max(statuses)


def _write_imported(what: str, done: Imported) -> int:
    from mondrian_ops.report.number_format import number

    write(f"{what}: {number(done.imported)} imported, {number(done.known)} there already")
    for path in done.damaged:
        fail(f"{path}: missing, damaged or of another key; it was not imported", REFUSED)
    return REFUSED if done.damaged else 0
