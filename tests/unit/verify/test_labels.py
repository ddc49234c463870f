"""What a published label says, read by a reader of the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.errors import PrivacyError
from mondrian_ops.job.job import Job
from mondrian_ops.verify import labels as release_labels
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.published_labels import PublishedLabels
from mondrian_ops.verify.scales import Scale

TREE = Hierarchy.from_rows(
    [["Bonn", "Germany", "*"], ["Ulm", "Germany", "*"], ["Rome", "Italy", "*"], ["Italy", "*"]], "t"
)


def labels_of(
    quasi: Any,
    domain: pa.Array,
    boundaries: Any = None,
    tree: Hierarchy = TREE,
    pointed: Sequence[str] = (),
    **options: Any,
) -> Any:
    job = Job.from_dict({"k": 2, "quasi_identifiers": [quasi], **options}, paths_required=False)
    (name,) = job.quasi_identifier_names
    trees = {name: tree} if job.quasi_identifiers[0].hierarchy else {}
    given = {} if boundaries is None else {name: pa.array(boundaries, domain.type)}
    return labels_of_job(job, {name: domain.type}, {name: domain}, given, trees, pointed)[name]


def covered(labels: PublishedLabels, label: str | None, values: pa.Array) -> list[Any]:
    """The values that a label covers."""
    places = np.arange(len(values))
    texts = [pa.array([label], pa.string())]
    found = labels.covers(texts, values, np.zeros(len(values), np.int64), places)
    return values.filter(pa.array(found)).to_pylist()


def lost(labels: PublishedLabels, *texts: str | None) -> list[tuple[float, float]]:
    found = labels.losses([pa.array(texts, pa.string())])
    return list(zip(found.ncp.tolist(), found.lm.tolist(), strict=True))


NUMBERS = pa.array([-3, 0, 4, 5, 6, 9, None])
FLOATS = NUMBERS.cast(pa.float64())
HIGH = pa.array([-3, 7])


@pytest.mark.parametrize(
    ("quasi", "boundaries", "label", "values", "expected"),
    [
        ("n", None, "[-3, 4]", NUMBERS, [-3, 0, 4]),
        ("n", None, "5", NUMBERS, [5]),
        ("n", None, None, NUMBERS, [None]),
        ("n", None, "*", NUMBERS, [-3, 0, 4, 5, 6, 9, None]),
        ("n=grid:5", None, "[0, 5)", NUMBERS, [0, 4]),
        ("n=grid:5@1", None, "[-4, 6)", FLOATS, [-3.0, 0.0, 4.0, 5.0]),
        ("n", [0, 5], "(-inf, 4]", NUMBERS, [-3, 0, 4]),
        ("n", [0, 5], "[5, inf)", NUMBERS, [5, 6, 9]),
        ("n", [0, 5], "[0, 5)", FLOATS, [0.0, 4.0]),
        ("n=ladder:5/10", None, "[0, 4]", NUMBERS, [0, 4]),
        ("n=ladder:2.5", None, "[2.5, 5.0)", FLOATS, [4.0]),
    ],
)
def test_an_interval_covers_what_lies_within(quasi, boundaries, label, values, expected):
    assert covered(labels_of(quasi, values.drop_null(), boundaries), label, values) == expected


@pytest.mark.parametrize("most", [0, 3, 4096])
def test_labels_mean_the_same_whatever_was_read_before(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(release_labels, "_REMEMBERED", most)
    labels = labels_of("n", pa.array([0, 10]))
    values = pa.array([1, 3, None])
    for texts in (["[1, 2]", "3"], ["3", None], ["*", "[3, 4]", "[1, 2]", "3"], ["[3, 4]"]):
        alone = labels_of("n", pa.array([0, 10]))
        for text in texts:
            assert covered(labels, text, values) == covered(alone, text, values)
        assert lost(labels, *texts) == lost(alone, *texts)
        assert lost(labels, *reversed(texts)) == lost(alone, *texts)[::-1]
        for wrong in ("[1; 2]", "x"):
            with pytest.raises(PrivacyError, match="column 'n': a published label cannot be read"):
                lost(labels, *texts, wrong)
    assert lost(labels, "[1, 2]", "3", None, "*") == [(0.1, 0.1), (0, 0), (0, 0), (1, 1)]


def test_a_text_is_read_once_for_what_it_covers_and_what_it_loses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []
    of_texts = Scale.of_texts
    monkeypatch.setattr(
        Scale,
        "of_texts",
        lambda self, texts: read.append(texts.to_pylist()) or of_texts(self, texts),
    )
    labels = labels_of("n", pa.array([0, 10]))
    lost(labels, "[1, 2]", "3")
    assert covered(labels, "3", pa.array([3])) == [3]
    lost(labels, "3", "4")
    assert read == [["[1, 2]", "3"], ["4"]]


@pytest.mark.parametrize(
    ("quasi", "boundaries", "label", "loss"),
    [
        ("n", None, "[-3, 4]", 7 / 12),
        ("n", None, "4", 0),
        ("n", None, None, 0),
        ("n", None, "*", 1),
        ("n=grid:5", None, "[0, 5)", 5 / 15),
        ("n", [0, 5], "(-inf, 4]", 7 / 12),  # 9 is the greatest value, -3 the least
        ("n", [0, 5], "[5, inf)", 4 / 12),
        ("n", [-3, 10, 20], "[-3, 9]", 1),
        ("n", [-10, 5, 30], "[-10, 4]", 14 / 39),
        ("n=ladder:5/10", None, "[0, 4]", 5 / 20),
        ("n=ladder:5/10", None, "[0, 9]", 10 / 20),
    ],
)
def test_an_interval_loses_its_share_of_the_range(quasi, boundaries, label, loss):
    labels = labels_of(quasi, NUMBERS.drop_null(), boundaries)
    assert lost(labels, label) == [pytest.approx((loss, loss))]


def test_moments_with_an_offset_of_seconds_are_read_exactly():
    for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata"):
        moments = pa.array([-3_153_600_000, -3_153_599_999, 0]).cast(pa.timestamp("s", zone))
        labels, texts = labels_of("t", moments), moments.cast(pa.string()).to_pylist()
        assert covered(labels, texts[1], moments) == moments[1:2].to_pylist()
        assert covered(labels, f"[{texts[0]}, {texts[1]}]", moments) == moments[:2].to_pylist()
        (pair,) = lost(labels, f"[{texts[0]}, {texts[1]}]")
        assert pair[0] == pytest.approx(1 / 3_153_600_000, rel=1e-9)


def test_a_node_covers_its_leaves():
    labels = labels_of("t=hierarchy:t.csv", pa.array(["Bonn", "Ulm", "Rome", "Italy"]))
    towns = pa.array(["Bonn", "Ulm", "Rome", "Italy", None])
    assert covered(labels, "Germany", towns) == ["Bonn", "Ulm"]
    assert covered(labels, "Italy", towns) == ["Rome", "Italy"]  # the leaf, or its namesake
    assert covered(labels, "Rome", towns) == ["Rome"]
    assert covered(labels, None, towns) == [None]
    assert len(covered(labels, "*", towns)) == 5
    assert lost(labels, "Germany", "Rome", None, "*") == [(0.5, 1 / 3), (0, 0), (0, 0), (1, 1)]


def test_a_prefix_covers_what_begins_so_and_is_no_longer():
    texts = pa.array(["1", "10", "101", "1010", "2", "2*", "22"])
    labels = labels_of("z=prefix", texts)
    assert covered(labels, "10*", texts) == ["10", "101"]
    assert covered(labels, "101", texts) == ["101"]
    assert covered(labels, "2*", texts) == ["2", "2*", "22"]
    assert covered(labels, '"2*"', texts) == ["2*"]
    assert lost(labels, "10*", "101", "2*") == [(3 / 7, 2 / 6), (0, 0), (3 / 7, 2 / 6)]


def test_a_set_covers_its_members_and_quotes_tell_which_they_are():
    texts = pa.array(["a", "b", "a, b", "c", "{c}", "*", 'd "e"'])
    labels = labels_of("s=set", texts)
    assert covered(labels, "{a, c}", texts) == ["a", "c"]
    assert covered(labels, "{a, b, c}", texts) == ["a", "b", "c"]
    assert covered(labels, '{"a, b", c}', texts) == ["a, b", "c"]
    assert covered(labels, "{c}", texts) == ["c"]
    assert covered(labels, '"{c}"', texts) == ["{c}"]
    assert covered(labels, '"*"', texts) == ["*"]
    assert covered(labels, '{"*", "d ""e"""}', texts) == ["*", 'd "e"']
    assert lost(labels, "{a, c}", '{"a, b", c}', "a, b", '"*"', "*", None) == [
        (2 / 7, 1 / 6), (2 / 7, 1 / 6), (0, 0), (0, 0), (1, 1), (0, 0)
    ]  # fmt: skip
    plain = labels_of("s=set", pa.array([1, 2, 3, 4]))
    assert covered(plain, "{1, 3}", pa.array([1, 2, 3, None])) == [1, 3]
    assert lost(plain, "{1, 3}", "2") == [(0.5, 1 / 3), (0, 0)]


