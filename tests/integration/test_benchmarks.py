"""That the benchmarks run and keep what they find, at sizes where the figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.measure import Checkout
from benchmarks.results import Part, outdated, renew
from benchmarks.tables import Table

ROOT = Path(__file__).resolve().parents[2]


def benchmarks(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


@pytest.mark.soak
def test_every_part_without_airflow_runs(tmp_path: Path) -> None:
    results = tmp_path / "results"
    committed = ROOT / "benchmarks" / "RESULTS.md"
    before = committed.read_bytes() if committed.exists() else None
    result = benchmarks(
        *("--quick", "--rows", 2000, "--sizes", 500, 1000),
        *("--only", "speed", "whole", "values", "truth", "loss", "distribution"),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    kept = json.loads((results / "results.json").read_text("utf-8"))
    assert len(kept["tables"]) == 8
    for table in kept["tables"]:
        assert table["title"] in result.stdout
        assert table["title"] in (results / "results.md").read_text("utf-8")
        assert table["rows"]
        assert all(len(row) == len(table["head"]) for row in table["rows"])
    assert (committed.read_bytes() if committed.exists() else None) == before
    assert list(tmp_path.iterdir()) == [results]


@pytest.mark.soak
def test_nights_of_a_series(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--only", "series", "--data", tmp_path),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    assert "give one with --data" in result.stderr
    tables = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    baseline, nights, by_night, subtracted, small, year = (table["rows"] for table in tables)
    assert [row[0] for row in baseline] == ["2", "3"]
    assert [row[1] for row in nights[1::2]] == ["0.00%", "0.00%"]
    assert (len(by_night), len(small)) == (6, 2)
    assert [row[1] for row in subtracted[3::4]] == ["0.00%"] * 3
    assert [row[0] for row in year] == ["10", "21"]


def test_the_attacker_intersects_the_values_of_a_persons_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.intersection import Attacker, classes_of

    nights = [
        ([7, 1, 4, 3], ["[1, 9]", "5", "[1, 9]", "5"], ["flu", "flu", "cold", None]),
        ([4, 3, 7], ["8", "8", "8"], ["cold", "gout", "flu"]),
        ([3, 4, 1], ["2", "2", "3"], ["gout", "flu", "flu"]),
    ]
    attacker = Attacker()
    left = []
    for persons, ages, values in nights:
        release = pa.table({"age": ages, "sex": pa.array(["f"] * len(ages)).dictionary_encode()})
        classes = classes_of(release, ["age", "sex"])
        attacker.learn(np.array(persons), classes, classes, pa.chunked_array([values]))
        left.append(attacker.left().tolist())
    # Of persons 1, 3, 4 and 7.
    assert left == [[1, 1, 2, 2], [1, 1, 2, 2], [1, 1, 1, 2]]


def test_the_attacker_subtracts_a_class_from_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.intersection import Attacker

    attacker = Attacker()
    for classes in (
        [[0, 1, 2], [3, 4, 5], [6, 7]],
        [[0, 1], [3, 4, 8], [6, 7]],  # 2 left; 8 came in the place of 5
        [[0, 9, 1], [3, 4, 8, 10, 11], [6], [7]],  # 9 came; two came to others
    ):
        numbers = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
        persons = np.concatenate(classes)
        attacker.learn(persons, numbers, numbers, pa.chunked_array([["flu"] * len(persons)]))
    assert np.flatnonzero(attacker.subtracted()).tolist() == [2, 9]


@pytest.mark.postgres
def test_releases_are_listed_from_both_databases(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--rows", 100, "--only", "pages"),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    (table,) = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert table["title"] == "Listing 100 releases"
    assert [(row[0], row[-1]) for row in table["rows"]] == [("SQLite", ""), ("PostgreSQL", "")]


@pytest.mark.soak
@pytest.mark.hdfs
@pytest.mark.s3
def test_releases_are_published_on_every_store(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--only", "publish", "--scratch", tmp_path, "--results", results)
    )
    assert result.returncode == 0, result.stderr
    (table,) = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert [row[0] for row in table["rows"]] == ["local", "local", "HDFS", "HDFS", "S3", "S3"]


@pytest.mark.soak
def test_classifiers_on_releases_of_di_mondrian(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--rows", 1000, "--only", "di_mondrian", "--data", tmp_path),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    assert "give one with --data" in result.stderr
    losses, table = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert len(losses["rows"]) == 18
    head, (original, *others) = table["head"], table["rows"]
    assert original[:4] == ["original rows", "", "", ""]
    assert len(others) == 36
    for row in others:
        found = dict(zip(head[1:], row[1:], strict=True))
        assert float(found["NCP"].replace(",", "")) > 0
        assert all(0 < float(found[name]) < 1 for name in head[4:])


@pytest.mark.servers
@pytest.mark.parametrize("part", ["adult", "samarati"])
def test_adult_needs_its_data(part: str, tmp_path: Path) -> None:
    result = benchmarks("--quick", "--only", part, "--data", tmp_path, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"{part}: no data folder" in result.stderr


@pytest.mark.soak
def test_samarati_on_a_small_adult(tmp_path: Path) -> None:
    columns = [
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
        "occupation",
    ]  # fmt: skip
    values = [["Male", "Female"], ["17", "44", "80"], ["White", "Black"], ["Widowed", "Divorced"]]
    values += [["1", "2"]] * 4
    hierarchies = tmp_path / "data" / "adult" / "hierarchies"
    hierarchies.mkdir(parents=True)
    for name, leaves in zip(columns, values, strict=True):
        (hierarchies / f"{name}.csv").write_text("".join(f"{leaf};*\n" for leaf in leaves))
    random = np.random.default_rng(1)
    rows = zip(*(random.choice(leaves, 200).tolist() for leaves in values), strict=True)
    text = "\n".join(";".join(row) for row in [columns, *rows])
    (hierarchies.parent / "adult.csv").write_text(f"{text}\n")
    uci = "".join(f"{17 + at % 70},{at % 16}\n" for at in range(1100)) + "30,?\n"
    (hierarchies.parent / "adult_uci.csv").write_text(f"age,education-num\n{uci}")
    result = benchmarks(
        *("--quick", "--only", "samarati", "--data", tmp_path / "data"),
        *("--results", tmp_path / "results"),
    )
    assert result.returncode == 0, result.stderr
    kept = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
    printed, times, against_rows, mondrian = kept["tables"]
    assert len(printed["rows"]) == 9
    assert len(times["rows"]) == 15
    assert [row[0] for row in against_rows["rows"]] == ["20,000"]
    assert all(row[-1].endswith(" of 256") for row in times["rows"])
    assert [row[0] for row in mondrian["rows"]] == ["k = 10", "k = 50", "k = 100", "k = 1000"]
    assert "1,100 rows" in mondrian["title"]


@pytest.mark.soak
def test_tds_on_adult_enlarged(tmp_path: Path) -> None:
    """On a table that has Adult's columns and hierarchies of two leaves each."""
    columns = [
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
        "occupation",
    ]  # fmt: skip
    hierarchies = tmp_path / "data" / "adult" / "hierarchies"
    hierarchies.mkdir(parents=True)
    for column in columns:
        (hierarchies / f"{column}.csv").write_text("1;*\n2;*\n")
    rows = [";".join([*columns, "salary-class"])]
    rows += [";".join([*["1"] * 8, "low"]), ";".join([*["2"] * 8, "high"])]
    (hierarchies.parent / "adult.csv").write_text("\n".join(rows) + "\n")
    result = benchmarks(
        *("--quick", "--only", "tds", "--adult-sizes", 300, "--data", tmp_path / "data"),
        *("--results", tmp_path / "results"),
    )
    assert result.returncode == 0, result.stderr
    size, against_k, against_parts = json.loads(
        (tmp_path / "results" / "results.json").read_text("utf-8")
    )["tables"]
    assert [row[0] for row in size["rows"]] == ["300"]
    assert [row[0] for row in against_k["rows"]] == ["p = 1", "k^I = 50"]
    assert len(against_parts["rows"]) == 9
    # k^I is above the rows: every part stays at the top.
    assert {row[4:] == against_parts["rows"][0][4:] for row in against_parts["rows"]} == {True}


