"""A catalogue of made-up releases for the tests of the pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from mondrian_ops import report as reports
from mondrian_ops.catalogue import Catalogue, Place, releases
from mondrian_ops.catalogue.tables import document, release, series
from mondrian_ops.catalogue.tables import night as night_table
from report_samples import make

SERIES = "/data/out/people/*"
FIRST = datetime(2025, 1, 1, 2, 30, tzinfo=UTC)


def entry_id(number: int) -> str:
    """The id of the release with a number."""
    return f"{number:032x}"


def report_of(**changed: Any) -> dict[str, Any]:
    """A report as wrap-up leaves it."""
    names = changed.pop("names", ["age", "zip"])
    return make(names, class_sizes=[(5, 12), (6, 5), (10, 2)], **changed)


def entry(number: int, report: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """The entry of a release of the night with a number."""
    day = FIRST + timedelta(days=number)
    figures = reports.Report.of(report).overview() if report else {}
    return {
        "id": entry_id(number),
        "time": day.isoformat(timespec="microseconds"),
        "dataset": f"out/people/{day:%Y-%m-%d}",
        "input": f"landing/people/{day:%Y-%m-%d}.csv",
        "dag_id": "mondrian_nightly",
        "run_id": f"scheduled__{day.isoformat()}",
        "task_id": "wrap_up",
        "map_index": -1,
        "state": reports.state_of(report) if report else "published",
        "reason": None,
        "k": 5,
        "l": 2,
        "t": None,
        "algorithm": "mondrian",
        "engine": "local",
        **figures,
        **changed,
    }


def keep(catalogue: Catalogue, number: int, **changed: Any) -> str:
    """Keep a published release with its report; returns its id."""
    report = changed.pop("report", None) or report_of(state=changed.get("state", "published"))
    content = json.dumps(report).encode()
    return keep_entry(catalogue, entry(number, report, **changed), _report=content)


def keep_entry(catalogue: Catalogue, columns: dict[str, Any], **documents: bytes) -> str:
    """Keep a release with some documents, ``NAME.json`` each; returns its id."""
    with catalogue.writing() as connection:
        named = {f"{name}.json": content for name, content in documents.items()}
        releases.keep(connection, columns, named)
    return str(columns["id"])


def keep_series(catalogue: Catalogue, count: int, **changed: Any) -> str:
    """A series of the dataset's nights, the first of which is held; returns its name.

    Its boundaries are fitted in the second night, and anew in the night after three fifths of
    ``count``, up to which they drift. ``changed``: columns of each night, or the ``name``.
    """
    name = changed.pop("name", SERIES)
    refit = 3 * count // 5 + 1
    with catalogue.writing() as connection:
        inserted = connection.execute(series.insert().values(name=name, terms="{}"))
        (series_id,) = cast("tuple[int]", inserted.inserted_primary_key)
        for number in range(1, count + 1):
            row = _night_of_series(number, refit, f"{name} {number}")
            connection.execute(night_table.insert().values({**row, "series": series_id, **changed}))
    return name


def _night_of_series(number: int, refit: int, token: str) -> dict[str, Any]:
    day = FIRST + timedelta(days=number - 1)
    came = 3 if number == 1 else 260 + 37 * number % 180
    waits = 3 if number == 1 else (11 * number) % 29
    waited = 0 if number == 1 else 3 if number == 2 else (11 * (number - 1)) % 29
    since = number - refit if number >= refit else number - 2
    drift = 0.0 if number == refit else 0.004 * max(0, since) * (1.4 if number < refit else 0.5)
    nightly = 0.08 + 0.004 * (number % 4)
    loss = nightly * (1.07 + 1.5 * drift)
    figures = {
        "loss": 1.04 * loss,
        "sample_loss": loss,
        "sample_loss_nightly": nightly,
        "drift": drift,
        "boundaries": "{}" if number in (2, refit) else None,
    }
    return {
        "number": number,
        "token": token,
        "state": "held" if number == 1 else "published",
        "label": f"{day:%Y-%m-%d}",
        "input": f"/data/in/people/{day:%Y-%m-%d}.parquet",
        "output": f"/data/out/people/{day:%Y-%m-%d}",
        "work": f"/data/out/people/.{day:%Y-%m-%d}",
        "time": day.isoformat(timespec="microseconds"),
        "rows_in": came,
        "rows_published": 0 if number == 1 else came + waited - waits,
        "rows_suppressed": 0,
        "rows_waiting": waits,
        **({} if number == 1 else figures),
    }


def recorded_releases(
    at: Path | Place | None = None, run_id: str | None = None
) -> list[dict[str, Any]]:
    """What a catalogue holds, newest first: that at the place, or this Airflow's; of a run or all.

    ``documents``: the contents by name.
    """
    from mondrian_ops.hooks import settings

    place = Place.of(str(at)) if isinstance(at, Path) else at or settings.catalogue_place()
    with Catalogue(place).reading() as connection:
        newest = release.select().order_by(release.c.time.desc(), release.c.id)
        if run_id is not None:
            newest = newest.where(release.c.run_id == run_id)
        rows = [dict(row) for row in connection.execute(newest).mappings()]
        for row in rows:
            of_it = document.select().where(document.c.release == row["id"])
            row["documents"] = {each.name: each.content for each in connection.execute(of_it)}
    return rows


def night(number: int) -> dict[str, Any]:
    """The report of one of a dataset's nights: a million rows or so; the 40th loses more."""
    rows = 1_000_000 + 3_000 * (number % 7)
    loss = (1.6 if number == 39 else 1.0) * (1 + 0.02 * (number % 5))
    spreads = {"age": 0.12, "sex": 0.05, "zip": 0.22, "country": 0.09, "occupation": 0.31}
    shares = (0.17, 0.15, 0.14, 0.13, 0.12, 0.11, 0.10, 0.08)
    summaries = [
        _summary(
            at, round(share * rows), {n: s * loss * (0.7 + 0.08 * at) for n, s in spreads.items()}
        )
        for at, share in enumerate(shares)
    ]
    rows = sum(each["rows"] for each in summaries)
    return make(
        list(spreads),
        summaries=summaries,
        rows={"input": rows, "published": rows, "suppressed": 0},
        class_sizes=_class_sizes(rows),
        generalizations={
            "age": "interval", "sex": "set", "zip": "prefix",
            "country": "hierarchy", "occupation": "hierarchy",
        },
        partitioning={"strategy": "multidimensional", "asked": 8, "fragments": 8,
                      "sample_rows": 1000, "merged": 0, "note": ""},
        verification={"passed": True, "checked": ["k-anonymity, k = 5", "l-diversity, l = 2"],
                      "failures": [], "files": 8},
        timings_s={"partition": 1.2, "anonymize": 6.4, "wrap_up": 2.1},
        notes=[],
    )  # fmt: skip


