"""Which policies hold for a job, and the other names of an input that do not get around them."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mondrian_ops import pipeline, publish, stores
from mondrian_ops.errors import HierarchyError, JobError, StorageError
from mondrian_ops.inspection.inspector import inspect
from mondrian_ops.job.policy import Arrival, Policy, Required
from mondrian_ops.pipeline.checks import hierarchies_of
from mondrian_ops.stores import load_job
from mondrian_ops.stores.access_policy import AccessPolicy

PATIENTS = {"name": "patients", "min_k": 4}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Two landing folders, with a policy for the first."""
    monkeypatch.chdir(tmp_path)
    for name in ("patients", "visitors"):
        (tmp_path / "landing" / name).mkdir(parents=True)
        (tmp_path / "landing" / name / "day.csv").write_text("age\n1\n2\n3\n4\n")
    (tmp_path / "link").symlink_to(tmp_path / "landing" / "patients")
    (tmp_path / "landing" / "visitors" / "more").symlink_to(tmp_path / "landing" / "patients")
    decree(tmp_path, [{**PATIENTS, "inputs": [f"{tmp_path}/landing/patients"]}])
    yield tmp_path
    stores.use_policy(None)
    stores.use_policies(None)


def decree(home, policies, **more):
    file = home / "policies.yaml"
    file.write_text(yaml.safe_dump({"unmatched": "allow", "policies": policies, **more}))
    stores.use_policies(str(file))


