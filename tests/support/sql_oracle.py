"""What programs that know nothing of this project say of a release: DuckDB and Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

# Rows, classes, k, and the l of each sensitive column: a count of distinct values ignores nulls.
_SQL = """
select sum(size), count(*), min(size){least}
from (select count(*) as size{diversities} from {{release}} group by {quasi})
"""


def by_duckdb(sql: str, release: Path) -> Sequence[Any]:
    """The first row of a query of a release, by DuckDB."""
    import duckdb

    source = f"read_parquet('{release}/part-*.parquet')"
    (found,) = duckdb.sql(sql.format(release=source).replace("`", '"')).fetchall()
    return found


def by_spark(session: Any) -> Callable[[str, Path], Sequence[Any]]:
    """As :func:`by_duckdb`, by a session of Spark."""

    def first(sql: str, release: Path) -> Sequence[Any]:
        source = f"parquet.`{release}/part-*.parquet`"
        found: Sequence[Any] = session.sql(sql.format(release=source)).first()
        return found

    return first


def agree(
    report: Mapping[str, Any],
    release: Path,
    query: Callable[[str, Path], Sequence[Any]] = by_duckdb,
) -> None:
    """The figures of a report are what SQL finds in the files of its release.

    l where it is the number of distinct values, k where it is counted in rows and not in persons.
    """
    job, columns = report["job"], ds.dataset(release).schema.names
    names = report["columns"]["quasi_identifiers"]
    bounds = [f"{name}_{end}" for name in names for end in ("min", "max", "hidden")]
    is_bounds = job.get("interval_style") == "bounds"
    quasi = [name for name in [*names, *(bounds if is_bounds else [])] if name in columns]
    # Missing values count as one where the job says so.
    is_value = job.get("missing_sensitive") == "value"
    missing = " + max(case when `{0}` is null then 1 else 0 end)" if is_value else ""
    diversity = ", count(distinct `{0}`)" + missing + " as l{1}"
    sensitive = report["columns"]["sensitive"]
    sql = _SQL.format(
        least="".join(f", min(l{at})" for at in range(len(sensitive))),
        diversities="".join(diversity.format(name, at) for at, name in enumerate(sensitive)),
        quasi=", ".join(f"`{name}`" for name in quasi),
    )
    rows, classes, k, *diversities = map(int, query(sql, release))
    assert (rows, classes) == (report["rows"]["published"], report["equivalence_classes"])
    if not job.get("entity_id"):
        assert k == report["achieved"]["k"]
    if diversities and job.get("diversity") in (None, "distinct"):
        assert min(diversities) == report["achieved"]["l"]
