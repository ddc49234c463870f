"""The command line: exit status, standard output, standard error, files."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from job_files import write_job, write_people
from mondrian_ops import cli

PLUGINS = Path(cli.__file__).resolve().parents[2]


def mondrian_ops(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What a command does, in this process: it takes a hundredth of the time of one of its own."""
    given = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = cli.main(given)
        except SystemExit as left:
            status = left.code
    texts = [stream.buffer.getvalue().decode() for stream in (out, err) if not stream.flush()]
    return subprocess.CompletedProcess(given, status, *texts)


def in_its_own_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What a shell sees of a command."""
    return subprocess.run(
        [sys.executable, "-m", "mondrian_ops", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PLUGINS), "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file beside its data."""
    write_people(tmp_path)
    return write_job(tmp_path)


def fails(result: subprocess.CompletedProcess[str], status: int = 1) -> str:
    """The one line on standard error of a command that failed."""
    assert result.returncode == status, result
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("mondrian_ops: ")
    assert "Secret" not in result.stderr
    return result.stderr


class TestUsage:
    def test_help(self) -> None:
        result = mondrian_ops("--help")
        assert result.returncode == 0
        for command in ("run", "plan", "verify", "frontier", "generate"):
            assert command in result.stdout

    def test_each_command_is_found_by_its_name_alone(self) -> None:
        """Only its own module is imported."""
        listed = re.findall(r"^    ([a-z]+)\b", mondrian_ops("--help").stdout, re.MULTILINE)
        assert sorted(listed) == sorted(cli._MODULES)
        for name in listed:
            assert mondrian_ops(name, "--help").stdout.startswith(f"usage: mondrian_ops {name} ")

    @pytest.mark.parametrize(
        "arguments",
        [[], ["nonsense"], ["run"], ["verify", "out"], ["generate", "cards", "--output", "x"],
         ["generate", "poker", "--rows", "0", "--output", "x"],
         ["generate", "people", "--nights", "2", "--first-day", "today", "--output", "x"],
         ["run", "job.yaml", "--k", "5"],
         ["frontier"], ["frontier", "j", "--k", "2,x"],
         ["frontier", "j", "--rows", "9", "--sample", "1"]],
    )  # fmt: skip
    def test_a_command_line_that_makes_no_sense(self, arguments: list[str]) -> None:
        result = mondrian_ops(*arguments)
        assert result.returncode == 2
        assert "usage:" in result.stderr and "Traceback" not in result.stderr

    def test_version(self) -> None:
        assert mondrian_ops("--version").stdout.startswith("mondrian_ops 0.")

    def test_start_up_imports_nothing_heavy(self) -> None:
        code = (
            "import sys, mondrian_ops.cli as cli\n"
            "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
            "heavy = {'numpy', 'pandas', 'pyarrow', 'rich', 'yaml', 'airflow'}\n"
            "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
        )
        subprocess.run(
            [sys.executable, "-c", code], check=True, env=environment(), capture_output=True
        )