@pytest.mark.parametrize(
    ("quasi", "text"),
    [
        ("n", "some"), ("n", "[1, x]"), ("n=grid:2", "[1; 3]"), ("n=set", "{1, 7}"),
        ("n=set", "7"), ("n=set", '{1, "3}'), ("n=set", "{}"),
        ("n=prefix", "7*"), ("n=prefix", "12"), ("n=hierarchy:t.csv", "Spain"),
    ],
)  # fmt: skip
def test_what_is_no_label_is_refused_without_its_text(quasi, text):
    labels = labels_of(quasi, pa.array(["1", "3"]) if "prefix" in quasi else pa.array([1, 3]))
    with pytest.raises(PrivacyError, match="column 'n': a published label cannot be read") as error:
        labels.losses([pa.array([text])])
    assert text not in str(error.value)


def test_bounds_are_compared_as_they_are_typed():
    values = pa.array([1, 5, 9, None])
    labels = labels_of("n", pa.array([1, 9]), interval_style="bounds")
    hidden = pa.array([False, False, True, False])
    ends = [pa.array([1, 5, None, None]), pa.array([5, 5, None, None]), hidden]
    found = labels.covers(ends, values, np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4))
    assert found.reshape(4, 4).tolist() == [
        [True, True, False, False], [False, True, False, False], [True] * 4,
        [False, False, False, True],
    ]  # fmt: skip
    losses = labels.losses(ends)
    assert losses.ncp.tolist() == [0.5, 0, 1, 0]
    assert losses.exact.tolist() == [False, True, False, True]
    assert losses.star.tolist() == [False, False, True, False]


