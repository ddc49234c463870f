from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mondrian_ops.datasets import generate, people, poker
from mondrian_ops.errors import InputError, StorageError


class TestGenerate:
    def test_parquet(self, tmp_path: Path) -> None:
        output = tmp_path / "new" / "poker.parquet"
        generate("poker", rows=300_000, seed=9, output=str(output))
        assert pq.read_table(output).combine_chunks() == poker(300_000, 9)
        assert [path.name for path in output.parent.iterdir()] == ["poker.parquet"]

    def test_csv(self, tmp_path: Path) -> None:
        output = tmp_path / "people.csv"
        generate("people", rows=500, seed=9, output=str(output))
        read = pyarrow.csv.read_csv(
            output,
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=people(1, 0).schema, strings_can_be_null=True
            ),
        )
        assert read.combine_chunks() == people(500, 9)

    def test_an_earlier_file_is_replaced(self, tmp_path: Path) -> None:
        output = tmp_path / "poker.parquet"
        generate("poker", rows=10, seed=0, output=str(output))
        generate("poker", rows=20, seed=0, output=str(output))
        assert pq.read_metadata(output).num_rows == 20

    @pytest.mark.parametrize(
        ("kind", "rows", "name", "error", "message"),
        [
            ("pokr", 1, "x.parquet", InputError, "kind: 'pokr' .*did you mean 'poker'"),
            ("poker", 0, "x.parquet", InputError, "rows: must be at least 1, not 0"),
            ("poker", 1, "x.txt", StorageError, "output: .* must end in .parquet or .csv"),
            ("poker", 1, "taken.csv", StorageError, "output: .* is a directory"),
            ("poker", 1, "file/x.csv", StorageError, "output: .* cannot be written"),
        ],
    )
    def test_what_cannot_be_done(
        self,
        tmp_path: Path,
        kind: str,
        rows: int,
        name: str,
        error: type[Exception],
        message: str,
    ) -> None:
        (tmp_path / "taken.csv").mkdir()
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(error, match=message):
            generate(kind, rows=rows, seed=0, output=str(tmp_path / name))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken.csv"]
