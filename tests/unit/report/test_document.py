"""The report: what it adds up, what it escapes, and that all its shapes can be drawn."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mondrian_ops import report as reports
from mondrian_ops.report import figures
from report_samples import HOSTILE, make


class Checker(HTMLParser):
    """Collects tags and attributes; fails on a wrongly nested element."""

    VOID = frozenset({"meta", "br", "rect", "line", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def finish(self) -> None:
        self.close()
        assert self._open == []


def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.finish()
    return checker


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


def test_write_makes_both_files_from_one_dict(tmp_path: Path) -> None:
    report = make(["a\u00e9", "b"])
    [(tmp_path / name).write_bytes(content) for name, content in reports.files(report).items()]
    assert json.loads((tmp_path / reports.JSON_NAME).read_text("utf-8")) == report
    assert (tmp_path / reports.HTML_NAME).read_text("utf-8") == reports.render_html(report)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_report.html", "_report.json"]


def test_page_asks_nothing_from_outside_and_runs_nothing() -> None:
    html = reports.render_html(make())
    tags = parsed(html).tags
    assert not {"script", "link", "img", "iframe", "form", "object"} & {tag for tag, _ in tags}
    for tag, attributes in tags:
        assert not {"href", "src", "style", "srcset"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in html and "@import" not in html
    policy = next(a["content"] for t, a in tags if a.get("http-equiv"))
    style = re.search(r"<style>(.*)</style>", html, re.DOTALL)
    assert policy is not None and style is not None
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_every_chart_has_a_title_a_description_and_a_table() -> None:
    checker = parsed(reports.render_html(make()))
    charts = [a for tag, a in checker.tags if tag == "svg" and a.get("role") == "img"]
    ids = {a["id"] for _, a in checker.tags if "id" in a}
    assert len(charts) == 6
    for chart in charts:
        assert set((chart["aria-labelledby"] or "").split()) <= ids
    assert len(ids) == 12
    assert [tag for tag, _ in checker.tags].count("table") >= 5


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    report = make(
        [name, "zip"],
        job={"output": name, "input": name, "quasi_identifiers": [name]},
        notes=[name],
        columns={"identifiers": [name], "quasi_identifiers": [name], "sensitive": [name],
                 "unlisted": [name], "unlisted_policy": "publish"},
        partitioning={"strategy": name, "note": name},
        cut={"asked": name, "used": name, "reason": name},
        verification={"passed": False, "checked": [name], "failures": [name], "files": 1},
    )  # fmt: skip
    html, plain = reports.render_html(report), reports.render_text(report)
    harmless = parsed(reports.render_html(make(["a", "zip"], passed=False))).tags
    assert {tag for tag, _ in parsed(html).tags} <= {tag for tag, _ in harmless}
    assert name not in html or name == HOSTILE[-1]
    for text in (html, plain):
        assert "\x1b" not in text and "\u202e" not in text
    assert all(line == figures.printable(line) for line in plain.split("\n"))


def test_refused_report_says_so_and_why() -> None:
    report = make(passed=False, achieved={"k": 3, "l": 2}, class_sizes=[(3, 3), (5, 20)])
    html, plain = reports.render_html(report), reports.render_text(report)
    assert "Refused: nothing was published" in html and ">Published<" not in html
    assert "3 of 22 classes have fewer than 5 rows" in html
    assert plain.startswith("REFUSED") and "NOT MET" in plain
    assert 'class="bad"' in html


def test_unlisted_columns_are_pointed_out() -> None:
    assert "Check these:" in reports.render_html(make())
    assert "comment: published unchanged" in reports.render_text(make())


def test_the_first_lines_name_some_of_very_many_raw_columns() -> None:
    names = [f"c{at}" for at in range(10_000)]
    columns = {**make()["columns"], "unlisted": names}
    report = make(columns=columns)
    note = report["published_raw"]["note"]
    assert note.startswith("10,000 columns go out raw, as unlisted: publish asks: c0, c1, ")
    assert "c19 and 9,980 more." in note and "c20" not in note
    assert report["published_raw"]["columns"] == names
    assert "published_raw" not in make(columns={**columns, "unlisted": []})
    assert "published_raw" not in make(columns={**columns, "unlisted_policy": "drop"})


def test_a_release_that_is_refused_or_waits_begins_with_its_raw_columns_too() -> None:
    for report in (make(passed=False), make() | {"approval": {"decision": "asked"}}):
        said = "1 column goes out raw, as unlisted: publish asks: comment."
        assert said in reports.render_text(report, 120).partition("achieved")[0]
        html = reports.render_html(report)
        assert html.index(said) < html.index("What is guaranteed")
        assert reports.render_markdown(report).startswith("**1 column goes out raw")


@pytest.mark.parametrize(
    ("made_by", "said"),
    [
        (None, "the command line or Python"),
        ("hospital", "the DAG 'hospital'"),
        ("hospital/a.b", "the DAG 'hospital' (group 'a.b')"),
    ],
)
def test_who_made_a_release_and_what_it_replaces(made_by: str | None, said: str) -> None:
    report = make(made_by=made_by)
    assert report["made_by"] == made_by
    page = re.sub("&#x27;|&#39;", "'", reports.render_html(report))
    assert said in page and "Replaces" not in page
    replaced = {"made_by": made_by, "k": 3, "created": "2025-06-01T10:00:00+00:00"}
    told = f"It replaces the release of {said}, k = 3, no l, made 2025-06-01 10:00:00 UTC"
    assert figures.replaced({"replaces": replaced}) == told
    assert told in re.sub("&#x27;|&#39;", "'", reports.render_html(report | {"replaces": replaced}))
    assert "It replaces" in reports.render_markdown(report | {"replaces": replaced})
    unknown = figures.replaced({"replaces": {"k": 3, "l": 2, "t": 0.25}})
    assert unknown == "It replaces the release, k = 3, l = 2, t = 0.25"


def test_full_domain_levels_are_shown() -> None:
    assert "Generalization levels: age 1, zip 2" in reports.render_html(
        make(recoding={"levels": {"age": 1, "zip": 2}, "summary": "the least height"})
    )


def test_many_fragments_are_cut_in_charts_and_kept_in_the_table() -> None:
    report = make(fragments=40)
    html, plain = reports.render_html(report), reports.render_text(report)
    assert "The 16 largest of 40 are drawn" in html
    assert html.count("age &lt;= ") == 40
    assert "… and 24 more" in plain


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


class TestBins:
    def test_few_sizes_have_a_bar_each(self) -> None:
        found = figures.bins([(7, 2), (5, 10)], k=5)
        assert [(b.low, b.high, b.classes, b.rows) for b in found] == [
            (5, 5, 10, 50), (6, 6, 0, 0), (7, 7, 2, 14),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "sizes",
        [
            [(5 + i, 100) for i in range(200)],
            [(5, 10**6), (6, 10**6), (100_000, 1)],
            [(2**i * 5, 100) for i in range(20)],
            [(5, 1), (5000, 1), (10**8, 1)],
            [(2, 5), (3, 1), (10, 7), (400, 2)],
            [(1, 3)],
        ],
    )
    def test_no_class_is_lost_or_counted_twice(self, sizes: list[tuple[int, int]]) -> None:
        found = figures.bins(sizes, k=5)
        assert sum(b.classes for b in found) == sum(n for _, n in sizes)
        assert sum(b.rows for b in found) == sum(s * n for s, n in sizes)
        assert len(found) <= figures.MAX_BARS + 9
        assert [b for b in found if b.low < 5] == [b for b in found if b.high and b.high < 5]

    def test_no_classes(self) -> None:
        assert figures.bins([], k=5) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 %"), (0.0001, "< 0.1 %"), (0.5, "50.0 %"), (0.99999, "> 99.9 %"), (1, "100.0 %")],
)
def test_percent(value: float, shown: str) -> None:
    assert figures.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(950, "950"), (12_345, "12.3 k"), (999_999, "1 M"), (1.8e6, "1.8 M")]
)
def test_size(value: float, shown: str) -> None:
    assert figures.size(value) == shown


def test_guarantees_of_every_kind() -> None:
    report = make(
        job={"k": 2, "l": 1.5, "diversity": "entropy", "t": 0.2},
        achieved={"k": 2, "l": {"a": 1.4, "b": 3}, "t": 0.2},
    )
    assert [(g.name, g.met) for g in figures.guarantees(report)] == [
        ("k-anonymity", True), ("l-diversity (entropy)", False), ("t-closeness", True),
    ]  # fmt: skip
    assert figures.guarantees(make(achieved={}))[0].met is None


def test_a_class_of_one_sensitive_value_is_pointed_out() -> None:
    report = make(job={"l": None}, achieved={"k": 5, "l": 1})
    assert "l-diversity was not asked for" in reports.render_html(report)
    assert "warning" in reports.render_text(report)
    for harmless in (make(), make(job={"l": None}, achieved={"k": 5, "l": 2})):
        assert "not asked for" not in reports.render_html(harmless)


def test_importing_the_report_is_light() -> None:
    code = (
        "import sys, mondrian_ops.report;"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'numba', 'rich', 'airflow'} & set(sys.modules);"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    plugins = Path(reports.__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(plugins)}
    )


@pytest.mark.parametrize(
    ("job", "said", "not_said"),
    [
        ({"l": None}, "No column is named sensitive", "l-diversity"),
        ({"l": None, "sensitive": ["income"]}, "Neither l nor t was asked for", "t bounds"),
        ({"sensitive": ["income"]}, "l-diversity does not stop", "Neither"),
        ({"sensitive": ["income"], "t": 0.2}, "t bounds how much", "l-diversity"),
        ({}, "tight intervals", "several files"),
        (
            {"quasi_identifiers": [{"name": "age", "grid": 5}, {"name": "zip", "grid": 9}]},
            "algorithm can undo",
            "tight intervals",
        ),
        ({"algorithm": "samarati"}, "algorithm can undo", "tight intervals"),
        ({"entity_id": "person"}, "releases of overlapping people", "several rows"),
    ],
)
def test_limits_are_those_of_the_job(job, said, not_said):
    limits = make(job=job)["limits"]
    assert limits.startswith("k-anonymity limits linking")
    assert said in limits
    assert not_said not in limits
    assert "A column that the job does not name is published unchanged" in limits


def test_limits_say_where_files_tell_more_than_the_table():
    assert "several files" in make(partitioning={"split_classes": 2})["limits"]
    assert "several files" not in make(partitioning={"split_classes": 0})["limits"]


def test_limits_count_the_columns_published_unchanged():
    columns = {"unlisted": ["a", "b"], "unlisted_policy": "publish"}
    assert "2 columns that the job does not name are" in make(columns=columns)["limits"]
    assert "does not name" not in make(columns={**columns, "unlisted_policy": "drop"})["limits"]