@pytest.mark.parametrize("ends", [(1, 5), (1, None), (None, 5)])
def test_what_is_hidden_has_no_bounds(ends: tuple[int | None, int | None]) -> None:
    labels = labels_of("n", pa.array([1, 9]), interval_style="bounds")
    published = [*(pa.array([each], pa.int64()) for each in ends), pa.array([True])]
    place = np.zeros(1, np.int64)
    with pytest.raises(PrivacyError, match="column 'n': a published label cannot be read"):
        labels.covers(published, pa.array([7]), place, place)


def test_bounds_with_one_end_are_limited_by_the_dataset() -> None:
    labels = labels_of("n", pa.array([1, 9]), [5], interval_style="bounds")
    losses = labels.losses([pa.array([None, 5]), pa.array([4, None]), pa.array([False] * 2)])
    assert losses.ncp.tolist() == [3 / 8, 4 / 8]
    assert not losses.star.any() and not losses.exact.any()


def told(labels: PublishedLabels, *texts: str | None) -> str:
    """Of each label: = it is exact, * it is a star, - it is neither."""
    found = labels.losses([pa.array(texts, pa.string())])
    return "".join(
        "*=-"[0 if star else 1 if exact else 2]
        for star, exact in zip(found.star, found.exact, strict=True)
    ) + ("" if not (found.star & found.exact).any() else "both")