def job(home, **changed):
    options = {
        "input": f"{home}/landing/patients",
        "output": f"{home}/out/release",
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    return load_job({**options, **changed})


def names(home, url):
    return publish.required(job(home, input=url.format(home=home))).policies


@pytest.mark.parametrize(
    "url",
    [
        "{home}/landing/patients",
        "{home}/landing/patients/",
        "{home}/landing/patients/day.csv",
        "{home}/landing/patients/*.csv",
        "{home}/landing",
        "{home}/landing/*/day.csv",
        "{home}/landing/p*/day.csv",
        "{home}/landing/*s",
        "{home}/landing/[p]atients/day.csv",
        "{home}/**/day.csv",
        "{home}/landing//patients/day.csv",
        "//{home}/landing/patients",
        "{home}/landing/./patients",
        "{home}/landing/visitors/../patients/day.csv",
        "{home}/landing/*/../patients/day.csv",
        "{home}/Landing/PATIENTS/day.csv",
        "file://{home}/landing/p%61tients/day.csv",
        "landing/patients",
        "{home}/link/day.csv",
        "{home}/link/*.csv",
        "{home}/landing/visitors/more/*.csv",
        "/",
    ],
)
def test_another_name_of_an_input_meets_the_same_policy(home, url):
    assert names(home, url) == ("patients",)


@pytest.mark.parametrize(
    "url",
    [
        "{home}/landing/visitors",
        "{home}/landing/visitors/*.csv",
        "{home}/landing/v*/day.csv",
        "{home}/landing/patients_of_old",
        "{home}/landing/patient*s_of_old/x.csv",
        "s3://landing/patients",
    ],
)
def test_another_input_does_not(home, url):
    assert names(home, url) == ()


@pytest.mark.parametrize(
    ("location", "url", "meets"),
    [
        ("s3://raw/patients-*", "s3://raw/patients-2025/x.parquet", True),
        ("s3://raw/patients-*", "s3://a_conn@raw/patients-2025", True),
        ("s3://raw/patients-*", "S3://raw//patients-1", True),
        ("s3://raw/patients-*", "s3://raw/p%61tients-1", True),
        ("s3://raw/patients-*", "s3://raw/x/../patients-1", True),
        ("s3://raw/patients-*", "s3://raw/*-2025/x", True),
        ("s3://raw/patients-*", "s3://raw", True),
        ("s3://raw/patients-*", "s3://other/patients-1", False),
        ("s3://raw/patients-*", "s3://raw/staff-*", False),
        ("s3://raw/patients-*", "s3://raw/patients/x", False),
        ("s3://raw/a*x*c", "s3://raw/ab*c", True),
        ("s3://raw/a*c", "s3://raw/a*d", False),
        ("s3://raw/patients", "/patients", False),
        ("/patients", "s3://raw/patients", False),
        ("hdfs://namenode/patients", "hdfs://namenode:8020/patients", True),
        ("hdfs://namenode/patients", "webhdfs://namenode:9870/patients/day.csv", True),
        ("hdfs://namenode/patients", "hdfs://a_conn@namenode/patients", True),
        ("hdfs://namenode/patients", "webhdfs://other:9870/patients", False),
    ],
)
def test_a_store_is_the_same_by_any_connection(home, location, url, meets):
    decree(home, [{**PATIENTS, "inputs": [location]}])
    assert bool(names(home, url)) is meets


def test_the_rules_about_an_output_are_those_of_its_location(home):
    assert stores.output_rules(f"{home}/out/a") == []
    (home / "linked").symlink_to(home / "out")
    rules = [{"location": f"{home}/out/{name}", "replace": "never"} for name in ("a", "b", "*")]
    decree(home, [], outputs=rules)
    for output in (f"{home}/out/a/2025-01-01", f"{home}/linked/a"):
        found = stores.output_rules(output)
        assert [rule.location for rule in found] == [f"{home}/out/a", f"{home}/out/*"]
    stores.use_policies(None)
    assert stores.output_rules(f"{home}/out/a") is None


def test_a_policy_holds_where_links_that_its_pattern_matches_lead(home):
    (home / "shares").mkdir()
    (home / "shares" / "patients").symlink_to(home / "landing" / "patients")
    decree(home, [{**PATIENTS, "inputs": [f"{home}/shares/*"]}])
    assert names(home, "{home}/landing/patients/day.csv") == ("patients",)
    assert names(home, "{home}/shares/patients/day.csv") == ("patients",)


def test_each_policy_that_an_input_may_meet_holds(home):
    decree(
        home,
        [
            {"name": "all", "inputs": [f"{home}/landing"], "unlisted": "drop"},
            {**PATIENTS, "inputs": [f"{home}/landing/patients"]},
            {"name": "visitors", "inputs": [f"{home}/landing/visitors"], "min_k": 3},
        ],
    )
    weak = job(home, input=f"{home}/landing/*/day.csv", unlisted="publish", k=3)
    with pytest.raises(JobError) as caught:
        publish.check_job(weak)
    first, second = str(caught.value).split(". ")
    assert first.startswith("unlisted: is publish, and the policy 'all' requires")
    assert second == "k: is 3, and the policy 'patients' requires min_k: 4; set 4 or more"
    assert publish.check_job(job(home, input=f"{home}/landing/visitors", k=3)).k == 3


def test_an_input_without_a_policy_may_be_refused(home):
    publish.check_job(job(home, input=f"{home}/landing/visitors"))
    decree(home, [{**PATIENTS, "inputs": [f"{home}/landing/patients"]}], unmatched="refuse")
    with pytest.raises(JobError, match=r"input: no policy matches .*/landing/visitors"):
        publish.check_job(job(home, input=f"{home}/landing/visitors"))


def test_figures_need_no_floor_but_a_policy(home):
    assert publish.check_job(job(home), publishes=False).k == 2
    decree(home, [], unmatched="refuse")
    with pytest.raises(JobError, match="no policy matches"):
        publish.check_job(job(home), publishes=False)


def test_who_only_looks_at_an_input_is_held_to_where_it_lies(home):
    visitors, patients = f"{home}/landing/visitors", f"{home}/landing/patients"
    with pytest.raises(JobError, match="leads to a location of a policy"):
        inspect(visitors)
    decree(home, [], unmatched="refuse")
    with pytest.raises(JobError, match="no policy matches"):
        inspect(patients)
    stores.use_policies(None)
    assert inspect(patients).rows == 4
    stores.use_policy(AccessPolicy(inputs=(visitors,)))
    with pytest.raises(JobError, match=r"/landing/patients is not allowed here"):
        inspect(patients)


def test_a_policy_s_approval_is_the_job_s(home):
    location = {"inputs": [f"{home}/landing/patients"], "approval": {"required": True}}
    decree(home, [{"name": "patients", **location}])
    assert publish.check_job(job(home)).require_approval
    assert not publish.check_job(job(home, input=f"{home}/landing/visitors")).require_approval


def test_a_policy_refuses_columns_that_undo_the_work(home):
    location = {"inputs": [f"{home}/landing/patients"], "dependencies": "refuse"}
    decree(home, [{"name": "patients", **location}])
    assert publish.check_job(job(home)).dependencies == "refuse"
    assert publish.check_job(job(home, input=f"{home}/landing/visitors")).dependencies == "warn"


def test_the_output_is_one_of_the_policy(home):
    decree(
        home,
        [
            {
                "name": "patients",
                "inputs": [f"{home}/landing/patients"],
                "outputs": [f"{home}/out/patients"],
            }
        ],
    )
    good = {"output": f"{home}/out/patients/day"}
    publish.check_job(job(home, **good))
    for changed, message in (
        ({"output": f"{home}/out/day"}, "output: is .*/out/day, and the policy 'patients'"),
        ({"output": f"{home}/out/patients"}, "output: is .*/out/patients, and"),
        ({"output": f"{home}/out/patients/../day"}, "output: is"),
    ):
        with pytest.raises(JobError, match=message):
            publish.check_job(job(home, **{**good, **changed}))


@pytest.mark.parametrize("url", ["{home}/landing/visitors", "{home}/landing/visitors/*/*.csv"])
def test_a_link_inside_an_input_does_not_lead_around_a_policy(home, url):
    linked = publish.check_job(job(home, input=url.format(home=home)))
    with pytest.raises(JobError, match="leads to a location of a policy"):
        pipeline.plan(linked)


def test_each_file_needs_a_policy_where_others_are_refused(home):
    (home / "landing" / "visitors" / "more").unlink()
    decree(home, [{"name": "patients", "inputs": [f"{home}/landing/patients"]}], unmatched="refuse")
    both = publish.check_job(job(home, input=f"{home}/landing"))
    with pytest.raises(JobError, match=r"no policy matches .*/landing/visitors/day.csv"):
        pipeline.plan(both)


@pytest.mark.parametrize("column", ["SSN", "person"])
def test_a_column_that_only_the_data_names_has_its_role(home, column):
    values = [{"ssn": "1"}] * 4 if column == "person" else list("1234")
    landing = home / "landing" / "patients"
    (landing / "day.csv").unlink()
    pq.write_table(pa.table({"age": [1, 2, 3, 4], column: values}), landing / "day.parquet")
    decree(home, [{"name": "p", "inputs": [str(landing)], "roles": {"ssn": "identifier"}}])
    pipeline.plan(publish.check_job(job(home)))
    publishing = publish.check_job(job(home, unlisted="publish"))
    with pytest.raises(JobError, match="unlisted: publishes a column as it is, and the policy"):
        pipeline.plan(publishing)


# Rows that wait


def with_arrivals(home, *arrivals, **changed):
    """A job of a series with these rows that wait, as a run that has begun; where its files are."""
    of_series = job(home, series={"hold_nights": 3}, output=f"{home}/out/2025-01-02", **changed)
    work = publish.WorkDir(f"{home}/out/.work")
    work.create()
    publish.note_arrivals(work.root, arrivals)
    return of_series, work.root


def arrived(home, *policies, since="2025-01-01", place="{home}/landing/visitors"):
    inputs = {"inputs": [f"{home}/landing/visitors"]}
    kept = tuple(Policy.read({"name": "kept", **inputs, **policy}) for policy in policies)
    return Arrival(since, place.format(home=home), kept)


WITH_L = {"sensitive": ["ill"], "l": 2}


@pytest.mark.parametrize(
    ("said", "more", "less"),
    [
        ({"min_k": 5}, {"k": 5}, {}),
        ({"min_l": 2}, WITH_L, {}),
        ({"min_l": 2, "diversity": "entropy"}, {**WITH_L, "diversity": "entropy"}, WITH_L),
        ({"max_t": 0.2}, {"sensitive": ["ill"], "t": 0.2}, {"sensitive": ["ill"], "t": 0.3}),
        ({"max_gcp": 0.5}, {"max_gcp": 0.5}, {}),
        ({"max_risk": 0.5}, {"max_risk": 0.5}, {"max_risk": 0.5, "on_exceeded": "ask"}),
        ({"max_suppressed": 3}, {"max_suppressed": 3}, {"max_suppressed": 4}),
        ({"roles": {"ill": "identifier"}}, {"identifiers": ["ill"]}, {"sensitive": ["ill"]}),
        ({"roles": {"age": "any"}, "others": "drop"}, {}, {"sensitive": ["ill"]}),
        ({"entity_id": "id"}, {"entity_id": "id"}, {}),
        ({"unlisted": "drop"}, {}, {"unlisted": "publish"}),
        ({"engines": ["spark"]}, {"engine": "spark"}, {}),
        ({"outputs": ["/out", "{home}/out"]}, {}, None),
        ({"outputs": ["/out"]}, None, {}),
    ],
    ids=str,
)
def test_each_thing_that_a_policy_says_holds_for_rows_that_wait(home, said, more, less):
    if "outputs" in said:
        said = {"outputs": [each.format(home=home) for each in said["outputs"]]}
    rows = arrived(home, said)
    if more is not None:
        asking, work = with_arrivals(home, rows, **{"k": 4, **more})
        publish.check_job(asking, work=work)
    if less is not None:
        asking, work = with_arrivals(home, rows, **{"k": 4, **less})
        stores.use_policies(None)  # tonight there are none
        publish.check_job(asking)
        with pytest.raises(JobError, match=r"since 2025-01-01 came under this policy$"):
            publish.check_job(asking, work=work)


def test_what_follows_the_check_of_a_job_is_required_by_all_policies_together(home):
    location = {"inputs": [f"{home}/landing/patients"]}
    decree(home, [{"name": "patients", **location, "approval": {"approvers": ["ada", "bob"]}}])
    approval = {"required": True, "approvers": ["bob", "eve"], "four_eyes": True}
    kept = {"approval": approval, "dependencies": "refuse"}
    asking, work = with_arrivals(home, arrived(home, kept), arrived(home, kept))
    held = publish.check_job(asking, work=work)
    assert (held.require_approval, held.dependencies) == (True, "refuse")
    assert publish.required(asking, work) == Required(
        policies=("patients", "kept"),
        approval=True,
        approvers={"bob": "bob"},
        four_eyes=True,
        dependencies="refuse",
    )
    assert publish.required(asking).policies == ("patients",)


def test_a_policy_is_held_to_once_and_of_two_of_one_name_both_are(home):
    rows = [arrived(home, {"min_k": 7}, {"min_k": 9}), arrived(home, {"min_k": 7})]
    asking, work = with_arrivals(home, *rows, k=8)
    with pytest.raises(
        JobError, match=r"^k: is 8, and the policy 'kept' requires min_k: 9; [^.]*$"
    ):
        publish.check_job(asking, work=work)
    assert publish.required(asking, work).policies == ("patients", "kept")


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://raw/patients-*", "s3://a_conn@raw/patients-2025/x.parquet"),
        ("hdfs://namenode/patients", "webhdfs://namenode:9870/patients/day.csv"),
        ("/mnt/Patients", "/mnt/patients/day.csv"),
    ],
)
def test_the_policies_that_match_their_input_today_hold_on_every_store(home, location, place):
    decree(home, [{"name": "today", "min_k": 5, "inputs": [location]}])
    asking, work = with_arrivals(home, Arrival("2025-01-01", place, ()))
    with pytest.raises(JobError, match="the policy 'today' requires min_k: 5"):
        publish.check_job(asking, work=work)


