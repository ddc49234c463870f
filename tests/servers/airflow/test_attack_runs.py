"""What somebody with the trigger form could try, in a real Airflow: none of it works."""

from __future__ import annotations

import pytest

from dag_runs import asked_for, form, published, states, tries

pytestmark = pytest.mark.airflow

ODD = "{{ 7 * 7 }} {{ var.value.get('secret') }}{% if 1 %}"
LITERAL = "{% if 1 %}49{% endif %}"
REFUSED = {
    "reads_elsewhere": ({"input": "/etc/passwd"}, "input: /etc/passwd is not allowed here"),
    "finds_a_link": ({"input": "{root}/data/*.csv"}, "lies outside the allowed locations"),
    "writes_elsewhere": (
        {"output": "{root}/include/hierarchies/x"},
        "is not allowed here; choose another, or have an administrator add it to allowed_outputs",
    ),
    "writes_by_a_link": ({"output": "{root}/out/away/release"}, "release is not allowed here"),
    "another_connection": ({"output": "s3://admins@airflow-bucket/x"}, "airflow-bucket/x is not"),
    "another_cluster": (
        {"engine": "spark", "spark_connection": "admins"},
        "spark.connection: the connection 'admins' is not allowed here",
    ),
    "another_program": (
        {"engine": "spark", "spark_conf": ["spark.pyspark.driver.python=/tmp/mine"]},
        "spark.conf: the property 'spark.pyspark.driver.python' is not allowed here",
    ),
    "a_hierarchy_elsewhere": (
        {"quasi_identifiers": ["age", "country=hierarchy:../../data/tree.csv"]},
        "is outside the folders where hierarchies may lie",
    ),
    "a_template_in_a_path": (
        {"output": "{root}/out/{{ 7 * 7 }}/release"},
        "output: holds the template '{{ 7 * 7 }}' as text",
    ),
    "a_template": ({"identifiers": [ODD]}, f"no column {ODD!r}"),
}
ALSO_IN_ONE_PROCESS = (
    "finds_a_link",
    "writes_elsewhere",
    "another_cluster",
    "a_hierarchy_elsewhere",
    "a_template_in_a_path",
)
"""Refused by the same functions as the others, which the tests of the access policy call."""


@pytest.fixture(scope="module")
def runs(request, project):
    """Start them all; run id by name."""
    (project.root / "data").mkdir(exist_ok=True)
    (project.root / "out").mkdir(exist_ok=True)
    outside = project.root.parent / f"{project.root.name}-outside"
    outside.mkdir()
    people = project.root / "include" / "examples" / "people.csv"
    (outside / "people.csv").write_bytes(people.read_bytes())
    (project.root / "data" / "people.csv").write_bytes(people.read_bytes())
    (project.root / "data" / "tree.csv").write_text("France;*\n")
    (project.root / "data" / "link.csv").symlink_to(outside / "people.csv")
    (project.root / "out" / "away").symlink_to(outside)

    def start(name, **changed):
        told = {
            key: value.replace("{root}", str(project.root)) if isinstance(value, str) else value
            for key, value in changed.items()
        }
        return project.airflow.trigger(
            "mondrian_anonymize", form(project.job(name, **told), fragments=1)
        )

    templated = str(project.root / "out" / LITERAL / "release")
    started = {name: start(name, **REFUSED[name][0]) for name in asked_for(request, "name")}
    return {**started, "literal": start("literal", output=templated)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.soak if name in ALSO_IN_ONE_PROCESS else ())
        for name in REFUSED
    ],
)
def test_what_is_not_allowed_fails_for_good(project, runs, name):
    run_id, told = runs[name], REFUSED[name][1]
    assert project.airflow.finish("mondrian_anonymize", run_id) == "failed"
    tasks = project.airflow.tasks("mondrian_anonymize", run_id)
    assert states(tasks) == {
        ("partition", "failed"): 1,
        ("anonymize_fragment", "upstream_failed"): 1,
        ("wrap_up", "upstream_failed"): 1,
        ("clean_up", "failed"): 1,
    }
    assert tries(tasks)["partition"] == 1
    (partition,) = [task for task in tasks if task["task_id"] == "partition"]
    log = project.airflow.log_of("mondrian_anonymize", run_id, partition)
    assert told in log
    assert "root:" not in log
    assert not project.output(name).exists()
    assert project.leftovers(name) == []
    outside = project.root.parent / f"{project.root.name}-outside"
    assert [path.name for path in outside.iterdir()] == ["people.csv"]


def test_what_a_form_says_is_never_a_template(project, runs):
    """Neither in the tasks that are mapped, nor in the others."""
    assert project.airflow.finish("mondrian_anonymize", runs["literal"]) == "success"
    assert published(project.root / "out" / LITERAL / "release") == 2000
    assert not (project.root / "out" / "49").exists()
