"""The figures of a release that depend neither on chance, nor on time, nor on the machine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_REPORT = (
    "rows",
    "achieved",
    "equivalence_classes",
    "class_sizes",
    "class_persons",
    "metrics",
    "risk",
    "levels",
    "columns",
)
_OF_FRAGMENT = ("where", "rows", "equivalence_classes", "DP", "NCP")
_OF_ATTRIBUTE = ("generalization", "NCP", "LM", "rows_exact", "rows_star")
_OF_PARTITIONING = ("strategy", "asked", "fragments", "sample_rows", "merged")
_OF_POINT = ("achieved", "suppressed", "equivalence_classes", "DP", "NCP", "LM")


def figures(report: Mapping[str, Any], table: pa.Table, by_lot: bool = False) -> dict[str, Any]:
    """The figures of a release, from its report and its table.

    ``by_lot``: leave out figures that depend on which of several equal rows is in which class.
    """
    names = _quasi_identifiers(report, table)
    kept = {name: report[name] for name in _REPORT if name in report}
    kept["attributes"] = {
        name: _part(each, _OF_ATTRIBUTE) for name, each in report["attributes"].items()
    }
    kept["fragments"] = [_part(each, _OF_FRAGMENT) for each in report.get("fragments", [])]
    kept["partitioning"] = _part(report.get("partitioning", {}), _OF_PARTITIONING)
    kept["schema"] = {field.name: str(field.type) for field in table.schema}
    kept["classes"] = _digest(Counter(_rows(table.select(names))).items())
    if by_lot:
        kept["achieved"] = {"k": kept["achieved"]["k"]}
    else:
        kept["published"] = _digest(_rows(table))
    return kept


def points(traced: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a frontier by k and l, from its JSON."""
    return {f"k={each['k']} l={each['l']}": _part(each, _OF_POINT) for each in traced["points"]}


def _quasi_identifiers(report: Mapping[str, Any], table: pa.Table) -> list[str]:
    """The published columns of the quasi-identifiers; one published as bounds has two."""
    of_column = {name: (name, f"{name}_min", f"{name}_max")
                 for name in report["columns"]["quasi_identifiers"]}  # fmt: skip
    return [name for names in of_column.values() for name in names if name in table.column_names]


def _rows(table: pa.Table) -> Iterable[str]:
    """Each row as text, because NaN is not equal to NaN."""
    return (repr(tuple(row.values())) for row in table.to_pylist())


def _digest(items: Iterable[Any]) -> str:
    """A hash of a multiset."""
    return hashlib.sha256("\n".join(sorted(map(str, items))).encode()).hexdigest()[:16]


def _part(whole: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: whole[name] for name in names if name in whole}
