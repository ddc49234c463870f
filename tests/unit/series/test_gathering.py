"""What refuses the rows of a night before it begins."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops import tables
from mondrian_ops.data.pool import HIDDEN
from mondrian_ops.errors import InputError, StorageError
from mondrian_ops.series import gathering
from mondrian_ops.series.history import Waiting


@pytest.mark.parametrize("name", HIDDEN)
def test_a_drop_has_no_column_of_a_name_that_a_series_needs(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"age": [1], name: [1]}), tmp_path / "drop.parquet")
    with pytest.raises(InputError, match=f"^column '{name}' has a name .* reserves .*; rename it$"):
        gathering._refuse_names(tables.open_table(str(tmp_path / "drop.parquet")))
    pq.write_table(pa.table({"age": [1]}), tmp_path / "drop.parquet")
    gathering._refuse_names(tables.open_table(str(tmp_path / "drop.parquet")))


def _waits(**rows: int) -> list[Waiting]:
    return [Waiting(origin=int(night[1:]), file="", rows=count) for night, count in rows.items()]


@pytest.mark.parametrize("found", [{}, {1: 3}, {1: 3, 2: 5}, {1: 4, 2: 4}, {1: 3, 2: 4, 3: 1}])
def test_other_rows_than_the_catalogue_knows_of_are_refused(found: dict[int, int]) -> None:
    with pytest.raises(StorageError, match="restore both from backups of the same time"):
        gathering._refuse_others(Counter(found), _waits(n1=3, n2=4))
    gathering._refuse_others(Counter({1: 3, 2: 4}), _waits(n1=3, n2=4))
    gathering._refuse_others(Counter(), [])


@pytest.mark.parametrize("kept", [{}, {1: "one"}, {2: "two"}, {1: "one", 2: "an older two"}])
def test_rows_that_came_otherwise_than_the_catalogue_says_are_refused(kept: dict[int, str]) -> None:
    with pytest.raises(StorageError, match="tells of another arrival than their file"):
        gathering._refuse_older({1: "one", 2: "two"}, kept)
    gathering._refuse_older({1: "one", 2: "two"}, {1: "one", 2: "two", 3: "was published since"})