class TestHierarchyMissing:
    @pytest.fixture
    def job(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        towns = ['Secret; "Town"', "Oslo", None, "Secret, Town", "Secretville", "Oslo"] * 10
        smokes = pa.array([True, None, False] * 20)
        table = pa.table({"town": towns, "smokes": smokes, "age": range(60)})
        pq.write_table(table, tmp_path / "people.parquet")
        (tmp_path / "towns.csv").write_text("Oslo;Norway;*\n")
        (tmp_path / "truth.csv").write_text("True;*\nFalse;*\n")
        return write_job(
            tmp_path,
            identifiers=[],
            quasi_identifiers=["town=hierarchy:towns.csv", "age"],
            sensitive=["smokes"],
            t=0.5,
            t_distance="hierarchical",
            sensitive_hierarchy={"smokes": "truth.csv"},
        )

    def test_writes_the_values_to_a_private_file_that_completes_the_hierarchy(
        self, job: Path, tmp_path: Path
    ) -> None:
        refused = fails(mondrian_ops("run", job, "--quiet"))
        assert refused.endswith("mondrian_ops hierarchy missing JOB --column town\n")
        result = mondrian_ops("hierarchy", "missing", job, "--column", "town")
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == "3 values are no leaves of towns.csv: missing_town.csv\n"
        written = tmp_path / "missing_town.csv"
        assert written.stat().st_mode & 0o777 == 0o600
        lines = written.read_text("utf-8").splitlines()
        assert lines == ['"Secret, Town"', '"Secret; ""Town"""', "Secretville"]
        with open(tmp_path / "towns.csv", "a") as towns:
            towns.writelines(f"{line};Elsewhere;*\n" for line in lines)
        written.unlink()
        result = mondrian_ops("hierarchy", "missing", job, "--column", "town")
        assert result.stdout == (
            "no file is written: all values of the column are leaves of towns.csv\n"
        )
        assert not written.exists()

    def test_values_of_other_types_are_listed_as_leaves_have_to_be_written(
        self, job: Path, tmp_path: Path
    ) -> None:
        arguments = ("hierarchy", "missing", job, "--column", "smokes", "--output", "truth.txt")
        assert mondrian_ops(*arguments).returncode == 0
        assert (tmp_path / "truth.txt").read_text() == "false\ntrue\n"
        said = fails(mondrian_ops("run", job, "--quiet", "--set", "quasi_identifiers=[age]"))
        assert "'truth.csv', where values of type bool are written as true or false; add" in said

    @pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
    def test_nothing_is_overwritten(self, job: Path, tmp_path: Path, kind: str) -> None:
        other, path = tmp_path / "other", tmp_path / "missing_town.csv"
        if kind == "link":
            other.write_text("mine")
        path.write_text("mine") if kind == "file" else path.symlink_to(other)
        said = fails(mondrian_ops("hierarchy", "missing", job, "--column", "town"))
        assert "missing_town.csv is there already, and is not overwritten" in said
        assert other.exists() == (kind == "link")
        assert kind == "dangling link" or path.read_text() == "mine"

    def test_a_column_without_a_hierarchy_is_named(self, job: Path, tmp_path: Path) -> None:
        said = fails(mondrian_ops("hierarchy", "missing", job, "--column", "twon"))
        assert "--column: the job gives 'twon' no hierarchy file (did you mean 'town'?)" in said
        assert not list(tmp_path.glob("missing*"))

    def test_the_access_policy_holds_for_the_file(
        self, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "here").mkdir()
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(tmp_path))
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path / "here"))
        command = ("hierarchy", "missing", job, "--column", "town", "--set", "output=here/out")
        said = fails(mondrian_ops(*command))
        assert "--output: " in said and "allowed_outputs" in said
        assert mondrian_ops(*command, "--output", "here/towns.csv").returncode == 0
        assert (tmp_path / "here" / "towns.csv").exists()


class TestFrontier:
    def test_prints_the_table_and_writes_the_files(self, job: Path, tmp_path: Path) -> None:
        result = mondrian_ops("frontier", job, "--k", "2,5,401", "--l", "1,2")
        assert result.returncode == 0, result.stderr
        lines = result.stdout.splitlines()
        assert [line.split()[:2] for line in lines[:5]] == [
            *(["k", "l"], ["2", "–"], ["5", "–"], ["2", "2"], ["5", "2"]),
        ]
        assert "Not attainable: k = 401" in result.stdout
        assert "Secret" not in result.stdout
        folder = tmp_path / "out_frontier"
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["frontier.csv", "frontier.html", "frontier.svg"]
        assert all(str(folder / name) in result.stdout for name in names)
        assert all(" s  " in line for line in result.stderr.splitlines())
        here = sorted(path.name for path in tmp_path.iterdir())
        assert here == ["job.yaml", "out_frontier", "people.parquet"]

    def test_json_and_another_place(self, job: Path, tmp_path: Path) -> None:
        place = tmp_path / "elsewhere"
        result = mondrian_ops(
            "frontier", job, "--k", "3", "--json", "--output", place, "--set", "cut=median"
        )
        figures = json.loads(result.stdout)
        assert figures["cut"] == "median"
        assert [point["k"] for point in figures["points"]] == [3]
        assert (place / "frontier.csv").exists()

    def test_quiet(self, job: Path) -> None:
        result = mondrian_ops("frontier", job, "--k", "3", "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (["--k", "1"], "k = 1"),
            (["--l", "0.5"], "l = 0.5"),
            (["--sample", "7"], "sample"),
            (["--set", "input=nowhere.parquet"], "nowhere.parquet"),
        ],
    )
    def test_what_makes_no_sense_is_one_clear_line(
        self, job: Path, tmp_path: Path, arguments: list[str], named: str
    ) -> None:
        assert named in fails(mondrian_ops("frontier", job, "--quiet", *arguments))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["job.yaml", "people.parquet"]