def test_a_label_is_exact_a_star_or_neither() -> None:
    places = Hierarchy.from_rows([["Paris", "France", "*"], ["Rome", "Italy", "*"]], "t")
    towns = labels_of("t=hierarchy:t.csv", pa.array(["Paris", "Rome"]), tree=places)
    assert told(towns, "Paris", "France", None, "*", "Rome") == "=-=*="
    assert told(labels_of("t=hierarchy:t.csv", pa.array(["Rome"])), "Germany", "Rome") == "-="
    texts = pa.array(["1", "10", "2"])
    assert told(labels_of("z=prefix", texts), "10", "1*", "1**", None, "*") == "=--=*"
    assert told(labels_of("s=set", texts), "10", "{1, 2}", None, "*", "{1}") == "=-=*="
    assert told(labels_of("n", pa.array([1, 9])), "1", "[1, 2]", None, "*") == "=-=*"


def test_what_loses_among_one_or_two_values() -> None:
    one = Hierarchy.from_rows([["Rome", "Italy"]], "t")
    assert lost(labels_of("t=hierarchy:t.csv", pa.array(["Rome"]), tree=one), "Italy") == [(0, 0)]
    two = Hierarchy.from_rows([["Rome", "Italy"], ["Bari", "Italy"]], "t")
    towns = pa.array(["Rome", "Bari"])
    assert lost(labels_of("t=hierarchy:t.csv", towns, tree=two), "Italy") == [(1, 1)]
    for texts in (pa.array(["10"]), pa.array(["10", "11"])):
        assert lost(labels_of("z=prefix", texts), "1*")[0] == (
            (0, 0) if len(texts) == 1 else (1, 1)
        )
    assert lost(labels_of("s=set", pa.array(["a"])), "{a}", "*") == [(0, 0), (1, 1)]
    assert lost(labels_of("s=set", pa.array(["a", "b"])), "{a, b}") == [(1, 1)]
    assert lost(labels_of("n", pa.array([5, 5])), "5", None, "*") == [(0, 0), (0, 0), (1, 1)]
    assert lost(labels_of("n", pa.array([], pa.int64())), None, "*") == [(0, 0), (1, 1)]


@pytest.mark.parametrize("way", ["set", "prefix", "hierarchy:t.csv"])
def test_whole_floating_point_numbers_are_read_as_they_are_written(way: str) -> None:
    numbers = pa.array([1.5, 70.0])
    for pointed, text in (("n", "70.0"), ("other", "70")):
        tree = Hierarchy.from_rows([["1.5", "*"], [text, "*"]], "t")
        labels = labels_of(f"n={way}", numbers, tree=tree, pointed=[pointed])
        assert covered(labels, text, numbers) == [70.0]
        assert lost(labels, text) == [(0, 0)]
        other = {"70.0": "70", "70": "70.0"}[text]
        with pytest.raises(PrivacyError):
            lost(labels, other)


@pytest.mark.parametrize("value", [5, 5.0])
def test_a_column_of_one_value_loses_nothing_where_it_is_shown(value: float) -> None:
    labels = labels_of("age=interval", pa.array([value]))
    assert lost(labels, str(value), f"[{value}, {value}]", "*") == [(0, 0), (0, 0), (1, 1)]