@pytest.mark.parametrize(
    ("kept", "unmatched", "is_refused"),
    [
        ((), "allow", False),
        ((), "refuse", True),
        ((Policy("kept", ("/in",)),), "refuse", False),
        ((), None, False),
    ],
)
def test_rows_whose_input_no_policy_matches_any_more(home, kept, unmatched, is_refused):
    """``unmatched`` is None where there are no policies at all."""
    stores.use_policies(None)
    if unmatched is not None:
        own = {"name": "own", "inputs": [f"{home}/landing/patients"]}
        decree(home, [own], unmatched=unmatched)
    place = f"{home}/landing/visitors"
    asking, work = with_arrivals(home, Arrival("2025-01-01", place, kept))
    if not is_refused:
        publish.check_job(asking, work=work)
        return
    with pytest.raises(JobError) as caught:
        publish.check_job(asking, work=work)
    assert str(caught.value) == (
        f"series: no policy matches {place}, from where rows came that wait since 2025-01-01, and "
        "such rows are refused here; have an administrator add a policy for this input"
    )


def test_a_table_that_is_no_series_has_no_rows_that_wait(home):
    work = publish.WorkDir(f"{home}/out/.work")
    work.create()
    assert publish.required(job(home, k=4), work.root).policies == ("patients",)


