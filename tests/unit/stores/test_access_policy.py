"""What jobs may read, write and name, and every way around it that we could think of."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mondrian_ops import pipeline, publish, stores, tables
from mondrian_ops.errors import HierarchyError, InputError, JobError
from mondrian_ops.job.job import Job
from mondrian_ops.nightly.landing import read_landing
from mondrian_ops.stores import load_job, read_job
from mondrian_ops.stores.access_policy import (
    AccessPolicy,
    check_location,
    check_opened,
    check_place,
    check_reading,
    check_source_file,
)
from mondrian_ops.tables.discovery import data_files

INPUTS = "in, hdfs://namenode/data, s3://a_conn@bucket/raw"
OUTPUTS = "out, hdfs://namenode/releases"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with what is allowed, and a secret beside it."""
    monkeypatch.chdir(tmp_path)
    for name in ("in", "out", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "rows.csv").write_text("age\n1\n2\n3\n4\n")
    (tmp_path / "other" / "rows.csv").write_text("age\n5\n6\n7\n8\n")
    restrict(tmp_path)
    yield tmp_path
    stores.use_policy(None)


def restrict(home, **changed):
    options = {
        "allowed_inputs": INPUTS,
        "allowed_outputs": OUTPUTS,
        "allowed_connections": "a_spark",
        "allowed_spark_conf": "spark.executor.memory, spark.dynamicAllocation.*",
        **changed,
    }
    stores.use_home(str(home))
    stores.use_policy(AccessPolicy.of(options, dags=[str(home / "dags")]))


def job(home, **changed) -> Job:
    options = {
        "input": str(home / "in" / "rows.csv"),
        "output": str(home / "out" / "release"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    return load_job({**options, **changed})


def assert_refused(home, message: str, **changed) -> None:
    with pytest.raises(JobError, match=message):
        publish.check_job(job(home, **changed))


ALLOWED_INPUTS = [
    "{home}/in/rows.csv",
    "{home}/in",
    "{home}/in/",
    "{home}//in///rows.csv",
    "//{home}/in/rows.csv",
    "{home}/in/./rows.csv",
    "{home}/in/*.csv",
    "{home}/in/**/day-[0-9].csv",
    "{home}/out/release",
    "file://{home}/in/rows.csv",
    "FILE://{home}/in/rows.csv",
    "in/rows.csv",
    "hdfs://namenode/data",
    "hdfs://namenode/data/people/*.parquet",
    "HDFS://namenode//data/people",
    "hdfs://namenode/releases/people",
    "s3://a_conn@bucket/raw/people.csv",
]
REFUSED_INPUTS = [
    "/etc/passwd",
    "/",
    "/*",
    "//etc/passwd",
    "{home}",
    "{home}/i*/rows.csv",
    "{home}/*/rows.csv",
    "{home}/in*",
    "{home}/input/rows.csv",
    "{home}/other/rows.csv",
    "{home}/in/../other/rows.csv",
    "{home}/in/../in/rows.csv",
    "in/../../rows.csv",
    "other/rows.csv",
    "~/rows.csv",
    "file:///etc/passwd",
    "file://{home}/in/%2e%2e/other/rows.csv",
    "file://{home}/in/%2E%2E%2Fother/rows.csv",
    "file://{home}/in\\..\\other",
    "hdfs://namenode/database",
    "hdfs://namenode/",
    "hdfs://namenode/data/../secret",
    "hdfs://namenode/data/%2e%2e/secret",
    "hdfs://namenode/data%2f..%2fsecret",
    "hdfs://namenode/dat?/secret",
    "hdfs://namenode:8020/data/people",
    "hdfs://other/data/people",
    "hdfs://a_conn@namenode/data/people",
    "hdfs://@namenode/data/people",
    "webhdfs://namenode/data/people",
    "swebhdfs://namenode/data/people",
    "s3://bucket/raw/people.csv",
    "s3://other_conn@bucket/raw/people.csv",
    "s3://a_conn@bucket/secret.csv",
    "s3://a_conn@bucket.evil/raw/x",
    "s3://a_conn@namenode/data",
]


@pytest.mark.parametrize("url", ALLOWED_INPUTS)
def test_what_lies_in_an_allowed_input_or_output_may_be_read(home, url):
    publish.check_job(job(home, input=url.format(home=home)))


@pytest.mark.parametrize("url", REFUSED_INPUTS)
def test_nothing_else_may_be_read(home, url):
    assert_refused(home, r"^input: .*(allowed_inputs in|without it)", input=url.format(home=home))


@pytest.mark.parametrize(
    "url", ["{home}/out/release", "out/a/b", "file://{home}/out/x", "hdfs://namenode/releases/x"]
)
def test_what_lies_below_an_allowed_output_may_be_written(home, url):
    publish.check_job(job(home, output=url.format(home=home)))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("/srv/release", "allowed_outputs in"),
        ("{home}/in/release", "allowed_outputs in"),
        ("{home}/out/../in/release", "without it"),
        ("{home}/out", "give a directory in it"),
        ("{home}/out/", "give a directory in it"),
        ("hdfs://namenode/releases/", "give a directory in it"),
        ("hdfs://namenode/data/people", "allowed_outputs in"),
        ("s3://a_conn@bucket/raw/release", "allowed_outputs in"),
        ("{home}/out/.reports/x", "hidden"),
        ("{home}/out/x/.release", "hidden"),
    ],
)
def test_nothing_is_written_elsewhere_nor_beside_an_allowed_output(home, url, message):
    assert_refused(home, rf"^output: .*{message}", output=url.format(home=home))


