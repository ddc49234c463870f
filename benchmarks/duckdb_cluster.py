"""Put a Parquet file's rows into the order of some expressions. A process of its own."""

from __future__ import annotations

import argparse

import duckdb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("expressions", nargs="+", help="as SQL has them")
    options = parser.parse_args()
    order = ", ".join(options.expressions)
    query = f"SELECT * FROM read_parquet(?) ORDER BY {order}"  # noqa: S608 - the benchmarks' own
    relation = duckdb.sql(query, params=[options.source])
    assert relation is not None
    relation.write_parquet(options.target, compression="zstd", row_group_size=1 << 17)


if __name__ == "__main__":
    main()
