"""The commands on the contract of a dataset: `contract show`, `contract accept`."""

from __future__ import annotations

import argparse
from typing import Any

from mondrian_ops.cli.arguments import user
from mondrian_ops.cli.output import write


def add(commands: Any) -> None:
    """Declare the commands and their arguments."""
    contract = commands.add_parser(
        "contract", help="the columns of a dataset that is released night after night"
    )
    actions = contract.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show", help="show the columns of the last release, and the changes that refused a drop"
    )
    accept = actions.add_parser(
        "accept", help="accept a change that refused a drop; the next run of the drop releases it"
    )
    for parser in (show, accept):
        parser.add_argument("output", metavar="DIR", help="the output of any night of the dataset")
    accept.add_argument("id", metavar="ID", help="the id of the change, as the refusal gives it")
    show.set_defaults(command=_show)
    accept.set_defaults(command=_accept)


def _show(options: argparse.Namespace) -> int:
    from mondrian_ops import stores
    from mondrian_ops.data.contract import Change
    from mondrian_ops.pipeline import contract
    from mondrian_ops.report.number_format import printable

    last, changes = contract.state_of(stores.resolved(options.output))
    if last is None:
        write("no release of this dataset has a contract")
    else:
        write(f"last release    {stores.shown(last.output)}")
        names = [printable(name) for name in last.columns]
        width = max(map(len, names), default=0)
        for name, column in zip(names, last.columns.values(), strict=True):
            write(f"  {name:<{width}}  {column}")
    for change in changes:
        state = f"accepted by {change.by}, {change.at}" if change.by else "not accepted"
        write(f"change {change.id}  {stores.shown(change.output)}, {change.time}: {state}")
        write(f"  {Change.text_of(change.changes)}")
    return 0


def _accept(options: argparse.Namespace) -> int:
    from mondrian_ops import stores
    from mondrian_ops.data.contract import Change
    from mondrian_ops.pipeline import contract

    accepted = contract.accept(options.id, user(), output=stores.resolved(options.output))
    write(f"accepted by {accepted.by}, {accepted.at}: {Change.text_of(accepted.changes)}")
    return 0