def test_working_files_of_others_are_no_input(home):
    """Rows that are not checked, or wait for an approval, lie there."""
    work = home / "out" / ".people.mondrian_ops-0123456789ab" / "release"
    work.mkdir(parents=True)
    (home / "out" / "link").symlink_to(work)
    for url in (work, home / "out" / "link"):
        assert_refused(home, r"^input: .* hidden, because", input=str(url))


@pytest.fixture
def staged(home):
    """A release of somebody else that waits for its approval; the job that wrote it is done."""
    work = home / "out" / ".people.mondrian_ops-0123456789ab" / "release"
    work.mkdir(parents=True)
    (work / "part-0.csv").write_text("age\n5\n6\n7\n8\n")
    (home / "out" / "seen").mkdir()
    (home / "out" / "seen" / "part-0.csv").write_text("age\n1\n2\n3\n4\n")
    return work


HIDDEN_PATTERNS = [
    "out/.p*/release",
    "out/.p*/release/part-0.csv",
    "out/.*/release/part-*.csv",
    "out/.[p]*/release",
    "out/**/.p*/*/*.csv",
    "o*/.p*/release",
    "out/[!x]people.mondrian_ops-*/.r*",
    "out/[.s]*/../.p*/release",
]


@pytest.mark.parametrize("pattern", HIDDEN_PATTERNS)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_no_pattern_finds_working_files(home, staged, pattern, scheme):
    url = f"{scheme}{home}/{pattern}"
    assert_refused(home, r"^input: ", input=url)
    with pytest.raises((JobError, InputError)):
        data_files(url)


def test_a_hidden_name_after_a_wildcard_is_hidden(home, staged):
    (home / "out" / "deep").mkdir()
    staged.parent.rename(home / "out" / "deep" / staged.parent.name)
    url = f"{home}/out/*/{staged.parent.name}/release"
    for refusing in (lambda: publish.check_job(job(home, input=url)), lambda: data_files(url)):
        with pytest.raises(JobError, match=r"^input: .* hidden, because"):
            refusing()
    for remote in ("hdfs://namenode/data/*/.x/release", "hdfs://namenode/data/a[b]/.x"):
        assert_refused(home, r"^input: .* hidden, because", input=remote)


def test_a_release_whose_name_looks_like_a_pattern_hides_its_working_files(home, staged):
    odd = home / "out" / "rows[1]"
    staged.parent.parent.joinpath("seen").rename(odd)
    staged.parent.rename(odd / ".people")
    publish.check_job(job(home, input=str(odd)))
    assert_refused(home, r"^input: .* hidden, because", input=f"{odd}/.people/release")


