"""The files of a frontier."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from frontier_jobs import small_job
from mondrian_ops import pipeline
from mondrian_ops.errors import StorageError
from mondrian_ops.pipeline import frontier
from mondrian_ops.report import frontier_files, frontier_text


class TestFiles:
    @pytest.fixture
    def traced(self, tmp_path: Path) -> dict[str, Any]:
        return frontier.trace(small_job(tmp_path), frontier.points([2, 5, 301], [1, 2]))

    def test_the_csv_has_a_row_for_every_point(self, traced: dict[str, Any]) -> None:
        rows = list(csv.DictReader(io.StringIO(frontier_files(traced)["frontier.csv"].decode())))
        assert [(row["k"], row["l"]) for row in rows] == [
            *(("2", "1"), ("5", "1"), ("301", "1")),
            *(("2", "2"), ("5", "2"), ("301", "2")),
        ]
        assert [row["attainable"] for row in rows] == ["1", "1", "0"] * 2
        for row, point in zip(rows, traced["points"], strict=True):
            if row["attainable"] == "1":
                assert float(row["GCP"]) == point["GCP"]
                assert int(row["achieved_k"]) == point["achieved"]["k"] >= point["k"]
                assert row["reason"] == ""
            else:
                assert row["GCP"] == ""
                assert "301" in row["reason"]

    def test_the_picture_is_well_formed_and_says_what_it_shows(
        self, traced: dict[str, Any]
    ) -> None:
        root = ET.fromstring(frontier_files(traced)["frontier.svg"])  # noqa: S314 - our own
        space = "{http://www.w3.org/2000/svg}"
        assert root.tag == f"{space}svg"
        assert root.findtext(f"{space}title") == "Privacy frontier"
        assert "k = 5, l = 2: lost" in str(root.findtext(f"{space}desc"))
        ids = [each.get("id") for each in root.iter() if each.get("id")]
        assert len(ids) == len(set(ids))
        titles = [str(each.text) for each in root.iter(f"{space}title")]
        assert sum("not attainable" in title for title in titles) == 4  # two points, two charts

    def test_the_table_fits_what_is_there(self, traced: dict[str, Any]) -> None:
        lines = frontier_text(traced, 80).splitlines()
        assert [line.split()[0] for line in lines[:5]] == ["k", "2", "5", "2", "5"]
        assert len({len(line) for line in lines[:5]}) == 1
        assert sum(line.startswith("Not attainable: k = 301, no l; k = 301") for line in lines) == 1

    def test_a_grid_without_any_attainable_point_is_shown(self, tmp_path: Path) -> None:
        traced = frontier.trace(small_job(tmp_path), frontier.points([301], [1]))
        files = frontier_files(traced)
        assert b"not attainable" in files["frontier.svg"]
        assert "not attainable" in frontier_text(traced).lower()

    def test_files_replace_earlier_ones_and_leave_others(
        self, traced: dict[str, Any], tmp_path: Path
    ) -> None:
        folder = tmp_path / "deep" / "frontier"
        frontier.write(traced, str(folder))
        (folder / "mine.txt").write_text("mine")
        written = frontier.write(traced, str(folder))
        assert sorted(each.name for each in folder.iterdir()) == [
            *("frontier.csv", "frontier.html", "frontier.svg", "mine.txt"),
        ]
        assert all(Path(each).is_file() for each in written)

    def test_no_release_is_written_into(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        assert frontier.folder_of(job) == f"{job.output}_frontier"
        pipeline.run(job)
        with pytest.raises(StorageError, match="holds a release"):
            frontier.folder_of(job, job.output)
