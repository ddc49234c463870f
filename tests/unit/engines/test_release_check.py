"""A cluster says of a release what one process says of it, whatever became of its parts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_releases import CRITERIA, ILLS, job_of, releases
from engines.in_process import InProcessEngine
from hypothesis_profiles import examples
from mondrian_ops.engines.executor import Message
from staged_checks import DAMAGES, StagedRelease, outcome


@examples(1000)
@given(
    st.data(),
    releases(),
    st.sampled_from(CRITERIA),
    st.booleans(),
    st.sampled_from([*["none"] * 9, *DAMAGES]),
)
def test_a_cluster_says_what_one_process_says(
    data: Any, parts: Any, criteria: Any, has_persons: bool, damage: str
) -> None:
    numbers = st.integers(0, len(parts) - 1)
    buckets = data.draw(st.sampled_from([1, 2, 3, 7, 1024]), "buckets")
    with tempfile.TemporaryDirectory() as folder:
        release = StagedRelease(Path(folder), job_of(parts, criteria, has_persons), parts)
        DAMAGES[damage](release, data.draw(numbers, "one"), data.draw(numbers, "other"))
        expected = outcome(release.checked_here)
        assert outcome(lambda: release.checked_by(InProcessEngine(), buckets=buckets)) == expected


def people(rows: int, criteria: dict[str, Any], folder: Path) -> StagedRelease:
    """Three parts in classes of two rows; some classes are in all of them."""
    tables = [
        pa.table(
            {
                "q0": [f"[{(at // 2) % 5 + part}, 9]" for at in range(rows)],
                "s": [ILLS.leaves[at % 3] for at in range(rows)],
                "name": ["*"] * rows,
            }
        )
        for part in range(3)
    ]
    parts = [(table, pa.chunked_array([[str(at) for at in range(rows)]])) for table in tables]
    return StagedRelease(folder, job_of(parts, criteria, False), parts)


SENT = [("counts", 0), ("counts", 1), ("heads", 0), ("classes", 0)]


@pytest.mark.parametrize(
    ("criteria", "kind", "part"),
    [
        *(({"l": 2}, *each) for each in SENT),
        *(({"t": 0.3}, *each) for each in [*SENT, ("values", 0), ("values", 2)]),
    ],
)
def test_what_is_lost_or_comes_twice_between_steps_is_noticed(
    tmp_path: Path, criteria: dict[str, Any], kind: str, part: int
) -> None:
    """Of the parts, of their classes and heads, and of the answers."""
    release = people(20, criteria, tmp_path)
    sent: list[Message] = []
    release.checked_by(InProcessEngine(lambda each: bool(sent.append(each))))
    chosen = [each for each in sent if (each.kind, each.part) == (kind, part)]
    assert chosen
    for one in chosen:
        with pytest.raises(OSError):
            release.checked_by(InProcessEngine(lose=one.__eq__))
        with pytest.raises(OSError):
            release.checked_by(InProcessEngine(double=one.__eq__))
        for other in chosen:  # of as many rows, perhaps
            if other != one:
                with pytest.raises(OSError):
                    release.checked_by(InProcessEngine(one.__eq__, other.__eq__))


@pytest.mark.parametrize("first", ["[0, 9]", "[1, 9]"])
def test_intervals_that_are_no_unions_of_cells_are_found_by_either(
    tmp_path: Path, first: str
) -> None:
    boundaries = {
        "night": 3,
        "columns": {"q0": {"values": [*range(8), 10], "closed": True}},
    }
    release = people(20, {}, tmp_path)
    part = release.read(1)
    release.write(1, part.set_column(0, "q0", [[first, *part["q0"].to_pylist()[1:]]]))
    for wrong, values in ((0, boundaries["columns"]["q0"]["values"]), (1, [*range(1, 8), 10])):
        boundaries["columns"]["q0"]["values"] = values
        expected = outcome(lambda: release.checked_here(boundaries))
        assert outcome(lambda: release.checked_by(InProcessEngine(), boundaries)) == expected
        assert len(expected[0].failures) == wrong


@pytest.mark.parametrize(("kind", "criteria"), [("values", {"t": 0.9}), ("counts", {})])
def test_all_tasks_count_the_same_files(tmp_path: Path, kind: str, criteria: Any) -> None:
    """A part that is written again between two passes, or when a lost task is done again."""
    release = people(20, criteria, tmp_path)

    def rewritten(message: Message) -> bool:
        if message.kind == kind and message.part == 0:
            release.write(1, release.read(1))
        return False

    with pytest.raises(OSError, match="written again since the check began"):
        release.checked_by(InProcessEngine(lose=rewritten))


def test_rows_are_found_in_the_part_that_has_them(tmp_path: Path) -> None:
    """The worst class is told by a row of it, however the classes are divided."""
    release = people(20, {}, tmp_path)
    part = release.read(2)
    release.write(2, part.set_column(0, "q0", [[*part["q0"].to_pylist()[:-1], "[77, 99]"]]))
    verdict = release.checked_by(InProcessEngine()).verdict
    name = Path(release.paths[2]).name
    assert verdict.failures[0].endswith(f"(row 19 of {name} is in it)")