def test_columns_of_all_rows_keep_to_the_policies_of_each(home):
    schema = pa.schema([("age", pa.int64()), ("ssn", pa.string())])
    asking, work = with_arrivals(
        home, arrived(home, {"roles": {"ssn": "identifier"}}), k=4, unlisted="publish"
    )
    publish.check_columns(asking, schema)
    with pytest.raises(JobError, match=r"unlisted: .*since 2025-01-01 came under this policy"):
        publish.check_columns(asking, schema, work)


def test_a_run_that_lost_what_it_noted_about_rows_that_wait_does_not_go_on(home):
    asking, work = with_arrivals(home, k=4)
    publish.check_job(asking, work=work)
    os.remove(f"{work}/policies.json")
    with pytest.raises(StorageError, match="run again from the partition task"):
        publish.check_job(asking, work=work)


# Hierarchies


def test_a_hierarchy_is_no_input_of_a_policy(home):
    """Else its values would be published as labels, held to nothing."""
    (home / "landing" / "patients" / "job.yaml").write_text(
        yaml.safe_dump({**job(home).to_dict(), "quasi_identifiers": ["age=hierarchy:day.csv"]})
    )
    (home / "landing" / "patients" / "day.csv").write_text("1;*\n2;*\n")
    named = load_job(home / "landing" / "patients" / "job.yaml")
    stores.use_policies(None)
    assert set(hierarchies_of(named)) == {"age"}
    decree(home, [{"name": "patients", "inputs": [f"{home}/Landing/p*"]}])
    with pytest.raises(
        HierarchyError, match=r"^day.csv: lies in an input of the policy 'patients', whose rows"
    ):
        hierarchies_of(named)
    (home / "landing" / "jobs").mkdir()
    for name in ("job.yaml", "day.csv"):
        (home / "landing" / "patients" / name).rename(home / "landing" / "jobs" / name)
    assert set(hierarchies_of(load_job(home / "landing" / "jobs" / "job.yaml"))) == {"age"}