@pytest.mark.servers
def test_variations_of_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.enlarge import BLOCK_ROWS, enlarged

    table = pa.table({"a": ["x", "y", "z"], "n": [1, 2, 3], "kept": ["k", "l", "m"]})
    rows = BLOCK_ROWS + 7
    made = pa.Table.from_batches(list(enlarged(table, ["a", "n"], rows, 5)))
    assert made.num_rows == rows
    assert made.slice(0, 3).to_pylist() == table.to_pylist()
    record = np.arange(rows) % 3
    kept = made["kept"].cast(pa.string()).to_pylist()
    assert kept == [table["kept"][at].as_py() for at in record]
    for name in ("a", "n"):
        values = table[name].to_pylist()
        same = np.array(made[name].to_pylist()) == np.array(values)[record]
        assert set(made[name].to_pylist()) == set(values)
        # An even chance of a random value of three: two in three are the record's own.
        assert abs(same.mean() - 2 / 3) < 0.01
    fewer = pa.Table.from_batches(list(enlarged(table, ["a", "n"], 100, 5)))
    assert fewer.equals(made.slice(0, 100).combine_chunks())


@pytest.mark.soak
def test_every_task_under_load_and_its_growth(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--only", "growth", "load", "--load-sizes", 20, 40),
        *("--load-runs", "local-pushdown-32-clustered", "--scratch", tmp_path),
        *("--results", results),
    )
    assert result.returncode == 0, result.stderr
    kept = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    by_rows, growth, by_setting = kept
    lines = [*by_rows["rows"], *by_setting["rows"]]
    assert [line[:3] for line in lines] == [
        ["20", "local", "scatter"],
        ["40", "local", "scatter"],
        ["40", "local", "pushdown, clustered"],
    ]
    # The rows lie in one row group: with pushdown each fragment reads it all.
    assert [line[4] for line in lines] == ["2.0 ×", "2.0 ×", f"{2 + int(lines[2][3])}.0 ×"]
    for line in lines:
        assert " | ".join(line[:12]) in result.stderr  # told as soon as it is measured
    assert [row[0] for row in growth["rows"]] == ["20", "40"]
    assert growth["rows"][-1][6:8] == ["1.00 ×", "met"]
    assert list(tmp_path.iterdir()) == [results]


