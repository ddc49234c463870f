from __future__ import annotations

import json

import pytest

from mondrian_ops.errors import HierarchyError, JobError
from mondrian_ops.job import limits
from mondrian_ops.stores import find_hierarchy, read_hierarchy


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.csv", "Italy;Europe;*\nFrance;Europe;*\nJapan;Asia;*\n"),
        ("c.csv", "\ufeffItaly,Europe,*\r\nFrance,Europe,*\r\n\r\nJapan,Asia,*\r\n"),
        ("c.csv", '"Italy","Europe","*"\n"France","Europe","*"\n"Japan","Asia","*"'),
        (
            "c.json",
            json.dumps(
                {
                    "name": "*",
                    "children": [
                        {"name": "Europe", "children": ["Italy", "France"]},
                        {"name": "Asia", "children": ["Japan"]},
                    ],
                }
            ),
        ),
        ("c.txt", json.dumps({"*": {"Europe": ["Italy", "France"], "Asia": ["Japan"]}})),
    ],
)
def test_reads_every_form_of_one_hierarchy(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    hierarchy = read_hierarchy(str(tmp_path / name))
    paths = ["Italy Europe *", "France Europe *", "Japan Asia *"]
    assert hierarchy.to_rows() == [path.split() for path in paths]


def test_quoted_separators_are_part_of_the_value(tmp_path):
    (tmp_path / "c.csv").write_text('"Korea, South";Asia\n"Korea; North";Asia\n')
    assert list(read_hierarchy(str(tmp_path / "c.csv")).leaves) == ["Korea, South", "Korea; North"]


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(HierarchyError, match=r"none\.csv: no such hierarchy file"):
        read_hierarchy(str(tmp_path / "none.csv"))
    (tmp_path / "latin.csv").write_bytes("Köln;*\n".encode("latin-1"))
    with pytest.raises(HierarchyError, match=r"latin\.csv: not UTF-8"):
        read_hierarchy(str(tmp_path / "latin.csv"))
    (tmp_path / "bad.json").write_text('{"name": "*",\n]')
    with pytest.raises(HierarchyError, match=r"bad\.json, line 2: not valid JSON"):
        read_hierarchy(str(tmp_path / "bad.json"))
    (tmp_path / "empty.csv").write_text("\n")
    with pytest.raises(HierarchyError, match=r"empty\.csv"):
        read_hierarchy(str(tmp_path / "empty.csv"))


def test_looked_up_beside_the_job_then_in_the_shared_places(tmp_path, monkeypatch):
    job, one, two = (tmp_path / name for name in ("job", "one", "two"))
    for place in (job, one, two):
        place.mkdir()
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", f"{one}:{two}")
    (two / "c.csv").write_text("")
    assert find_hierarchy("c.csv", str(job)) == str(two / "c.csv")
    (one / "c.csv").write_text("")
    assert find_hierarchy("c.csv", None) == str(one / "c.csv")
    (job / "c.csv").write_text("")
    assert find_hierarchy("c.csv", str(job)) == str(job / "c.csv")
    assert find_hierarchy(str(job / "c.csv"), str(job)) == str(job / "c.csv")


def test_nothing_outside_these_places_is_found(tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", str(place))
    (tmp_path / "secret").write_text("")
    (place / "link").symlink_to(tmp_path / "secret")
    outside = r"is outside the folders where hierarchies may lie; put it beside .* into one of "
    # Whether there is a file outside is not told: the name may come from a form.
    for name in ("../secret", "../none", str(tmp_path / "secret"), "/none.csv", "link"):
        with pytest.raises(HierarchyError, match=f"{outside}{place}$"):
            find_hierarchy(name, None)
    for name in ("absent.csv", "."):
        with pytest.raises(HierarchyError, match="no such hierarchy file; put it beside"):
            find_hierarchy(name, None)


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(JobError, match=r"^hierarchy: "):
        find_hierarchy("ages\0.csv", str(tmp_path))


def test_the_default_place_is_include_hierarchies(monkeypatch):
    monkeypatch.delenv("MONDRIAN_OPS_HIERARCHIES", raising=False)
    with pytest.raises(HierarchyError, match="include/hierarchies"):
        find_hierarchy("absent.csv", None)


FIVE = [str(at) for at in range(5)]


@pytest.mark.parametrize(
    ("limit", "most", "name", "text", "message"),
    [
        ("hierarchy_file", 17, "c.csv", "Italy;*\nFrance;*\n", r"^c\.csv: has 17 bytes; the limit"),
        ("hierarchy_rows", 5, "c.csv", ";*\n".join([*FIVE, ""]), "has more leaves; the limit"),
        ("hierarchy_rows", 5, "c.json", json.dumps({"*": FIVE}), "has more leaves; the limit"),
        ("hierarchy_levels", 4, "c.csv", "a;b;c;d\ne;d\n", "levels; the limit"),
        (
            "hierarchy_levels",
            4,
            "c.json",
            json.dumps({"d": {"c": {"b": ["a"]}, "e": None}}),
            "levels; the limit",
        ),
        (
            "hierarchy_levels",
            4,
            "c.json",
            json.dumps({"name": "d", "children": [{"name": "c", "children": [{"b": "a"}]}]}),
            "levels; the limit",
        ),
        ("hierarchy_cells", 6, "c.csv", "a;b;c\nd;c\n", "3 levels over 2 values; the limit"),
    ],
)
def test_a_file_at_a_limit_is_read_and_one_beyond_is_not(
    tmp_path, limit, most, name, text, message
):
    path = tmp_path / name
    path.write_text(text)
    with limits.changed(**{limit: most}):
        read_hierarchy(str(path))
    with (
        limits.changed(**{limit: most - 1}),
        pytest.raises(HierarchyError, match=f"{message} '{limit}' is {most - 1}"),
    ):
        read_hierarchy(str(path))


def test_a_line_that_is_no_csv_is_named(tmp_path):
    (tmp_path / "c.csv").write_text("x" * 200_000 + ";*\n")
    with pytest.raises(HierarchyError, match=r"c\.csv: not valid CSV in its first line"):
        read_hierarchy(str(tmp_path / "c.csv"))