class TestRun:
    @pytest.mark.parametrize("run", [mondrian_ops, in_its_own_process])
    def test_publishes_and_prints_the_report(self, job: Path, tmp_path: Path, run: Any) -> None:
        result = run("run", job)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("PUBLISHED")
        assert str(tmp_path / "out" / "_report.html") in result.stdout
        assert "Traceback" not in result.stderr and "\x1b" not in result.stdout + result.stderr
        names = {path.name for path in (tmp_path / "out").iterdir()}
        assert {"_SUCCESS", "_report.json", "_report.html"} <= names
        table = pq.read_table(tmp_path / "out")
        assert table.num_rows == 400
        assert "name" not in table.column_names
        assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "out", "people.parquet"]

    def test_json_is_the_report(self, job: Path, tmp_path: Path) -> None:
        result = mondrian_ops("run", job, "--json", "--set", "k=7")
        report = json.loads(result.stdout)
        assert report["job"]["k"] == 7 and report["achieved"]["k"] >= 7
        assert report == json.loads((tmp_path / "out" / "_report.json").read_text("utf-8"))

    def test_timings_name_the_phases_of_the_report_and_those_after_it(self, job: Path) -> None:
        many = "partitioning={fragments: 3, sample: 1.0}"
        result = mondrian_ops("run", job, "--json", "--timings", "--set", many)
        report = json.loads(result.stdout)
        table = result.stderr[result.stderr.index("phase ") :]
        shown = [line[:12].strip().replace(" ", "_") for line in table.splitlines()]
        assert list(report["phases"]) == [
            *("start", "open", "profile", "plan", "count"),
            *("fetch", "encode", "cut", "generalize", "lay_out", "write", "truth", "sample"),
            *("recount", "single_out", "use"),
        ]
        assert shown == ["phase", *report["phases"], "report", "publish", "other", "in_all"]
        of_fragments = [*report["phases"].values()][5:13]
        took = sum(fragment["seconds"] for fragment in report["fragments"])
        assert len(report["fragments"]) == 3
        assert 0 < sum(cost["seconds"] for cost in of_fragments) <= took + 0.01
        assert all(cost.keys() == {"seconds", "cpu_s"} for cost in of_fragments)

    def test_a_refused_release_has_timings_too(self, job: Path) -> None:
        refused = mondrian_ops("run", job, "--quiet", "--timings", "--set", "max_risk=0.001")
        assert refused.returncode == 1
        assert "recount " in refused.stderr and "publish " not in refused.stderr

    def test_what_a_terminal_cannot_show_is_replaced(self, job: Path, tmp_path: Path) -> None:
        out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            status = cli.main(["run", str(job), "--set", f"output={tmp_path / 'größe'}"])
        assert status == 0
        assert b"gr??e/_report.html" in out.buffer.getvalue()

    def test_quiet(self, job: Path) -> None:
        result = mondrian_ops("run", job, "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    def test_progress_in_a_log_is_plain_lines(self, job: Path) -> None:
        lines = mondrian_ops("run", job).stderr.splitlines()
        assert lines and all(" s  " in line for line in lines)

    def test_a_refused_release_has_a_report_that_says_so(self, job: Path, tmp_path: Path) -> None:
        refused = mondrian_ops("run", job, "--json", "--set", "max_risk=0.001")
        assert refused.returncode == 1
        report = json.loads(refused.stdout)
        assert report["outcome"]["state"] == "refused"
        assert report["outcome"]["reason"].startswith("the release is refused and not published: ")
        assert report["outcome"]["reason"] in refused.stderr
        assert (report["rows"]["published"], report["requested_by"]) == (0, None)
        assert not (tmp_path / "out").exists()

    def test_what_cannot_be_met_is_refused(self, job: Path, tmp_path: Path) -> None:
        fails(mondrian_ops("run", job, "--quiet", "--set", "k=401"))
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("setting", "named"),
        [
            ("k=1", "k"),
            ("kk=5", "kk"),
            ("k", "KEY=VALUE"),
            ("partitioning.sample=7", "partitioning.sample"),
            ("quasi_identifiers=[age, salary]", "salary"),
            ("input=nowhere.parquet", "nowhere.parquet"),
        ],
    )
    def test_a_wrong_job_is_one_clear_line(self, job: Path, setting: str, named: str) -> None:
        assert named in fails(mondrian_ops("run", job, "--quiet", "--set", setting))

    def test_no_job_file(self, tmp_path: Path) -> None:
        assert "absent.yaml" in fails(mondrian_ops("run", tmp_path / "absent.yaml"))

    @pytest.mark.servers
    def test_moments_that_python_cannot_hold(self, tmp_path: Path) -> None:
        """No library may be needed for nanoseconds that this process does without."""
        ticks = pa.array([10**18 + 7 * at for at in range(100)])
        moments = ticks.cast(pa.timestamp("ns"))
        pq.write_table(pa.table({"q0": moments, "q1": moments}), tmp_path / "people.parquet")
        for retrieval in ("scatter", "pushdown"):
            job = write_job(
                tmp_path,
                l=None,
                sensitive=[],
                identifiers=[],
                quasi_identifiers=["q0", "q1=set"],
                retrieval=retrieval,
                partitioning={"fragments": 3, "sample": 1.0},
            )
            result = in_its_own_process("run", job, "--quiet")
            assert result.returncode == 0, result.stderr
            released = set(pq.read_table(tmp_path / "out")["q0"].to_pylist())
            assert "[2001-09-09 01:46:40.000000000, 2001-09-09 01:46:40.000000028]" in released

    def test_a_refused_run_leaves_the_last_release(self, job: Path, tmp_path: Path) -> None:
        assert mondrian_ops("run", job, "--quiet").returncode == 0
        before = (tmp_path / "out" / "_report.json").read_bytes()
        fails(mondrian_ops("run", job, "--quiet", "--set", "k=300", "--set", "l=4"))
        assert (tmp_path / "out" / "_report.json").read_bytes() == before

    def test_reader_of_standard_output_may_leave(self, job: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "mondrian_ops", "plan", str(job)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        process.wait(timeout=60)
        assert "Traceback" not in errors and "Exception ignored" not in errors

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (OSError(28, "No space left on device"), "No space left on device: input or output"),
            (OSError("the server is gone"), "the server is gone"),
        ],
    )
    def test_output_that_cannot_be_written_is_one_clear_line(
        self, job: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
    ) -> None:
        def fail(_text: str) -> int:
            raise error

        err = io.StringIO()
        out = io.StringIO()
        monkeypatch.setattr(out, "write", fail)
        with redirect_stdout(out), redirect_stderr(err):
            status = cli.main(["plan", str(job)])
        assert (status, err.getvalue()) == (1, f"mondrian_ops: {message}\n")

    @pytest.mark.parametrize(
        ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
    )
    def test_a_signal_leaves_nothing_behind(
        self, tmp_path: Path, number: signal.Signals, status: int
    ) -> None:
        source = tmp_path / "hands.parquet"
        assert mondrian_ops("generate", "poker", "--rows", 300_000, "--output", source).stdout
        job = write_job(
            tmp_path,
            input=str(source),
            identifiers=[],
            quasi_identifiers=[f"{kind}{i}" for i in range(1, 6) for kind in "sr"],
            sensitive=["hand"],
            cut="lookahead",
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "mondrian_ops", "run", str(job)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        assert process.stderr is not None
        process.stderr.readline()  # the first phase has begun
        time.sleep(0.1)
        process.send_signal(number)
        errors = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=60) == status, errors
        assert "Traceback" not in errors
        assert sorted(p.name for p in tmp_path.iterdir()) == ["hands.parquet", "job.yaml"]