@pytest.mark.parametrize("name", ["day.csv", "patients/day.csv", "../landing/patients/day.csv"])
def test_nor_is_one_of_the_folders_that_all_jobs_have(home, monkeypatch, name):
    folders = [f"{home}/landing", f"{home}/link"]
    monkeypatch.setenv("MONDRIAN_OPS_HIERARCHIES", os.pathsep.join(folders))
    with pytest.raises(HierarchyError, match=r"of the policy 'patients'|outside the folders"):
        stores.find_hierarchy(name, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        ("policies: [", "not valid YAML"),
        ("- patients", "must be a mapping of unmatched, policies and outputs"),
        ("unmatched: maybe", "unmatched: 'maybe' is not one of refuse, allow"),
        ("policies: [{name: a, inputs: [landing]}]", r"policies\[0\].inputs: landing is relative"),
        ("policies: [{name: a, inputs: [gopher://a/b]}]", "the scheme 'gopher' is not available"),
        ("policies: [{name: a, inputs: [/in], outputs: [o]}]", r"policies\[0\].outputs: o is rel"),
        ("outputs: [{location: out}]", r"outputs\[0\].location: out is relative"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_without_readable_policies_no_job_runs(home, content, message):
    file = home / "policies.yaml"
    file.unlink()
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(JobError, match=message) as caught:
        publish.check_job(job(home, input=f"{home}/landing/visitors"))
    assert str(file) in str(caught.value)
    assert "no job runs until an administrator" in str(caught.value)


def test_policies_that_change_hold_at_once(home):
    publish.check_job(job(home, k=4))
    decree(home, [{**PATIENTS, "min_k": 9, "inputs": [f"{home}/landing/patients"]}])
    with pytest.raises(JobError, match="min_k: 9"):
        publish.check_job(job(home, k=4))


def test_a_command_line_takes_the_policies_of_its_environment(home, monkeypatch):
    stores.use_policies(None)
    assert publish.required(job(home)) == Required()
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__POLICIES", os.fspath(home / "policies.yaml"))
    assert publish.required(job(home)).policies == ("patients",)


def test_a_table_in_memory_has_no_input_that_matches(home):
    table = pa.table({"age": [1, 2, 3, 4]})
    _released, report = pipeline.anonymize(table, {"k": 2, "quasi_identifiers": ["age"]})
    assert report["achieved"]["k"] >= 2