@pytest.mark.soak
@pytest.mark.java
def test_the_check_by_rows(tmp_path: Path) -> None:
    result = benchmarks(
        *("--quick", "--only", "check", "--check-sizes", 20, 4_000_000, "--scratch", tmp_path),
        *("--results", tmp_path / "results"),
    )
    assert result.returncode == 0, result.stderr
    table, by_spark = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))[
        "tables"
    ]
    assert [row[:2] for row in table["rows"]] == [["20", "2"], ["4,000,000", "571,428"]]
    engines = [[rows, engine] for rows in ("20", "4,000,000") for engine in ("local", "Spark")]
    assert [row[:2] for row in by_spark["rows"]] == engines


@pytest.mark.soak
def test_a_run_of_many_rows_beside_a_tenth_of_them(tmp_path: Path) -> None:
    result = benchmarks(
        *("--quick", "--only", "billion", "--scratch", tmp_path),
        *("--results", tmp_path / "results"),
    )
    assert result.returncode == 0, result.stderr
    by_task, whole, estimate = json.loads(
        (tmp_path / "results" / "results.json").read_text("utf-8")
    )["tables"]
    phases = ["partition", "anonymize_fragment", "wrap_up", "clean_up"]
    assert [row[:3] for row in by_task["rows"]] == [
        [rows, phase, "1"] for rows in ("2,000", "20,000") for phase in phases
    ]
    assert [row[0] for row in whole["rows"]] == ["2,000", "20,000"]
    assert whole["rows"][0][4:6] == ["1.00 ×", ""]
    assert "10,000,000,000 rows on 20 machines" in estimate["title"]
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.soak
def test_no_load_is_begun_when_time_is_over(tmp_path: Path) -> None:
    result = benchmarks(
        *("--quick", "--only", "load", "--load-minutes", 0, "--results", tmp_path / "results"),
        *("--load-sizes", 20, "--load-runs", "local-scatter-64", "--scratch", tmp_path),
    )
    assert result.returncode == 0, result.stderr
    assert "--load-minutes are over: 20 rows, local-scatter-64 left out" in result.stderr
    kept = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
    assert kept["tables"] == []