class TestPlan:
    def test_shows_every_row_once(self, job: Path, tmp_path: Path) -> None:
        fragments = json.loads(mondrian_ops("plan", job, "--json").stdout)
        assert sum(fragment["rows"] for fragment in fragments) == 400
        shown = mondrian_ops("plan", job).stdout.splitlines()
        assert len(shown) == len(fragments) + 1
        assert not (tmp_path / "out").exists()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "people.parquet"]


class TestVerify:
    def test_passes_on_a_release(self, job: Path, tmp_path: Path) -> None:
        assert mondrian_ops("run", job, "--quiet").returncode == 0
        result = mondrian_ops("verify", tmp_path / "out", "--job", job)
        assert result.returncode == 0, result
        assert result.stdout.endswith("PASSED\n")

    def test_fails_on_a_stricter_job(self, job: Path, tmp_path: Path) -> None:
        assert mondrian_ops("run", job, "--quiet").returncode == 0
        result = mondrian_ops("verify", tmp_path / "out", "--job", job, "--set", "k=350")
        assert result.returncode == 1
        assert "failed" in result.stdout and result.stdout.endswith("FAILED\n")

    def test_says_which_requirement_fails(self, job: Path, tmp_path: Path) -> None:
        release = tmp_path / "other"
        release.mkdir()
        pq.write_table(
            pa.table({"age": ["1", "1", "2"], "zip": ["a", "a", "b"], "income": ["x", "y", "x"]}),
            release / "part-0.parquet",
        )
        result = mondrian_ops("verify", release, "--job", job, "--set", "k=2", "--json")
        verdict = json.loads(result.stdout)
        assert result.returncode == 1
        assert not verdict["passed"]
        assert verdict["rows"] == 3 and verdict["equivalence_classes"] == 2
        assert verdict["achieved"]["k"] == 1 and verdict["achieved"]["l"] == 1

    def test_bounds_are_two_columns(self, job: Path, tmp_path: Path) -> None:
        job = write_job(tmp_path, interval_style="bounds")
        assert mondrian_ops("run", job, "--quiet").returncode == 0
        assert mondrian_ops("verify", tmp_path / "out", "--job", job).returncode == 0

    def test_a_release_without_the_column(self, job: Path, tmp_path: Path) -> None:
        assert mondrian_ops("run", job, "--quiet").returncode == 0
        setting = "quasi_identifiers=[age, height]"
        message = fails(mondrian_ops("verify", tmp_path / "out", "--job", job, "--set", setting))
        assert "height" in message

    def test_no_release(self, job: Path, tmp_path: Path) -> None:
        assert "absent" in fails(mondrian_ops("verify", tmp_path / "absent", "--job", job))


