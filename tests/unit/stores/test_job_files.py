"""A job from a file or a mapping, with options changed, and what is refused."""

from __future__ import annotations

import json
import os

import pytest

from mondrian_ops import stores, tables
from mondrian_ops.errors import HierarchyError, InputError, JobError
from mondrian_ops.job.limits import LIMITS
from mondrian_ops.job.quasi_identifier import QuasiIdentifier
from mondrian_ops.job.sections import Partitioning
from mondrian_ops.stores.job_files import load_job, read_job, with_connections

JOB = {"input": "in/ä.csv", "output": "out", "k": 5, "quasi_identifiers": ["naïve 💥"]}
AS_YAML = "input: in/ä.csv\noutput: out\nk: 5\nquasi_identifiers: [naïve 💥]\n".encode()


@pytest.mark.parametrize(
    "content",
    [
        AS_YAML,
        b"\xef\xbb\xbf" + AS_YAML,
        AS_YAML.replace(b"\n", b"\r\n"),
        json.dumps(JOB).encode(),
        json.dumps(JOB).encode("utf-8-sig"),
        json.dumps(JOB, ensure_ascii=False, indent=1).encode(),
    ],
    ids=["yaml", "with a byte order mark", "of Windows", "escaped json", "both", "json"],
)
def test_a_file_holds_what_the_mapping_holds(tmp_path, content):
    path = tmp_path / "jöb.txt"
    path.write_bytes(content)
    assert read_job(str(path)) == JOB
    for given in (path, str(path)):
        assert load_job(given).to_dict() == load_job(JOB).to_dict()