@pytest.mark.parametrize("pattern", ["out/l*", "out/*/part-*", "out/**", "out", "out/**/*.csv"])
def test_a_link_to_hidden_files_is_refused_wherever_it_is_found(home, staged, pattern):
    (home / "out" / "link").symlink_to(staged)
    publish.check_job(job(home, input=str(home / pattern)))
    with pytest.raises(JobError, match=r"^input: .*link.* hidden, because"):
        tables.open_table(str(home / pattern))


def test_a_link_whose_name_looks_like_a_pattern_is_followed_before_it_is_judged(home, staged):
    (home / "in" / "o*").symlink_to(home / "other")
    (home / "in" / "h*").symlink_to(staged)
    assert_refused(home, r"^input: .* is not allowed here", input=f"{home}/in/o*")
    assert_refused(home, r"^input: .* hidden, because", input=f"{home}/in/h*")


def test_what_is_not_hidden_is_found_as_without_limits(home, staged):
    for pattern in ("out/*", "out/s*/part-?.csv", "out/**/*.csv", "out"):
        url = str(home / pattern)
        publish.check_job(job(home, input=url))
        assert [file.url for file in data_files(url)] == [str(home / "out" / "seen" / "part-0.csv")]


def test_nothing_hidden_is_found_on_a_remote_store(home):
    root = "hdfs://namenode/releases"
    for hidden in (f"{root}/.w/release", f"{root}/a/.w/part.csv"):
        with pytest.raises(JobError, match=r"^input: .* hidden, because"):
            check_source_file(f"{hidden}/part.csv", root)
        check_source_file(f"{hidden}/part.csv", hidden)
    check_source_file(f"{root}/a/part.csv", root)


def test_our_own_working_files_are_read(home, staged):
    """As the check before a publication does; no job can name them."""
    for url in (staged, staged / "part-0.csv"):
        assert [file.url for file in data_files(str(url))] == [str(staged / "part-0.csv")]


def test_folders_that_are_mounted_as_kubernetes_does_are_not_hidden(home):
    (home / "in" / "..2025_06_01").mkdir()
    (home / "in" / "..data").symlink_to("..2025_06_01")
    (home / "in" / "config.csv").symlink_to("..data/config.csv")
    publish.check_job(job(home, input=str(home / "in" / "config.csv")))


def test_a_refusal_names_the_option_and_the_setting_but_no_connection(home):
    with pytest.raises(JobError) as caught:
        publish.check_job(job(home, input="s3://my_conn@bucket/x"))
    assert str(caught.value) == (
        "input: s3://bucket/x is not allowed here; choose another, or have an administrator add it "
        "to allowed_inputs in the section [mondrian_ops] of Airflow's configuration"
    )


# Symbolic links


def test_a_link_is_followed_before_it_is_judged(home):
    (home / "in" / "out.csv").symlink_to(home / "other" / "rows.csv")
    (home / "in" / "in.csv").symlink_to(home / "in" / "rows.csv")
    (home / "out" / "away").symlink_to(home / "other")
    publish.check_job(job(home, input=str(home / "in" / "in.csv")))
    assert_refused(home, r"^input: .*out\.csv is not allowed", input=str(home / "in" / "out.csv"))
    assert_refused(
        home,
        r"^output: .*away/release is not allowed",
        output=str(home / "out" / "away" / "release"),
    )
    assert_refused(home, r"^output: .*away is not allowed", output=str(home / "out" / "away"))


def test_an_allowed_location_may_be_a_link_itself(home):
    (home / "mounted").symlink_to(home / "other")
    restrict(home, allowed_inputs="mounted")
    for place in ("mounted", "other"):
        publish.check_job(job(home, input=str(home / place / "rows.csv")))


