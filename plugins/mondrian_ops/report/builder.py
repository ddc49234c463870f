"""The report of a run, added up from the results of its three phases.

Counts and losses come from the independent verification of the files as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from mondrian_ops.late_methods import dataclass
from mondrian_ops.report.document import Columns, Report
from mondrian_ops.report.limits import limits_of
from mondrian_ops.report.raw_columns import disclosures
from mondrian_ops.report.risk import risks_beside
from mondrian_ops.report.statements import published_raw
from mondrian_ops.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What a report tells of one run, in plain values.

    Attributes:
        job: ``Job.to_dict()``.
        rows: ``{"input", "published", "suppressed"}``, and in a series ``waited`` and ``waiting``.
        class_sizes: pairs (size, number of classes of that size), as recounted from the files.
        achieved: those of ``{"k", "l", "t"}`` that were measured, and those of ``criteria``.
        verification: ``{"passed", "checked": [text], "failures": [text], "files"}``.
        summaries: one per fragment: ``{"id", "where", "rows", "equivalence_classes", "DP", "NCP",
            "attributes": {name: {"NCP", "LM", "NCP_robust", "information", "rows_exact",
            "rows_star", "rows_by_loss"}},
            "seconds"}``, where an attribute's NCP and LM are sums over the fragment's rows, and
            ``rows_by_loss`` has pairs (loss, rows) of the rows neither exact nor hidden.
        columns: ``{"identifiers", "identifier_policy", "quasi_identifiers", "sensitive",
            "unlisted", "unlisted_policy", "index"}``: lists of column names, and the two policies;
            ``index`` are the columns of a pandas index, which are left out.
        generalizations: how each quasi-identifier was generalized, by name.
        grids: the steps of the grids that the values of quasi-identifiers decided.
        class_persons: where k counts persons, triples (persons, number of classes with so many,
            rows of these); risks are of persons then.
        recoding: of algorithms that recode whole columns: ``levels``, the generalization level of
            each attribute, their own ``metrics``, a ``summary`` in words, and other keys for the
            report.
        dependencies: :class:`~mondrian_ops.data.finding.Finding` as dicts.
        singled_out: :class:`~mondrian_ops.verify.singling_out.SingledOut` as dicts.
        use: see :class:`~mondrian_ops.report.document.Use`.
        made_by, requested_by, run_type: see :func:`statements.maker` and
            :func:`statements.requested`.
        series: the night of a series, see :class:`~mondrian_ops.report.document.SeriesNight`.
        source: how the input was read, see :class:`~mondrian_ops.report.document.Source`.
        sensitive: by sensitive column, see :class:`~mondrian_ops.report.document.Sensitive`.
        criteria: of packages, see :class:`~mondrian_ops.report.document.AddedCriterion`.
        phases: what each of them has cost, see :class:`~mondrian_ops.report.document.PhaseCost`.
    """

    job: Mapping[str, Any]
    rows: Mapping[str, int]
    class_sizes: Iterable[Sequence[int]]
    achieved: Mapping[str, Any]
    verification: Mapping[str, Any]
    summaries: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Any]
    generalizations: Mapping[str, str]
    partitioning: Mapping[str, Any]
    cut: Mapping[str, Any]
    retrieval: Mapping[str, Any]
    timings_s: Mapping[str, float]
    class_persons: Iterable[Sequence[int]] | None = None
    recoding: Mapping[str, Any] | None = None
    dependencies: Sequence[Mapping[str, Any]] = ()
    singled_out: Sequence[Mapping[str, Any]] = ()
    use: Mapping[str, Any] = field(default_factory=dict)
    grids: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    made_by: str | None = None
    requested_by: str | None = None
    run_type: str | None = None
    series: Mapping[str, Any] | None = None
    source: Mapping[str, Any] | None = None
    sensitive: Mapping[str, Mapping[str, Any]] | None = None
    criteria: Sequence[Mapping[str, Any]] = ()
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def build(run: RunFigures) -> Report:
    """The report of one run.

    In the report an attribute's NCP and LM are means per row, in [0, 1]; the release's NCP and DP
    are sums (docs/algorithms.md#how-loss-is-measured).
    """
    sizes = sorted((int(size), int(count)) for size, count in run.class_sizes)
    persons = None
    if run.class_persons is not None:
        persons = sorted(tuple(map(int, each)) for each in run.class_persons)
    k = int(run.job["k"])
    attributes = merge_attributes(run.summaries, run.generalizations, run.rows["published"])
    for name, step in run.grids.items():
        attributes[name]["grid"] = step
    tight = {name: how for name, how in run.generalizations.items() if name not in run.grids}
    how = dict(run.recoding or {})
    own = {name: how.pop(name) for name in ("levels", "metrics") if name in how}
    roles = Columns.of(run.columns)
    found = list(run.dependencies)
    sensitive = {name: dict(each) for name, each in (run.sensitive or {}).items()}
    note = {"note": published_raw(roles), "columns": list(roles.raw)}
    split = run.partitioning.get("split_classes", 0)
    titles = [str(each["title"]) for each in run.criteria]
    use = dict(run.use)
    before = use.pop("before", None)
    report = {
        "outcome": None,  # of which `outcome.conclude` tells
        **({"published_raw": note} if roles.raw else {}),
        **({"dependencies": {"notes": disclosures(found), "findings": found}} if found else {}),
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "made_by": run.made_by,
        "requested_by": run.requested_by,
        "run_type": run.run_type,
        "job": dict(run.job),
        "input": run.job.get("input"),
        **({"source": dict(run.source)} if run.source else {}),
        "columns": dict(run.columns),
        "rows": dict(run.rows),
        **({} if run.series is None else {"series": dict(run.series)}),
        "achieved": dict(run.achieved),
        **({"criteria": [dict(each) for each in run.criteria]} if run.criteria else {}),
        "equivalence_classes": sum(count for _, count in sizes),
        **({"singled_out": list(run.singled_out)} if run.singled_out else {}),
        "class_sizes": [list(pair) for pair in sizes],
        **({} if persons is None else {"class_persons": [list(each[:2]) for each in persons]}),
        "metrics": _metrics(sizes, run.summaries, attributes, run.rows, k, _weights(run.job))
        | own.get("metrics", {}),
        "risk": {
            **(_risk(sizes) if persons is None else _risk_of_persons(persons)),
            **risks_beside(persons or sizes, k, before, run.job.get("sampling_fraction")),
        },
        **({"levels": own["levels"]} if "levels" in own else {}),
        **({"recoding": how} if how else {}),
        **({"use": use} if use else {}),
        "attributes": attributes,
        **({"sensitive": sensitive} if sensitive else {}),
        "fragments": [_fragment(summary) for summary in run.summaries],
        "partitioning": dict(run.partitioning),
        "cut": dict(run.cut),
        "retrieval": dict(run.retrieval),
        "verification": dict(run.verification),
        "timings_s": {phase: round(seconds, 3) for phase, seconds in run.timings_s.items()},
        "phases": {phase: dict(cost) for phase, cost in run.phases.items()},
        "notes": list(run.notes),
        "limits": limits_of(run.job, roles, tight, split, titles),
    }
    return Report.of(report)


