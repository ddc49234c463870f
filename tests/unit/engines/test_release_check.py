"""A cluster says of a release what one process says of it, whatever became of its parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from added_criteria import added
from drawn_releases import CRITERIA, ILLS, job_of, releases
from engines.in_process import InProcessEngine
from hypothesis_profiles import examples
from mondrian_ops import publish
from mondrian_ops.engines.executor import Message
from mondrian_ops.engines.release_check import ReleaseCheck, counted_part
from mondrian_ops.errors import PrivacyError
from mondrian_ops.verify import requirements
from mondrian_ops.verify.labels import labels_of_job
from staged_checks import DAMAGES, StagedRelease, outcome
from tiers import in_soak, one_here


@examples(100)
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
        found = outcome(lambda: release.checked_by(InProcessEngine(), buckets=buckets))
        # A cluster may meet a file that is no Parquet before one process does: both refuse it.
        if damage == "no Parquet" and isinstance(expected[0], type):
            assert isinstance(found[0], type)
        else:
            assert found == expected


@examples(60)
@given(
    st.data(),
    releases(),
    st.sampled_from(["2", "0.4", "50 %"]),
    st.sampled_from([{}, {"missing_sensitive": "value"}, {"diversity": "entropy"}]),
    st.booleans(),
)
def test_a_cluster_measures_numbers_as_one_process_does(
    data: Any, parts: Any, width: str, criteria: Any, has_persons: bool
) -> None:
    buckets = data.draw(st.sampled_from([1, 2, 7]), "buckets")
    criteria = {"l": 2, "l_width": {"s": width}, **criteria}
    numbers, ills = pa.array([1.5, 2, 3, 9]), pa.array(ILLS.leaves)
    numbered = []
    for part, persons in parts:
        values = numbers.take(pc.index_in(part["s"].combine_chunks(), value_set=ills))
        numbered.append((part.set_column(part.column_names.index("s"), "s", values), persons))
    parts = numbered
    with tempfile.TemporaryDirectory() as folder:
        release = StagedRelease(Path(folder), job_of(parts, criteria, has_persons), parts)
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


def test_losses_are_measured_where_the_parts_are_counted(tmp_path: Path) -> None:
    release = people(20, {"l": 2}, tmp_path)
    domain = pa.array([0, 9])
    labels = labels_of_job(release.job, {"q0": domain.type}, {"q0": domain}, {}, {})
    tables = [(release.read(part), None) for part in range(3)]
    measured = StagedRelease(tmp_path / "measured", release.job, tables, labels)
    parts = measured.checked_by(InProcessEngine()).parts
    assert parts == measured.checked_here().parts
    assert [part.losses["q0"]["NCP"] for part in parts] == pytest.approx(
        [sum(9 - (at // 2) % 5 - part for at in range(20)) / 9 for part in range(3)]
    )


SENT = [("counts", 0), ("counts", 1), ("heads", 0), ("classes", 0)]


@pytest.mark.parametrize(
    ("criteria", "kind", "part"),
    [
        ({"l": 2}, *SENT[0]),
        *one_here((({"t": 0.3}, *each) for each in [*SENT[2:], ("values", 0)]), of=2),
        *in_soak([({"l": 2}, *SENT[1]), ({"t": 0.3}, *SENT[1]), ({"t": 0.3}, "values", 2)]),
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
    for one, other in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        with pytest.raises(OSError):
            release.checked_by(InProcessEngine(lose=one.__eq__))
        with pytest.raises(OSError):
            release.checked_by(InProcessEngine(double=one.__eq__))
        if other != one:  # of as many rows, perhaps
            with pytest.raises(OSError):
                release.checked_by(InProcessEngine(one.__eq__, other.__eq__))


@pytest.mark.parametrize("first", ["[0, 9]", "[1, 9]"])
def test_intervals_that_are_no_unions_of_cells_are_found_by_either(
    tmp_path: Path, first: str
) -> None:
    boundaries = {
        "night": 3,
        "columns": {"q0": {"values": [], "closed": True}},
    }
    release = people(20, {}, tmp_path)
    part = release.read(1)
    release.write(1, part.set_column(0, "q0", [[first, *part["q0"].to_pylist()[1:]]]))
    ends = [*range(8), 10]
    for wrong, values in ((0, ends), (1, ends[1:]), (1, ends[:4] + ends[5:])):
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


def answered(release: StagedRelease) -> tuple[ReleaseCheck, list[dict[str, Any]]]:
    """A check, and what a cluster answers."""
    check = ReleaseCheck.of(release.job, release.paths, release.rows, {"s": ILLS}, None)
    vars(check)["buckets"] = 3
    return check, InProcessEngine().check(release.run, check)


def staged(sizes: Sequence[int], criteria: dict[str, Any], folder: Path) -> StagedRelease:
    """Parts of so many rows."""
    names = ["q0", "s", "name"]
    rows = [[["a", ILLS.leaves[at % 3], "*"] for at in range(size)] for size in sizes]
    types = pa.schema({name: pa.string() for name in names})
    tables = [
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in part], types)
        for part in rows
    ]
    parts = [(table, pa.chunked_array([["p"] * table.num_rows], pa.string())) for table in tables]
    return StagedRelease(folder, job_of(parts, criteria, False), parts)


@pytest.mark.parametrize("sizes", [[0, 2, 1, 0], [1, 1, 0, 3], [2, 2, 2]])
@pytest.mark.parametrize("criteria", [{}, {"t": 0.9}])
def test_answers_that_lack_something_or_have_it_twice_are_no_verdict(
    tmp_path: Path, sizes: list[int], criteria: dict[str, Any]
) -> None:
    """Also parts without rows, of whom the sums of rows tell nothing."""
    check, answers = answered(staged(sizes, criteria, tmp_path))
    assert check.concluded(answers).count.rows == sum(sizes)
    (head,) = (each for each in answers if "parts" in each)
    others = [each for each in answers if each is not head]
    parts = head["parts"]
    for at in range(len(sizes)):
        for changed in (parts[:at] + parts[at + 1 :], [*parts, parts[at]], parts[at:] + parts[:at]):
            if changed != parts:
                with pytest.raises(OSError, match="each part of the release once"):
                    check.concluded([head | {"parts": changed}, *others])
    bucket = next(each for each in others if "bucket" in each)
    with pytest.raises(OSError, match="some classes of the release twice"):
        check.concluded([*answers, bucket])
    (size, number), *rest = bucket["figures"]["sizes"]
    for other in (number - 1, number + 1):
        figures = bucket["figures"] | {"sizes": [[size, other], *rest]}
        wrong = [bucket | {"figures": figures} if each is bucket else each for each in answers]
        with pytest.raises(OSError, match="have other rows than the parts"):
            check.concluded(wrong)
    for each in others if criteria else ():
        for other in (-1, 1) if "parts_with_values" in each else ():
            wrong = [*answers, {"parts_with_values": other}]
            with pytest.raises(OSError, match="the values of each part"):
                check.concluded(wrong)


@pytest.mark.parametrize(("rows", "buckets"), [(0, 1), (1, 1), (10, 1), (11, 2), (30, 3), (31, 4)])
def test_a_bucket_has_so_many_rows_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, buckets: int
) -> None:
    monkeypatch.setattr("mondrian_ops.engines.release_check.BUCKET_ROWS", 10)
    release = staged([1], {}, tmp_path)
    assert ReleaseCheck.of(release.job, release.paths, rows, {}, None).buckets == buckets


@pytest.mark.parametrize("seconds", [-9, 9])
def test_a_part_that_was_written_again_is_not_the_one_to_check(
    tmp_path: Path, seconds: int
) -> None:
    """Whatever the clock of the machine that wrote it says."""
    release = staged([3], {}, tmp_path)
    check = ReleaseCheck.of(release.job, release.paths, 3, {}, None)
    assert len(list(check.count(release.work, 0))) == 2
    path = Path(release.paths[0])
    written = path.stat().st_mtime + seconds
    os.utime(path, (written, written))
    with pytest.raises(OSError, match="written again since the check began"):
        list(check.count(release.work, 0))


def test_a_part_that_is_written_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    """Its persons are those of the content before; of the two digests either may be the greater."""
    release = StagedRelease(
        tmp_path, replace(staged([3], {}, tmp_path / "a").job, entity_id="id"), []
    )
    path = release.work.part_path(0)
    for one, other in (("a", "b"), ("b", "a")):
        contents = []
        for value in (other, one):
            part = pa.table({"q0": [value] * 3, "s": ["flu"] * 3, "name": ["*"] * 3})
            pq.write_table(part, path)
            persons = pa.chunked_array([["p", "q", "r"]])
            release.work.write_persons(publish.digest_of(path), persons)
            contents.append(Path(path).read_bytes())
        counter = requirements.counter_of(release.job, part.column_names)
        assert counted_part(release.work, counter, True, path).counted.rows == 3
        with mock.patch.object(
            counter, "count", lambda *_, of=contents[0]: Path(path).write_bytes(of)
        ):
            with pytest.raises(OSError, match="written again while it was read"):
                counted_part(release.work, counter, True, path)
            assert counted_part(release.work, counter, False, path)


@pytest.mark.parametrize("buckets", [3, *in_soak([1, 50])])
@pytest.mark.parametrize(
    ("criterion", "fails"),
    [
        ({"t": 0.2}, True),
        ({"t": 0.9}, False),
        ({"beta_likeness": {"beta": 0.1}}, True),
        ({"beta_likeness": {"beta": 50}}, False),
    ],
)
def test_values_are_compared_with_those_of_the_whole_release(
    tmp_path: Path, buckets: int, criterion: dict[str, Any], fails: bool
) -> None:
    """Each of two sensitive columns with its own, whichever values a bucket has, in any order."""
    generator = np.random.default_rng(0)
    tables = [
        pa.table(
            {
                "q0": np.repeat([*"abcdefgh"], 4),
                "s": generator.choice(ILLS.leaves, 32, p=[0.7, 0.1, 0.1, 0.1]),
                "r": np.repeat(generator.choice(ILLS.leaves, 8), 4),
                "name": ["*"] * 32,
            }
        )
        for _ in range(3)
    ]
    parts = [(table, pa.chunked_array([["p"] * 32])) for table in tables]
    with added():
        job = replace(job_of(parts, criterion, False), sensitive=("s", "r"))
        release = StagedRelease(tmp_path, job, parts)
        expected = outcome(release.checked_here)
        assert bool(expected[0].failures) is fails
        assert outcome(lambda: release.checked_by(InProcessEngine(), buckets=buckets)) == expected


def test_a_release_without_a_quasi_identifier_is_refused_before_it_is_counted(
    tmp_path: Path,
) -> None:
    release = staged([2, 2], {}, tmp_path)
    release.write(0, release.read(0).drop_columns(["q0"]))
    with pytest.raises(PrivacyError, match="'q0' is not a column of the release"):
        ReleaseCheck.of(release.job, release.paths, 4, {}, None)


def test_what_was_checked_cannot_be_changed(tmp_path: Path) -> None:
    check, answers = answered(staged([2], {}, tmp_path))
    for found in (check, check.concluded(answers)):
        for field in fields(found):
            with pytest.raises(FrozenInstanceError):
                setattr(found, field.name, None)


def test_values_of_two_types_are_found_wherever_their_classes_go(tmp_path: Path) -> None:
    release = staged([1, 1, 1], {}, tmp_path)
    release.write(1, release.read(1).set_column(0, "q0", pa.array([7])))
    expected = outcome(release.checked_here)
    assert expected[0] is PrivacyError
    assert outcome(lambda: release.checked_by(InProcessEngine(), buckets=1024)) == expected
