"""An inspection on a terminal."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mondrian_ops.inspection.inspector import inspect
from mondrian_ops.inspection.text import render_text
from unknown_tables import patients


@pytest.mark.parametrize("width", [60, 80])
def test_lines_are_no_longer_than_the_terminal(width, tmp_path):
    path = tmp_path / "people.parquet"
    long = patients().append_column(
        "a_column_with_a_very_long_name_of_its_own", pa.array([1] * 600)
    )
    pq.write_table(long, path)
    text = render_text(inspect(str(path)), width)
    assert max(map(len, text.splitlines())) <= max(width, len(str(path)))
    for shown in ("600 rows, 12 columns", "diag", "quasi-identifier", "zip + pain"):
        assert shown in text
