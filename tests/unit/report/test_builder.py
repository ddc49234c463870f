"""The report: the sums over its fragments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mondrian_ops import report as reports
from report_samples import make


def test_build_adds_up_the_fragments() -> None:
    report = make(fragments=2)
    assert report["equivalence_classes"] == 22
    assert report["metrics"]["DP"] == 22 * 25
    assert report["metrics"]["NCP"] == pytest.approx(110 * 0.2 * 2)
    assert report["metrics"]["GCP"] == pytest.approx(0.2)
    assert report["metrics"]["LM"] == pytest.approx(0.1)
    assert report["metrics"]["C_avg"] == pytest.approx(1.0)
    assert report["risk"] == {
        "prosecutor_max": 0.2,
        "prosecutor_avg": 0.2,
        "journalist_max": 0.2,
        "marketer": 0.2,
        "rows_at_most_risk": 110,
    }
    assert report["attributes"]["age"]["NCP"] == pytest.approx(0.2)
    assert report["attributes"]["age"]["rows_exact"] == 55
    assert report["attributes"]["age"]["rows_by_loss"] == [[0.1, 1], [1.0, 6]]
    assert [f["id"] for f in report["fragments"]] == [0, 1]
    assert "attributes" not in report["fragments"][0]
    assert report["timings_s"]["partition"] == 0.123
    assert "levels" not in report


def test_a_suppressed_row_counts_as_lost_in_lm_alone() -> None:
    report = make(suppressed=110)
    assert report["metrics"]["LM"] == pytest.approx((0.1 + 1) / 2)
    assert report["metrics"]["GCP"] == pytest.approx(0.2)


def test_build_of_a_release_without_rows() -> None:
    report = make(fragments=0, class_sizes=[], suppressed=10)
    assert report["metrics"]["C_avg"] == 0
    assert report["metrics"]["LM"] == 1
    assert reports.render_html(report) and reports.render_text(report)


def test_importing_the_report_is_light() -> None:
    code = (
        "import sys, mondrian_ops.report;"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'rich', 'airflow'} & set(sys.modules);"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    plugins = Path(reports.__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(plugins)}
    )