@pytest.mark.parametrize("pattern", ["in", "in/*", "in/**/*.csv", "in/*/*.csv"])
@pytest.mark.parametrize("directory", [False, True])
def test_a_link_that_is_found_on_the_way_is_refused(home, pattern, directory):
    deep = home / "in" / "deep"
    deep.mkdir()
    (deep / "more.csv").write_text("age\n9\n9\n")
    place = deep / "planted" if pattern in ("in", "in/**/*.csv") else home / "in" / "planted"
    if directory:
        place.symlink_to(home / "other")
    else:
        (deep / "planted.csv").symlink_to(home / "other" / "rows.csv")
    planned = job(home, input=str(home / pattern))
    publish.check_job(planned)
    with pytest.raises(JobError, match=r"^input: .*planted.* outside the allowed locations"):
        tables.open_table(planned.input)  # before a line of it is read
    with pytest.raises(JobError, match=r"^input: .*planted.* outside the allowed locations"):
        pipeline.partition(planned, work=str(home / "out" / ".w"))
    assert list((home / "out").iterdir()) == []


def test_a_link_that_is_planted_after_the_files_were_listed_is_refused(home):
    source = tables.open_table(str(home / "in" / "rows.csv"))
    (home / "in" / "rows.csv").unlink()
    (home / "in" / "rows.csv").symlink_to(home / "other" / "rows.csv")
    with pytest.raises(JobError, match="outside the allowed locations"):
        list(tables.FileTable.from_json(source.to_json()).batches())


def test_an_output_that_becomes_a_link_is_not_published(home):
    planned = job(home)
    work = str(home / "out" / ".w")
    pipeline.partition(planned, work=work)
    (home / "out" / "release").symlink_to(home / "other")
    with pytest.raises(JobError, match=r"^output: .*other lies outside"):
        publish.publish(publish.WorkDir(work).staging, planned.output)
    assert [path.name for path in (home / "other").iterdir()] == ["rows.csv"]


def test_working_files_are_made_where_something_may_be_written_only(home):
    (home / "out" / ".w").symlink_to(home / "other")
    for work in ("other/.w", "in/.w", "out/.w", "out/.w/deeper", "out/../.w"):
        with pytest.raises(JobError, match=r"^output: "):
            publish.WorkDir(str(home / work))
        assert not stores.may_write(str(home / work))


def test_a_loop_of_links_leads_nowhere(home):
    (home / "in" / "loop").symlink_to(home / "in" / "loop")
    with pytest.raises(Exception, match=r"loop|no such file|Too many"):
        tables.open_table(str(home / "in" / "loop"))


# What else a job names


@pytest.mark.parametrize(
    ("folder", "name", "message"),
    [
        ("in/jobs", "ages.csv", None),
        ("out/jobs", "ages.csv", None),
        ("dags", "ages.csv", None),
        ("other", "ages.csv", r"^hierarchy: .* is not allowed here"),
        ("out", ".people.mondrian_ops-0123456789ab/ages.csv", r"^hierarchy: .* hidden, because"),
        ("out", ".mondrian_waiting/0123/ages.csv", r"^hierarchy: .* has rows that wait"),
    ],
)
def test_beside_a_job_a_hierarchy_is_read_where_jobs_are(home, folder, name, message):
    file = home / folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1;*\n")
    if message is None:
        assert stores.find_hierarchy(name, str(home / folder)) == str(file)
        return
    with pytest.raises(JobError, match=message):
        stores.find_hierarchy(name, str(home / folder))


def test_the_name_of_a_folder_with_a_hierarchy_is_no_pattern(home):
    odd = home / "odd[1]"
    odd.mkdir()
    (odd / "ages.csv").write_text("1;*\n")
    restrict(home, allowed_inputs=str(odd))
    assert stores.find_hierarchy("ages.csv", str(odd)) == str(odd / "ages.csv")


def test_a_hierarchy_is_found_in_its_places_only(home, monkeypatch):
    places = home / "hierarchies"
    places.mkdir()
    (places / "ages.csv").write_text("1;*\n")
    (home / "other" / "secret.csv").write_text("1;*\n")
    (places / "link.csv").symlink_to(home / "other" / "secret.csv")
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", str(places))
    assert stores.find_hierarchy("ages.csv", None) == str(places / "ages.csv")
    for name in ("link.csv", "../other/secret.csv", str(home / "other" / "secret.csv")):
        with pytest.raises(HierarchyError, match="is outside the folders where hierarchies may"):
            stores.find_hierarchy(name, None)


