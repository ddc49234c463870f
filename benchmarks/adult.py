"""Adult, on which several sources measure: where it is, its columns and the jobs on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.context import Context

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    "occupation",
)  # fmt: skip


@dataclass(frozen=True)
class Adult:
    """The data folder's part: the rows, and a hierarchy of each column by its name."""

    context: Context
    path: Path

    @property
    def hierarchies(self) -> Path:
        """The folder of the hierarchies."""
        return self.path.parent / "hierarchies"

    def table(self) -> pa.Table:
        from pyarrow import csv

        return csv.read_csv(self.path, parse_options=csv.ParseOptions(delimiter=";"))

    def job(self, intervals: Collection[str] = (), **changes: Any) -> dict[str, Any]:
        """All columns by their hierarchies, or some as intervals."""
        return {
            "input": str(self.path),
            "output": str(self.context.scratch / "adult"),
            "quasi_identifiers": [
                f"{name}=interval" if name in intervals else f"{name}=hierarchy:{name}.csv"
                for name in COLUMNS
            ],
            **changes,
        }

    def report(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run a job that :meth:`job` made, in this process; its report."""
        return self.context.report(job, self.hierarchies)


def adult(context: Context, part: str) -> Iterator[Adult]:
    """Adult, once; nothing, which is said, where the data folder lacks it."""
    path = context.data / "adult" / "adult.csv" if context.data else None
    if path is not None and path.exists():
        yield Adult(context, path)
    else:
        context.say(f"{part}: no data folder with adult/adult.csv; give one with --data")