def test_the_peak_of_a_process_is_its_own_and_not_its_parent_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.measure import ProcessError, process, python

    held = np.ones(50 << 17)  # 50 MiB
    run = process(python("-I", "-S", "-c", "x = b'1' * (20 << 20); print(len(x))"))
    assert held.nbytes == 50 << 20
    assert 20 < run.peak_mib < 50
    assert run.cpu_s > 0
    with pytest.raises(ProcessError, match=r"exit 3: .*oh no"):
        process(python("-c", "import sys; sys.stderr.write('oh no'); sys.exit(3)"))
    with pytest.raises(ProcessError, match="exit 137"):
        process(python("-c", "import os; os.kill(os.getpid(), 9)"))


# In a process of its own: this one may have a Spark that other tests have started.
PEAKS = """
import subprocess, sys
from benchmarks.spark_memory import Peaks

work = "x = b'1' * (30 << 20); del x; print(flush=True); input()"
command = [sys.executable, "-I", "-S", "-c", work, "pyspark.daemon"]
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
with subprocess.Popen(command, **pipes) as child:
    child.stdout.readline()
    peaks = Peaks()
    peaks.look()
    child.stdin.write("\\n")
print(*peaks.mib, *peaks.mib.values(), sep="\\n")
"""


def test_what_spark_s_processes_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.spark_memory import kind_of

    assert kind_of(["java", "org.apache.spark.deploy.worker.Worker"]) is None
    assert kind_of(["java", "o.a.s.executor.CoarseGrainedExecutorBackend"]) == "executor, JVM"
    command = [sys.executable, "-c", PEAKS]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kind, mib = told.splitlines()
    assert kind == "executor, Python"
    assert 30 < float(mib) < 60


def test_an_estimate_divides_work_among_cores_disks_and_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.estimate import Cluster, Costs, estimated, phases

    costs = Costs(
        rows=10**8,
        partition_s=1e-6,
        anonymize_s=2e-6,
        wrap_up_s=3e-7,
        partition_start_mib=90.0,
        anonymize_start_mib=100.0,
        wrap_up_mib=800.0,
        anonymize_bytes=100.0,
        source_bytes=4.0,
        scattered_bytes=11.0,
        published_bytes=5.0,
        spilled_bytes=4.0,
    )
    small = Cluster(
        machines=10, cores=10, memory_gib=64, disk_mb_s=100.0, network_mb_s=1000.0, replicas=3,
        max_rows=1_250_000,
    )  # fmt: skip
    rows = 10**8  # fragments of a million: one for each of the 100 cores
    count, anonymize, check = phases(costs, small, rows)
    assert (count.over, count.cpu_s) == (100, pytest.approx(1.0))
    assert count.mib == 90
    assert count.disk_s == pytest.approx((3 * 4 + 11) * rows / 1e9)
    assert count.network_s == pytest.approx(0.9 * 11 * rows / 1e10)
    assert anonymize.name == "anonymize 100 fragments"
    assert anonymize.cpu_s == pytest.approx(2.0)
    assert anonymize.mib == pytest.approx(100 + 100 * 1.25e6 / 2**20)
    assert (check.over, check.cpu_s) == (100, pytest.approx(0.3))
    assert check.disk_s == pytest.approx((5 + 2 * 4) * rows / 1e9)
    assert check.network_s == pytest.approx(0.9 * 4 * rows / 1e10)
    assert check.mib == 800
    one_more, *_ = phases(costs, small, rows + 10**6)[1:]  # 101 fragments: two rounds
    assert one_more.cpu_s == pytest.approx(4.0)
    table = estimated(costs, small, 10**10)
    told = {row[0]: row for row in table.rows}
    assert told["check"][5] == "3 min"
    assert told["check"][6] == "0.78 GiB"
    assert told["in all"][5] == "16 min"