def test_a_job_file_lies_where_jobs_may_be_read(home):
    text = "k: 2\nquasi_identifiers: [age]\ninput: in/rows.csv\noutput: out/release\n"
    for place in ("in", "other"):
        (home / place / "job.yaml").write_text(text)
    (home / "in" / "link.yaml").symlink_to(home / "other" / "job.yaml")
    assert load_job(home / "in" / "job.yaml").k == 2
    for path in ("other/job.yaml", "in/link.yaml", "in/../other/job.yaml", "other/missing.yaml"):
        with pytest.raises(JobError, match=r"^job: .*(is not allowed here|without it)"):
            load_job(home / path)


def test_a_job_files_name_is_no_pattern(home):
    (home / "other" / "job.yaml").write_text("k: 2\nquasi_identifiers: [age]\n")
    (home / "in" / "x*.yaml").symlink_to(home / "other" / "job.yaml")
    with pytest.raises(JobError, match=r"^job: .* is not allowed here"):
        read_job(str(home / "in" / "x*.yaml"))
    odd = home / "odd[1]"
    odd.mkdir()
    (odd / "job.yaml").write_text("k: 2\nquasi_identifiers: [age]\n")
    restrict(home, allowed_inputs=str(odd))
    assert read_job(str(odd / "job.yaml"))["k"] == 2


def test_an_allowed_location_s_name_is_no_pattern_and_an_input_is_one(home):
    """The pattern would find what lies beside it."""
    odd, beside = home / "odd[1]", home / "odd1"
    for folder in (odd, beside):
        folder.mkdir()
        (folder / "rows.csv").write_text("age\n1\n2\n")
    restrict(home, allowed_inputs=f"{odd}, {home}/in", allowed_outputs=str(odd))
    assert_refused(
        home, r"^input: .* is not allowed", input=str(odd / "rows.csv"), output=f"{odd}/o"
    )
    publish.check_job(job(home, output=str(odd / "release")))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("/in/{{ ds }}.csv", r"^landing: .*\{\{"),
        ("/in/a\0.csv", r"^landing: "),
        ("s3://a_conn@bucket/raw\0", r"^landing: "),
    ],
)
def test_what_no_location_can_be_is_refused_with_and_without_limits(home, url, message):
    for policy in (AccessPolicy(inputs=("/in",)), None):
        stores.use_policy(policy)
        with pytest.raises(JobError, match=message):
            check_location("landing", url)
        check_location("landing", None)  # a job need not name one


def test_a_policy_in_use_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        AccessPolicy().inputs = ("/",)


def test_a_landing_folders_name_is_no_pattern(home):
    (home / "in" / "drops*").symlink_to(home / "other")
    with pytest.raises(JobError, match=r"^landing: .* is not allowed here"):
        read_landing(str(home / "in" / "drops*"))
    (home / "odd[1]").mkdir()
    restrict(home, allowed_inputs=str(home / "odd[1]"))
    assert read_landing(str(home / "odd[1]")).drops == {}


def test_a_landing_folder_lies_where_jobs_may_read(home):
    assert read_landing(str(home / "in")).drops == {}
    with pytest.raises(JobError, match=r"^landing: .* is not allowed here"):
        read_landing(str(home / "other"))


def test_connections_and_properties_of_spark_are_allowed_by_name(home):
    def on_spark(**spark):
        return job(home, engine="spark", spark={"connection": "a_spark", **spark})

    publish.check_job(on_spark(conf={"spark.dynamicAllocation.enabled": "true"}))
    with pytest.raises(JobError, match=r"^spark\.connection: .*'admins' is not .*_connections in"):
        publish.check_job(on_spark(connection="admins"))
    for name in ("spark.driver.extraJavaOptions", "spark.pyspark.driver.python", "spark.jars"):
        with pytest.raises(JobError, match=rf"^spark\.conf: .*'{name}' is not .*_spark_conf in"):
            publish.check_job(on_spark(conf={name: "x"}))