class TestGenerate:
    @pytest.mark.parametrize("kind", ["poker", "people"])
    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_same_seed_same_file(self, tmp_path: Path, kind: str, suffix: str) -> None:
        files = [tmp_path / f"{i}.{suffix}" for i in range(3)]
        for file, seed in zip(files, (1, 1, 2), strict=True):
            result = mondrian_ops("generate", kind, "--rows", 100, "--seed", seed, "--output", file)
            assert result.returncode == 0, result.stderr
        assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()

    def test_nights(self, tmp_path: Path) -> None:
        result = mondrian_ops(
            *("generate", "people", "--rows", 40, "--nights", 2, "--drops", "snapshots"),
            *("--leave", 0, "--come", 0.5, "--first-day", "2026-02-28", "--output", tmp_path),
        )
        assert result.stdout == f"100 rows of 2 nights in {tmp_path}\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-02-28", "2026-03-01"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["people", "--move", 0.1], "move: give --nights as well"),
            (["people", "--first-day", "2025-01-02"], "first-day: give --nights as well"),
            (["people", "--drops", "snapshots"], "drops: give --nights as well"),
            (["poker", "--nights", 2], "nights: only people change"),
            (["people", "--nights", 2, "--leave", 0.1], "leave: is for snapshots"),
        ],
    )
    def test_nights_that_cannot_be(
        self, tmp_path: Path, arguments: list[object], message: str
    ) -> None:
        output = tmp_path / "drops"
        assert message in fails(mondrian_ops("generate", *arguments, "--output", output))
        assert not output.exists()

    def test_an_unknown_format(self, tmp_path: Path) -> None:
        fails(mondrian_ops("generate", "poker", "--rows", 5, "--output", tmp_path / "x.xlsx"))


