"""The command `generate`."""

from __future__ import annotations

import argparse
from datetime import date
from typing import Any

from mondrian_ops.cli.arguments import whole_rows
from mondrian_ops.cli.output import write
from mondrian_ops.errors import InputError


def add(commands: Any) -> None:
    """Declare the command and its arguments."""
    generate = commands.add_parser("generate", help="generate synthetic data")
    generate.add_argument("kind", choices=("poker", "people"), help="poker hands, or a population")
    generate.add_argument(
        "--rows",
        type=whole_rows,
        default=1_000_000,
        help="with --nights those of the first snapshot, or of each increment; default: 1000000",
    )
    generate.add_argument("--seed", type=int, default=0, help="default: 0")
    generate.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=".parquet or .csv; with --nights the directory of the drops, one directory per night",
    )
    nights = generate.add_argument_group(
        "people who change from night to night, as drops of mondrian_nightly; rates are shares per "
        "night"
    )
    nights.add_argument("--nights", type=whole_rows, metavar="N", help="how many drops")
    nights.add_argument(
        "--drops",
        choices=("increments", "snapshots"),
        help="increments: only who comes that night (default); snapshots: everybody who is there",
    )
    for rate, what, default in (
        ("leave", "people who leave (snapshots)", 0.05),
        ("come", "people who come, as a share of --rows (snapshots)", 0.05),
        ("back", "those who come that were there before", 0),
        ("move", "people who have another zip code", 0.02),
        ("change", "people who have another diagnosis", 0),
    ):
        help_text = f"{what}; default: {default:g}"
        nights.add_argument(f"--{rate}", type=float, metavar="RATE", help=help_text)
    nights.add_argument(
        "--spread", type=int, metavar="N", help="increments of --rows plus or minus up to N people"
    )
    nights.add_argument(
        "--first-day", type=_day, metavar="DAY", help="the first drop's; default: 2025-01-01"
    )
    generate.set_defaults(command=_generate)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a day; write it as 2025-01-31"
        raise argparse.ArgumentTypeError(message) from None


def _generate(options: argparse.Namespace) -> int:
    from mondrian_ops import datasets, stores

    output = stores.resolved(options.output)
    changes = _changes(options)
    if options.nights is None:
        datasets.generate(options.kind, rows=options.rows, seed=options.seed, output=output)
        write(f"{options.rows:,} rows in {output}")
        return 0
    population = datasets.Population(options.rows, options.nights, options.seed, **changes)
    rows = datasets.generate_nights(population, output)
    write(f"{rows:,} rows of {options.nights:,} nights in {output}")
    return 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """What is given of how people change; raises InputError where nothing changes."""
    names = ("leave", "come", "back", "move", "change", "spread", "first_day")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.drops is not None:
        given["kind"] = options.drops
    if given and options.nights is None:
        name = next(iter(given)).replace("_", "-").replace("kind", "drops")
        raise InputError(f"{name}: give --nights as well; without it there is one file")
    if options.nights is not None and options.kind != "people":
        raise InputError(f"nights: only people change from night to night, not {options.kind}")
    if given.get("kind", "increments") == "increments":
        for name in ("leave", "come"):
            if name in given:
                raise InputError(
                    f"{name}: is for snapshots; add --drops snapshots, or leave it out: of an "
                    "increment nobody stays"
                )
    return given