def merge_attributes(
    summaries: Sequence[Mapping[str, Any]], generalizations: Mapping[str, str], rows: int
) -> dict[str, dict[str, Any]]:
    """Add the fragments' sums per attribute; of the two losses, return the means over `rows`."""
    merged: dict[str, dict[str, Any]] = {}
    for name, generalization in generalizations.items():
        parts = [summary["attributes"][name] for summary in summaries]
        merged[name] = {
            "NCP": _mean(sum(part["NCP"] for part in parts), rows),
            "LM": _mean(sum(part["LM"] for part in parts), rows),
            "NCP_robust": _mean(sum(part["NCP_robust"] for part in parts), rows),
            "information_lost": min(1.0, _mean(sum(part["information"] for part in parts), rows)),
            "generalization": generalization,
            "rows_exact": sum(int(part["rows_exact"]) for part in parts),
            "rows_star": sum(int(part["rows_star"]) for part in parts),
            "rows_by_loss": _added([part["rows_by_loss"] for part in parts]),
        }
    return merged


def _added(parts: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Pairs (key, count) of several parts as one, the counts of a key added."""
    counts: dict[float, float] = {}
    for key, count in (pair for part in parts for pair in part):
        counts[key] = counts.get(key, 0) + count
    return [[key, counts[key]] for key in sorted(counts)]


def _metrics(
    sizes: Sequence[tuple[int, int]],
    summaries: Sequence[Mapping[str, Any]],
    attributes: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, int],
    k: int,
    weights: Mapping[str, float],
) -> dict[str, float]:
    classes = sum(count for _, count in sizes)
    published, suppressed = rows["published"], rows["suppressed"]
    ncp = float(sum(summary["NCP"] for summary in summaries))
    # A suppressed row has lost everything: it counts 1 per attribute (Iyengar's loss).
    lost = sum(float(a["LM"]) * published + suppressed for a in attributes.values())
    robust = sum(float(a["NCP_robust"]) for a in attributes.values())
    of_columns = [
        (weights.get(name, 1.0), float(each["information_lost"]) * published + suppressed)
        for name, each in attributes.items()
    ]
    information = sum(weight * lost for weight, lost in of_columns)
    return {
        "DP": sum(size * size * count for size, count in sizes),
        "NCP": ncp,
        "GCP": _mean(ncp, published * len(attributes)),
        "LM": _mean(lost, (published + suppressed) * len(attributes)),
        "C_avg": _mean(_mean(published, classes), k),
        "GCP_robust": _mean(robust, len(attributes)),
        "information_lost": _mean(
            information, (published + suppressed) * sum(weight for weight, _ in of_columns)
        ),
    }


def _weights(job: Mapping[str, Any]) -> dict[str, float]:
    """The weights of the quasi-identifiers that have one."""
    return {
        each["name"]: float(each["weight"])
        for each in job.get("quasi_identifiers", ())
        if isinstance(each, Mapping) and "weight" in each
    }


def _risk(sizes: Sequence[tuple[int, ...]]) -> dict[str, float]:
    """The chance of picking the right row (El Emam and Dankar 2008).

    Prosecutor: for a person who is known to be in the data. Journalist: for a person who may not be
    in it; at most the prosecutor's, because the population's classes are at least as large.
    Marketer: the share of all rows that somebody names rightly who matches everybody.
    """
    rows = sum(size * count for size, count in sizes)
    classes = sum(count for _, count in sizes)
    highest = 1 / sizes[0][0] if sizes else 0.0
    return {
        "prosecutor_max": highest,
        "prosecutor_avg": _mean(classes, rows),
        "journalist_max": highest,
        "marketer": _mean(classes, rows),
        "rows_at_most_risk": sizes[0][0] * sizes[0][1] if sizes else 0,
    }


def _risk_of_persons(persons: Sequence[tuple[int, ...]]) -> dict[str, float]:
    """The chance of picking the right person, where a person may have several rows."""
    risk = _risk([each[:2] for each in persons])
    return {**risk, "rows_at_most_risk": persons[0][2] if persons else 0}


def _fragment(summary: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("id", "where", "rows", "equivalence_classes", "DP", "NCP", "seconds")
    return {key: summary[key] for key in keys if key in summary}


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0