class TestLimitsOfTheEnvironment:
    """Where the environment has any, nothing else may be named, as in Airflow."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for kind in ("INPUTS", "OUTPUTS"):
            monkeypatch.setenv(f"AIRFLOW__MONDRIAN_OPS__ALLOWED_{kind}", str(tmp_path))

    @pytest.mark.parametrize("command", ["run", "plan", "frontier"])
    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ("input=/etc/passwd", "input: /etc/passwd is not allowed here"),
            ("input={here}/.p*/release", "input: .* is hidden, because"),
            ("output=/srv/out", "output: /srv/out is not allowed here"),
            ("engine=spark", r"spark\.connection: .* is not allowed here"),
        ],
    )
    def test_a_job_names_what_is_allowed(
        self, job: Path, capsys: pytest.CaptureFixture[str], command: str, change: str, error: str
    ) -> None:
        assert cli.main([command, str(job), "--set", change.format(here=job.parent)]) == 1
        assert re.fullmatch(rf"mondrian_ops: {error}[^\n]*\n", capsys.readouterr().err)

    @pytest.mark.parametrize(
        ("release", "error"),
        [("/etc", "is not allowed here"), ("{here}/.*/release", "is hidden")],
    )
    def test_so_is_the_release_that_is_verified(
        self, job: Path, capsys: pytest.CaptureFixture[str], release: str, error: str
    ) -> None:
        work = job.parent / ".people.mondrian_ops-0123456789ab" / "release"
        work.mkdir(parents=True)
        (work / "part.csv").write_text("age,zip,income\n1,1,1\n")
        assert cli.main(["verify", release.format(here=job.parent), "--job", str(job)]) == 1
        assert re.match(rf"mondrian_ops: release: .* {error}", capsys.readouterr().err)

    def test_what_is_allowed_is_done(self, job: Path) -> None:
        assert cli.main(["run", str(job), "--quiet"]) == 0
        assert cli.main(["plan", str(job)]) == 0
        assert cli.main(["verify", str(job.parent / "out"), "--job", str(job)]) == 0
        assert cli.main(["frontier", str(job), "--k", "5", "--quiet"]) == 0


def test_a_change_of_the_columns_is_shown_and_accepted(tmp_path: Path) -> None:
    for day, column in ((1, "sex"), (2, "ssn")):
        table = pa.table({"age": list(range(20, 30)), column: ["a", "b"] * 5})
        pq.write_table(table, tmp_path / f"2025-06-0{day}.parquet")
    keys = {"schema": "keep", "unlisted": "publish", "identifiers": [], "sensitive": [], "l": None}
    file = write_job(tmp_path, quasi_identifiers=["age"], **keys)
    nights = tmp_path / "out" / "2025-06-0"
    night = f"{nights}1"

    def run(day: int) -> subprocess.CompletedProcess[str]:
        drop = f"input={tmp_path}/2025-06-0{day}.parquet"
        output = f"output={nights}{day}"
        return mondrian_ops("run", file, "--quiet", "--set", drop, "--set", output)

    assert "no release" in mondrian_ops("contract", "show", night).stdout
    assert run(1).returncode == 0
    error = fails(run(2))
    (change,) = re.findall(r"2025-06-02 ([0-9a-f]{8})`", error)
    shown = mondrian_ops("contract", "show", night).stdout
    assert re.search(r"age +int64, quasi-identifier \(interval\)", shown)
    assert f"change {change}" in shown
    assert "not accepted" in shown
    assert "copy the id" in fails(mondrian_ops("contract", "accept", night, "00000000"))
    assert "column 'ssn' is new" in mondrian_ops("contract", "accept", night, change).stdout
    assert run(2).returncode == 0
    assert change not in mondrian_ops("contract", "show", night).stdout


def test_the_schema_is_printed() -> None:
    printed = mondrian_ops("schema")
    assert printed.returncode == 0
    assert json.loads(printed.stdout)["properties"]["k"]["minimum"] == 2


@pytest.fixture
def decree(job: Path, monkeypatch: pytest.MonkeyPatch):
    """Set what a policy requires of the job's input."""

    def set_policy(**required: Any) -> None:
        policy = {"name": "people", "inputs": [str(job.parent)], **required}
        (job.parent / "policies.json").write_text(json.dumps({"policies": [policy]}))
        monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", str(job.parent / "policies.json"))

    return set_policy


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_job_below_its_policy_is_refused(job, decree, command):
    decree(min_k=7)
    done = mondrian_ops(command, job, "--set", "k=6")
    assert done.returncode == 1
    assert "k: is 6, and the policy 'people' requires min_k: 7; set 7 or more" in done.stderr
    assert mondrian_ops(command, job, "--set", "k=7").returncode == 0


