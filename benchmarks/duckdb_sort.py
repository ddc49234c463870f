"""The yardstick: DuckDB reads, sorts by the given columns and writes. A process of its own."""

from __future__ import annotations

import argparse

import duckdb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("columns", nargs="+")
    options = parser.parse_args()
    order = ", ".join('"' + name.replace('"', '""') + '"' for name in options.columns)
    query = f"SELECT * FROM read_parquet(?) ORDER BY {order}"  # noqa: S608 - quoted above
    relation = duckdb.sql(query, params=[options.source])
    assert relation is not None
    relation.write_parquet(options.target)


if __name__ == "__main__":
    main()