def test_what_a_row_costs_is_beyond_the_start_of_its_own_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.growth import costs_of
    from benchmarks.load import LINEAR, Measured
    from benchmarks.measure import Run

    def measured(rows: int, seconds: float, **peaks: float) -> Measured:
        tasks = {phase: [Run(seconds, peak, seconds)] for phase, peak in peaks.items()}
        tasks["anonymize_fragment"] *= 4
        return Measured(LINEAR, rows, 4, seconds, 0.0, tasks, 30 * rows, 0, rows, 10 * rows, {})

    phases = ("partition", "anonymize_fragment", "wrap_up", "clean_up")
    few = measured(20, 1.0, **dict(zip(phases, (90, 100, 80, 300), strict=True)))
    many = measured(2**20, 3.0, **dict(zip(phases, (95, 150, 70, 300), strict=True)))
    costs = costs_of(many, few)
    assert (costs.partition_start_mib, costs.anonymize_start_mib) == (90, 100)
    assert costs.wrap_up_mib == 70  # of the run of many rows
    assert costs.anonymize_bytes == pytest.approx(50 * 4)
    assert costs.anonymize_s == pytest.approx(4 * 2 / 2**20)
    assert costs.scattered_bytes == 20


@pytest.mark.servers
def test_an_unknown_part() -> None:
    assert benchmarks("--only", "nonsense").returncode == 2


def test_a_part_takes_the_place_of_what_it_found_before(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    order = ["one", "two"]

    def part(name: str, cell: str) -> Part:
        table = Table(f"Table {name}", ("", "x"), [("row", cell)])
        return Part(name, {"cores": "2"}, [table], "abc1234")

    renew(part("two", "old"), page, order)
    renew(part("one", "first"), page, order)
    with page.open("a", encoding="utf-8") as file:
        file.write("\n# Measured by hand\n\nA table.\n")
    before = page.read_text("utf-8")
    assert before.index("first") < before.index("old")
    renew(part("two", "new"), page, order)
    assert page.read_text("utf-8") == before.replace("old", "new")


def test_parts_that_were_measured_for_another_commit_are_told(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        author = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        command = ["git", "-C", str(tmp_path), *author, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def change(file: str) -> str:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.read_text() + "more\n" if path.exists() else "first\n")
        git("add", "-A")
        git("commit", "-m", file)
        return checkout.name

    checkout, page = Checkout(tmp_path), tmp_path / "RESULTS.md"
    git("init", "--quiet")
    commit = change("plugins/code.py")
    renew(Part("one", {"cores": "2"}, [], commit), page, ["old", "one"])
    assert outdated(page, checkout) == {}
    change("docs/notes.txt")  # the page's own commit is such a one
    assert outdated(page, checkout) == {}
    (tmp_path / "plugins" / "code.py").write_text("not committed")
    assert outdated(page, checkout) == {"one": commit}
    change("plugins/code.py")
    page.write_text(f"*Part `old`, measured on 2026-11-25. cores: 2.*\n{page.read_text()}")
    assert outdated(page, checkout) == {"old": "an unknown commit", "one": commit}
    renew(Part("one", {"cores": "2"}, [], "0000000"), page, ["old", "one"])
    assert outdated(page, checkout)["one"] == "0000000"


@pytest.mark.soak
def test_many_small_files_are_measured_beside_one(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--rows", 500, "--only", "small_files"),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    (table,) = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert [row[0] for row in table["rows"]] == ["one file", "5 files"]


@pytest.mark.soak
def test_a_table_is_measured_beside_its_files_and_many_parts_are_committed(tmp_path: Path) -> None:
    results = tmp_path / "results"
    result = benchmarks(
        *("--quick", "--rows", 2000, "--only", "iceberg"),
        *("--scratch", tmp_path, "--results", results),
    )
    assert result.returncode == 0, result.stderr
    whole, commits = json.loads((results / "results.json").read_text("utf-8"))["tables"]
    assert len(whole["rows"]) == 3
    assert [row[:2] for row in commits["rows"]] == [
        [parts, which] for parts in ("5", "10") for which in ("first", "replacing")
    ]