def test_paths_of_a_job_stay_as_they_are_and_its_directory_is_kept(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.yaml").write_bytes(AS_YAML)
    monkeypatch.chdir(tmp_path)
    job = load_job(os.path.join("jobs", "job.yaml"))
    assert (job.input, job.base_dir) == ("in/ä.csv", str(tmp_path / "jobs"))
    assert load_job(JOB).base_dir is None


def test_relative_paths_start_at_the_home_whatever_the_working_directory(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "jobs").mkdir(parents=True)
    (home / "jobs" / "job.yaml").write_bytes(AS_YAML)
    (home / "include" / "hierarchies").mkdir(parents=True)
    (home / "include" / "hierarchies" / "own.csv").write_text("1;*\n")
    monkeypatch.chdir("/")
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", "/nowhere")
    stores.use_home(str(home))
    job = load_job("jobs/job.yaml")
    assert (job.input, job.output) == (str(home / "in" / "ä.csv"), str(home / "out"))
    assert job.base_dir == str(home / "jobs")
    assert load_job(JOB).input == job.input
    own = str(home / "include" / "hierarchies" / "own.csv")
    assert stores.find_hierarchy("own.csv", None) == own
    for url in ("/in/a.csv", "file:///in/a.csv", "s3://bucket/a.csv"):
        assert load_job({**JOB, "input": url}).input == url


def test_outside_airflow_an_environment_variable_sets_the_home(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert load_job(JOB).input == "in/ä.csv"
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", "in")
    job = load_job(JOB)
    assert job.input == str(tmp_path / "in" / "ä.csv")
    stores.check_location("input", job.input)
    with pytest.raises(JobError, match=f"{tmp_path}/other is not allowed"):
        stores.check_location("input", stores.resolved("other"))


def test_a_file_that_is_missing_is_named_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JobError, match=f"{tmp_path}/job.yaml: no such job file"):
        load_job("job.yaml")
    with pytest.raises(InputError, match=f"{tmp_path}/in/ä.csv: no such file"):
        tables.open_table("in/ä.csv")
    with pytest.raises(HierarchyError, match=f"{tmp_path}/include/hierarchies"):
        stores.find_hierarchy("own.csv", None)


def test_overrides_change_the_job_but_not_the_mapping_nor_the_file(tmp_path):
    path, mapping = tmp_path / "job", {**JOB, "partitioning": {"seed": 1}}
    path.write_bytes(AS_YAML)
    for given in (path, mapping):
        job = load_job(given, ["k=7", "partitioning.fragments=3"])
        assert (job.k, job.partitioning.fragments) == (7, 3)
    assert mapping == {**JOB, "partitioning": {"seed": 1}}
    assert path.read_bytes() == AS_YAML


def test_an_override_is_read_as_yaml():
    job = load_job(
        {**JOB, "sensitive": ["income"], "l": 2},
        [
            "k=10",
            "l=null",
            "partitioning.fragments=4",
            "partitioning.sample=1e-2",
            "quasi_identifiers=[age=ladder:5/10@16, zip=prefix, c=hierarchy:c.csv]",
            "output=out/a=b",
        ],
    )
    assert (job.k, job.l, job.output) == (10, None, "out/a=b")
    assert job.partitioning == Partitioning(fragments=4, sample=0.01)
    assert job.quasi_identifiers == (
        QuasiIdentifier("age", "hierarchy", ladder=(5, 10), origin=16),
        QuasiIdentifier("zip", "prefix"),
        QuasiIdentifier("c", "hierarchy", "c.csv"),
    )


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        ("k", "--set 'k': must be KEY=VALUE"),
        ("=3", "--set '=3': must be KEY=VALUE"),
        ("k=1", "k: must be a whole number of at least 2"),
        ("kk=1", "kk: unknown option"),
        ("kk.x=1", "kk: unknown option"),
        ("partitioning.fragmnts=1", "partitioning.fragmnts: unknown option"),
        ("k.x=1", "k.x: k has no options of its own"),
        ("cut.x=1", "cut.x: cut has no options of its own"),
        ("k=[1", "k: '[1' is not valid YAML"),
    ],
)
def test_an_override_that_is_wrong_is_refused(setting, start):
    with pytest.raises(JobError) as caught:
        load_job(JOB, [setting])
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, ": no such job file; check the path"),
        (b"", ": a job is a mapping of options, such as k: 5"),
        (b"- k: 5", ": a job is a mapping of options"),
        (b"k: 5\nk: 6", ", line 1: duplicate key; correct the file"),
        (b'{"k": 5, "k": 6}', ": duplicate key; correct the file"),
        (b"k: 5\nl: [", ", line 2: not valid YAML; correct the file"),
        (b'k: "\xff"', ": not UTF-8 text; convert the file to UTF-8"),
        ("k: 5".encode("utf-16"), ": not UTF-8 text"),
        (b"[" * 3_000, ": nested too deeply; correct the file"),
        (b"#" * (LIMITS["job_file"].default + 1), ": has 256 KiB; the limit 'job_file' is"),
    ],
)
def test_a_file_that_holds_no_job_is_named_with_the_remedy(tmp_path, content, message):
    path = tmp_path / "job.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JobError) as caught:
        read_job(str(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_directory_is_no_job_file(tmp_path):
    with pytest.raises(JobError, match="no such job file"):
        load_job(tmp_path)


def test_an_option_that_is_wrong_is_named_with_its_file(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(AS_YAML.replace(b"k: 5", b"k: 1"))
    with pytest.raises(JobError, match=r"^k: must be .* not 1;.*job\.yaml"):
        load_job(path)


def test_a_template_is_no_job_file():
    with pytest.raises(JobError, match=r"^job: holds the template '\{\{ ds \}\}' as text"):
        load_job("jobs/{{ ds }}.yaml")


def at(**locations):
    return load_job({**JOB, **locations})


def test_a_connection_is_named_in_each_url_that_names_none():
    job = at(input="s3://raw/a?.csv", output="s3://own@public/a")
    changed = with_connections(job, None, "a_store")
    assert changed.input == "s3://a_store@raw/a?.csv"
    assert changed.output == job.output
    assert with_connections(at(input="hdfs:///a"), None, "c").input == "hdfs://c@/a"
    assert with_connections(at(input="file:///a"), None, "c").input == "file:///a"
    assert with_connections(job, None, "") == job


def test_a_connection_to_spark_takes_the_place_of_the_job_s():
    job = load_job({**JOB, "spark": {"connection": "own", "shape": "application"}})
    changed = with_connections(job, "given", None)
    assert (changed.spark.connection, changed.spark.shape) == ("given", "application")
    assert with_connections(job, None, None) == job


def test_one_connection_is_not_sent_to_two_kinds_of_stores():
    job = at(input="hdfs://namenode/a", output="s3://public/a")
    with pytest.raises(JobError, match=r"storage_conn_id: input, output .* name a connection in"):
        with_connections(job, None, "a_store")
