"""Bombs: a small file that takes a worker's memory, or its night.

Who may drop a file where a job reads, or fill in a form, needs no more than some kilobytes that
unpack to gigabytes. Each is refused by a limit that has a name, within the memory of any job: a
process that may take little more than that runs them all, and lives.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forged_parquet as forged
from forged_parquet import Column, Page, plain

pytestmark = pytest.mark.servers  # which it needs not, but gigabytes to unpack

MIB = 1 << 20
ROOM = 1024 * MIB
"""What the process may take beyond what a small job took."""

RUNS = """
import contextlib, io, json, os, resource, sys
from mondrian_ops import cli

def run(job):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = cli.main(["run", job, "--quiet"])
        except BaseException as error:
            status = repr(error)[:200]
    return status, said.getvalue()[-2000:]

good, *bombs = sys.argv[2:]
assert run(good)[0] == 0, run(good)
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * os.sysconf("SC_PAGESIZE") + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
print(json.dumps([run(bomb) for bomb in bombs]))
"""


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


def endless(folder: Path, start: bytes, block: bytes) -> None:
    """A packed file of a gigabyte and more."""
    packed = gzip.compress(block * (16 * MIB // len(block)), 1)
    (folder / "in.csv.gz").write_bytes(gzip.compress(start) + packed * 80)


def gigabyte_page() -> Page:
    """A page with one value of a gigabyte, in 34 kB."""
    block = 16 * MIB
    first = zstd((64 * block - 4).to_bytes(4, "little") + b"a" * (block - 4))
    packed = first + zstd(b"a" * block) * 63 + zstd(b"\0" * 4)
    return Page(packed, 64 * block + 4, 2)


def parquet(folder: Path, rows: int, *columns: Column) -> None:
    forged.write(folder / "in.parquet", rows, *columns)


def dictionary(value: bytes, rows: int, other: bytes = b"2") -> list[Page]:
    """A value that all rows have but the last, which has another."""
    values, index = plain(value, other), forged.runs((0, rows - 1), (1, 1))
    return [
        Page(zstd(values), len(values), 2, dictionary=True),
        Page(zstd(index), len(index), rows, forged.RLE_DICTIONARY),
    ]


def short(rows: int) -> Column:
    return Column("zip", dictionary(b"1", rows))


def hierarchy(folder: Path, name: str, text: str) -> dict[str, Any]:
    table(folder)
    (folder / name).write_text(text)
    return {"quasi_identifiers": [f"zip=hierarchy:{name}"]}


def table(folder: Path) -> None:
    (folder / "in.csv").write_text("zip\n" + "1\n2\n" * 5)


def many_columns(folder: Path) -> None:
    names = ",".join(f"c{at}" for at in range(200_000))
    (folder / "in.csv").write_text(f"zip,{names}\n" + "1" + "," * 200_000 + "\n")


def many_parquet_columns(folder: Path) -> None:
    parquet(folder, 2, short(2), *(Column(f"c{at}", short(2).pages) for at in range(20_000)))


def quasi_identifiers(folder: Path) -> dict[str, Any]:
    names = [f"q{at}" for at in range(20_000)]
    (folder / "in.csv").write_text(",".join(names) + "\n" + ("1," * 20_000)[:-1] + "\n")
    return {"quasi_identifiers": ",".join(names)}


def deep_json(folder: Path) -> dict[str, Any]:
    below = json.dumps([str(at) for at in range(40_000)])
    tree = "".join(f'{{"name": "n{at}", "children": [' for at in range(400))
    return hierarchy(folder, "deep.json", f'{tree}{{"name": "m", "children": {below}}}{"]}" * 400}')


def deep_csv(folder: Path) -> dict[str, Any]:
    long = ";".join(["1", *(f"n{at}" for at in range(20_000)), "*"])
    return hierarchy(
        folder, "deep.csv", long + "\n" + "".join(f"x{at};*\n" for at in range(50_000))
    )


Bomb = Callable[[Path], dict[str, Any] | None]

BOMBS: dict[str, tuple[str, Bomb]] = {
    "a line of 1.3 GB": ("csv_line", lambda at: endless(at, b"zip\n", b"a")),
    "a first line of 1.3 GB": ("csv_line", lambda at: endless(at, b"zip", b"a")),
    "a row of 1.3 GB": ("csv_line", lambda at: endless(at, b'zip\n"', b"aaaaaaaaaaaaaaa\n")),
    "a first row of 1.3 GB": ("csv_line", lambda at: endless(at, b"zip,", b'"aaaaaaaaa\n",')),
    "bytes that are no text": ("csv_line", lambda at: endless(at, b"zip\n\xff", b"a")),
    "200,000 columns": ("columns", many_columns),
    "20,000 columns in Parquet": ("columns", many_parquet_columns),
    "20,000 quasi-identifiers": ("quasi_identifiers", quasi_identifiers),
    "a string of a gigabyte": (
        "parquet_page",
        lambda at: parquet(at, 2, Column("zip", [gigabyte_page()])),
    ),
    "one of which the footer says a kilobyte": (
        "parquet_page",
        lambda at: parquet(at, 2, Column("zip", [gigabyte_page()], unpacked=1024)),
    ),
    "one that is beside the columns of the job": (
        "parquet_page",
        lambda at: parquet(at, 2, short(2), Column("note", [gigabyte_page()])),
    ),
    "a string of 100 MiB in a dictionary": (
        "text",
        lambda at: parquet(at, 9, Column("zip", dictionary(b"a" * (100 * MIB), 9))),
    ),
    "a megabyte that 200,000 rows repeat": (
        "inflation",
        lambda at: parquet(
            at, 200_000, short(200_000), Column("note", dictionary(b"a" * MIB, 200_000))
        ),
    ),
    "a quasi-identifier of a megabyte": (
        "quasi_identifier_text",
        lambda at: parquet(at, 100, Column("zip", dictionary(b"a" * MIB, 100))),
    ),
    "a hierarchy of a million rows": (
        "hierarchy_rows",
        lambda at: hierarchy(at, "h.csv", "".join(f"{row};*\n" for row in range(1_000_001))),
    ),
    "a hierarchy of 40 MB": (
        "hierarchy_file",
        lambda at: hierarchy(at, "h.csv", "1;*\n" * 10_000_000),
    ),
    "a deep tree": ("hierarchy_levels", deep_json),
    "a deep branch": ("hierarchy_levels", deep_csv),
}


def job(folder: Path, **keys: Any) -> str:
    (source,) = folder.glob("in.*")
    described = {
        "input": str(source),
        "output": str(folder / "out"),
        "k": 2,
        "quasi_identifiers": ["zip"],
        "unlisted": "publish",
        **keys,
    }
    (folder / "job.json").write_text(json.dumps(described))
    return str(folder / "job.json")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, str]]:
    """What the command line said to each, and its exit status."""
    folder = tmp_path_factory.mktemp("bombs")
    jobs = []
    for number, (_, bomb) in enumerate([("", table), *BOMBS.values()]):
        here = folder / str(number)
        here.mkdir()
        jobs.append(job(here, **(bomb(here) or {})))
    ran = subprocess.run(
        [sys.executable, "-c", RUNS, str(ROOM), *jobs],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return dict(zip(BOMBS, map(tuple, json.loads(ran.stdout)), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_by_a_limit_with_a_name(answers, name):
    status, said = answers[name]
    limit = BOMBS[name][0]
    assert f"the limit {limit!r} is" in said, (status, said)
    assert status == 1
    assert "in the setting limits" in said  # the remedy
    assert "Traceback" not in said
    assert "aaaa" not in said


def test_a_job_of_a_million_keys_is_not_parsed(tmp_path):
    text = "".join(f"k{at}: 1\n" for at in range(1_000_000))
    (tmp_path / "job.yaml").write_text(text)

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    ran = subprocess.run(
        [sys.executable, "-m", "mondrian_ops", "run", str(tmp_path / "job.yaml")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=confine,
    )
    assert ran.returncode == 1
    assert "the limit 'job_file' is 256 KiB" in ran.stderr
    assert "Traceback" not in ran.stderr
