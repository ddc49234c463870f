from __future__ import annotations

import re
from pathlib import Path

import pytest

from mondrian_ops.errors import InputError, JobError
from mondrian_ops.job import limits
from mondrian_ops.job.limits import LIMITS, VARIABLE

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"


def test_a_setting_changes_some_limits_and_leaves_the_others(monkeypatch):
    monkeypatch.setenv(VARIABLE, "columns = 20_000, csv_line=64MiB\n text=1kib,, page=")
    with pytest.raises(JobError, match="'page=' is not valid"):
        limits.limit("columns")
    monkeypatch.setenv(VARIABLE, "columns = 20_000, csv_line=64MiB\n text=1kib,,")
    assert limits.limit("columns") == 20_000
    assert limits.limit("csv_line") == 64 << 20
    assert limits.limit("text") == 1024
    assert limits.limit("sensitive") == LIMITS["sensitive"].default
    assert limits.in_use() == {"columns": 20_000, "csv_line": 64 << 20, "text": 1024}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("column=5", r"no limit 'column' \(did you mean 'columns'\?\)"),
        ("columns", "'columns' is not valid; write NAME=NUMBER"),
        ("columns=many", "'columns=many' is not valid"),
        ("columns=0", "'columns=0' is not valid"),
        ("columns=-1", "'columns=-1' is not valid"),
        ("columns=1MiB", "'columns=1MiB' is not valid"),
        ("text=1TiB", "'text=1TiB' is not valid"),
    ],
)
def test_what_a_setting_cannot_say(setting, message):
    with pytest.raises(JobError, match=f"^limits: .*{message}"):
        limits.parsed(setting)


def test_what_is_given_stands_above_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "columns=5")
    limits.use({"columns": 7})
    try:
        assert limits.limit("columns") == 7
        limits.use({})
        assert limits.limit("columns") == LIMITS["columns"].default
    finally:
        limits.use(None)
    assert limits.limit("columns") == 5
    with limits.changed(text=3):
        assert (limits.limit("columns"), limits.limit("text")) == (5, 3)
    assert limits.limit("text") == LIMITS["text"].default


def test_an_error_says_the_limit_what_was_met_and_the_remedy():
    with limits.changed(text=1000):
        limits.check_text("column 'a'", 1000)
        with pytest.raises(InputError) as caught:
            limits.check_text("column 'a'", 1001)
    assert str(caught.value) == (
        "column 'a' holds a value of 1,001 bytes; the limit 'text' is 1,000 bytes: shorten it, or "
        "leave out that column, or have an administrator raise 'text' in the setting limits of the "
        "section [mondrian_ops] of Airflow's configuration"
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 bytes"), (1025, "1,025 bytes"), (2048, "2 KiB"), (8 << 20, "8 MiB"),
     ((150 << 20) + 1, "150 MiB"), (3 << 30, "3 GiB")],
)  # fmt: skip
def test_sizes_as_text(size, text):
    assert limits.size_text(size) == text


def test_the_page_on_security_lists_every_limit_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", SECURITY.read_text("utf-8"), re.MULTILINE)
    listed = {name: default for name, default in rows if name in LIMITS}
    assert listed == {
        name: limits.size_text(each.default) if each.unit == "bytes" else f"{each.default:,}"
        for name, each in LIMITS.items()
    }
