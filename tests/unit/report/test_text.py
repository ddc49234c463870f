"""The report as text: its width and its colours."""

from __future__ import annotations

import re

import pytest

from mondrian_ops import report as reports
from report_samples import make


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "names", [["age"], [f"a long name of a column {i}" * 3 for i in range(50)]]
)
def test_text_fits_its_width_without_colour(width: int, names: list[str]) -> None:
    plain = reports.render_text(make(names, fragments=20), width)
    assert max(len(line) for line in plain.split("\n")) <= width
    assert "\x1b" not in plain


def test_text_has_colour_when_asked() -> None:
    coloured = reports.render_text(make(), colour=True)
    assert "\x1b[1;32mPUBLISHED" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == reports.render_text(make())