# Where limits come from


def test_nothing_is_allowed_where_nothing_is_named(home):
    stores.use_policy(AccessPolicy())
    with pytest.raises(JobError, match=r"^input: "):
        publish.check_job(job(home))
    with pytest.raises(JobError):
        check_reading(str(home / "in" / "rows.csv"))


def test_without_limits_a_job_may_name_anything(home):
    stores.use_policy(None)
    assert stores.current_policy() is None
    publish.check_job(job(home, input="/etc/passwd", output="s3://any@bucket/x"))
    check_reading("/etc/passwd")


def test_the_environment_can_limit_everybody(home, monkeypatch):
    stores.use_policy(None)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", "in")
    planned = job(home, input=str(home / "in" / "rows.csv"))
    with pytest.raises(JobError, match=r"^output: "):  # what is not named is not allowed
        pipeline.run(planned)
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", f"{home}/out\n/srv/releases")
    assert pipeline.run(planned)["rows"]["published"] == 4
    with pytest.raises(JobError, match=r"^input: "):
        pipeline.run(job(home, input=str(home / "other" / "rows.csv")))


def test_limits_travel_as_json(home):
    allowed = stores.current_policy()
    assert AccessPolicy.from_json(allowed.to_json()) == allowed
    assert AccessPolicy.from_json(None) is None


STEP = st.sampled_from(["in", "out", "other", "away", "..", ".", "", "a", "%2e%2e", "*", "in*"])


@given(st.lists(STEP, max_size=7), st.sampled_from(["", "file://"]))
def test_no_path_leads_out(tmp_path_factory, steps, scheme):
    """Whatever is accepted lies, for the operating system, in an allowed folder."""
    home = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "walk"
    if not home.exists():
        for name in ("in/in", "in/out", "out/a", "other/in"):
            (home / name).mkdir(parents=True)
        (home / "in" / "away").symlink_to(home / "other")
        (home / "out" / "other").symlink_to(home)
    allowed = AccessPolicy((str(home / "in"),), (str(home / "out"),))
    url = f"{scheme}{home}/{'/'.join(steps)}"
    real = Path(os.path.realpath(stores.local_path(url)))
    if allowed.may_read(url):
        assert real.is_relative_to(home / "in") or real.is_relative_to(home / "out")
    if allowed.may_write(url):
        assert real.is_relative_to(home / "out")
        assert real != home / "out"


@pytest.mark.parametrize(
    ("path", "place", "message"),
    [
        ("in/rows.csv", "in/rows.csv", None),
        ("in/link.csv", "out/rows.csv", None),
        ("in/rows.csv", "other/rows.csv", r"^input: .*in/rows.csv lies outside .*allowed_inputs"),
        ("in/rows.csv", "in/.w/rows.csv", r"^input: .*in/rows.csv is hidden, because"),
        # No job can name it: this package has opened its own.
        ("out/.w/rows.csv", "out/.w/rows.csv", None),
    ],
)
def test_an_opened_file_is_judged_by_where_it_lies(home, path, place, message):
    with nullcontext() if message is None else pytest.raises(JobError, match=message):
        check_opened(str(home / path), str(home / place))
    stores.use_policy(None)
    check_opened(str(home / path), str(home / place))
    check_source_file(str(home / place), str(home))


@pytest.mark.parametrize(
    ("place", "is_allowed"),
    [("out", True), ("out/deep", True), ("output", False), ("ou", False), ("", False)],
)
def test_an_opened_directory_is_judged_by_where_it_lies(home, place, is_allowed):
    stores.use_policy(AccessPolicy(outputs=(str(home / "out"),)))
    with nullcontext() if is_allowed else pytest.raises(JobError, match="outside the allowed"):
        check_place(str(home / place))
    for policy in (AccessPolicy(outputs=("s3://bucket/out", "/")), None):
        stores.use_policy(policy)
        check_place(str(home / place))