def test_a_frontier_publishes_no_rows_and_needs_no_floor(job, decree):
    decree(min_k=100)
    assert mondrian_ops("frontier", job, "--k", "2", "--quiet").returncode == 0


@pytest.mark.parametrize("rule", [{"four_eyes": True}, {"approvers": ["ada"]}])
def test_who_runs_a_job_does_not_approve_where_a_policy_says_who_may(job, decree, rule):
    decree(approval={"required": True, **rule})
    done = mondrian_ops("run", job, "--approve", "--quiet")
    assert done.returncode == 1
    assert "the policies 'people' say who may approve" in done.stderr


def test_an_approval_that_a_policy_requires_is_asked_for(job, decree):
    decree(approval={"required": True})
    refused = mondrian_ops("run", job, "--quiet")
    assert refused.returncode == 1
    assert "the release needs an approval" in refused.stderr
    assert mondrian_ops("run", job, "--approve", "--quiet").returncode == 0


def test_a_sweep_removes_what_a_killed_run_left_and_leaves_airflow_s_runs_alone(tmp_path):
    from mondrian_ops.publish import Owner, WorkDir, work_path

    works = {
        run: work_path(str(tmp_path / "out"), run) for run in ("a_dag/manual__1", "killed", "lives")
    }
    for run, owner in [("a_dag/manual__1", Owner("a_dag/manual__1", "partition")), ("lives", None)]:
        WorkDir(works[run]).create(owner)
    killed = (
        "import os, sys; from mondrian_ops.publish import WorkDir; WorkDir(sys.argv[1]).create(); "
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", killed, works["killed"]], check=False)

    def left(*options: str) -> set[str]:
        result = mondrian_ops("sweep", str(tmp_path), *options)
        assert result.returncode == 0
        return {run for run, work in works.items() if Path(work).exists()}

    assert left() == set(works)
    assert left("--keep-hours", "0") == {"a_dag/manual__1", "lives"}
    assert left("--keep-hours", "0", "--all") == {"lives"}
    WorkDir(works["lives"]).remove()