def _class_sizes(rows: int) -> list[tuple[int, int]]:
    """Classes of 5 rows and more; larger ones are rarer."""
    share = {size: 0.82 ** (size - 5) for size in range(5, 30)}
    whole = sum(size * each for size, each in share.items())
    sizes = {size: int(rows * each / whole) for size, each in share.items()}
    left = rows - sum(size * classes for size, classes in sizes.items())
    sizes[5] += left // 5 - 1
    sizes[5 + left % 5] += 1
    return sorted(sizes.items())


def _summary(number: int, rows: int, losses: dict[str, float]) -> dict[str, Any]:
    """The summary of a fragment, given the mean loss of each column."""
    attributes = {}
    for name, loss in losses.items():
        exact, hidden = round(rows * max(0.0, 0.6 - loss)), round(rows * loss / 20)
        left = rows - exact - hidden
        steps = ((0.02, 0.3), (0.05, 0.25), (0.1, 0.2), (0.2, 0.15), (0.5, 0.08))
        widths = [[step, round(left * share)] for step, share in steps]
        widths.append([1.0, left - sum(count for _, count in widths)])
        attributes[name] = {"NCP": rows * loss, "LM": rows * loss * 0.9,
            "NCP_robust": rows * loss, "information": rows * loss / 2, "rows_exact": exact,
                            "rows_star": hidden, "rows_by_loss": widths}  # fmt: skip
    return {
        "id": number,
        "where": "",
        "rows": rows,
        "equivalence_classes": rows // 8,
        "DP": rows * 9,
        "NCP": rows * sum(losses.values()),
        "attributes": attributes,
        "seconds": round(rows / 130_000 + 0.1 * number, 2),
    }
