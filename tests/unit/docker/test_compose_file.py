"""docker-compose.yaml, as far as no Docker is needed for it; `make compose-test` starts it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pyspark
import pytest
import yaml
from airflow.cli.cli_parser import get_parser
from airflow.configuration import retrieve_configuration_description
from airflow.sdk import Connection

from mondrian_ops.hooks.settings import CONFIG
from mondrian_ops.job.sections import Partitioning

CHECKOUT = Path(__file__).resolve().parents[3]
TEXT = (CHECKOUT / "docker-compose.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
DOCKERFILE = (CHECKOUT / "docker" / "Dockerfile").read_text()

ONCE = {"secrets", "airflow-init", "hdfs-init", "demo"}
AIRFLOW = {name for name, service in SERVICES.items() if "AIRFLOW__CORE__EXECUTOR" in str(service)}
SPARK = {name for name in SERVICES if name.startswith("spark-")}
HDFS = {"namenode", "datanode", "hdfs-init"}
SCALABLE = {"airflow-worker", "spark-worker", "datanode"}
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:-([^}]*))?\}")


def defaults(value: Any) -> str:
    """A text as Compose gives it where no variable is set."""
    return VARIABLE.sub(lambda match: match[3] or "", str(value))


def command(service: str) -> list[str]:
    return [word.replace("$$", "$") for word in SERVICES[service]["command"]]


def test_it_follows_the_compose_specification() -> None:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text())
    jsonschema.validate(COMPOSE, schema)


def test_it_has_what_a_small_platform_has() -> None:
    assert SERVICES.keys() - ONCE == {
        *("postgres", "redis"),
        *("airflow-api-server", "airflow-scheduler", "airflow-dag-processor"),
        *("airflow-triggerer", "airflow-worker", "laptop"),
        *("spark-master", "spark-worker", "spark-connect", "spark-history"),
        *("namenode", "datanode"),
    }


def test_up_starts_all_but_what_has_a_profile() -> None:
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert {name: profile for name, profile in profiles.items() if profile} == {
        "laptop": ["laptop"],
        "demo": ["demo"],
    }


def test_a_laptop_needs_airflow_and_its_database_only() -> None:
    assert needed_by("laptop") == {"laptop", "airflow-init", "postgres", "secrets"}
    assert SERVICES["laptop"]["environment"]["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"


def needed_by(name: str) -> set[str]:
    services = {name}
    for other in SERVICES[name].get("depends_on", {}):
        services |= needed_by(other)
    return services


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_are_there_and_wait_for_what_can_be_waited_for(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        condition = how["condition"]
        assert other in SERVICES
        assert (condition == "service_completed_successfully") == (other in ONCE)


@pytest.mark.parametrize("name", SERVICES)
def test_every_server_is_asked_how_it_is(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    if name in ONCE:
        assert check == {"disable": True}
        return
    kind, *words = check["test"]
    asker = shlex.split(words[0].replace("$$", "$")) if kind == "CMD-SHELL" else words
    assert kind in ("CMD", "CMD-SHELL")
    assert set(asker) & {"healthcheck", "connect-answers", "celery", "pg_isready", "redis-cli"}
    assert {"interval", "timeout", "retries", "start_period"} <= check.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_limits_and_a_restart_policy(name: str) -> None:
    service = SERVICES[name]
    limits = service["deploy"]["resources"]["limits"]
    assert limits.keys() == {"cpus", "memory"}
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")
    if name == "spark-worker":
        assert limits == {"cpus": "1", "memory": "2G"}


@pytest.mark.parametrize(
    ("name", "tasks", "without_tasks"),
    [("airflow-worker", "AIRFLOW_WORKER_TASKS", 1), ("laptop", "LAPTOP_TASKS", 2)],
)
def test_as_many_fragments_as_a_worker_has_slots_fit_into_its_memory(
    name: str, tasks: str, without_tasks: int
) -> None:
    """By docs/deploy.md: 0.15 GB and 125 bytes a row, of which a fragment has max_rows."""
    settings = {match[1]: match[3] for match in VARIABLE.finditer(TEXT)}
    memory = defaults(SERVICES[name]["deploy"]["resources"]["limits"]["memory"])
    fragment = 0.15e9 + 125 * Partitioning().max_rows
    assert (
        int(memory.removesuffix("G")) * 2**30
        >= without_tasks * 1e9 + int(settings[tasks]) * fragment
    )


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_has_or_gets_a_capability(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"cap_add", "privileged"}


def test_workers_and_data_nodes_can_be_scaled() -> None:
    scaled = {name for name, service in SERVICES.items() if "replicas" in service["deploy"]}
    assert scaled == SCALABLE
    for name in SCALABLE:  # neither a name nor a port of the machine would be there twice
        assert not SERVICES[name].keys() & {"container_name", "hostname", "ports"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ours_are_built_not_pulled(name: str) -> None:
    image = SERVICES[name]["image"]
    if image.startswith("mondrian-ops/"):
        builders = [each for each in SERVICES.values() if "build" in each]
        assert [each["image"] for each in builders].count(image) == 1
        assert SERVICES[name]["pull_policy"] == "never"
        return
    assert re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?-bookworm", image)


@pytest.mark.parametrize("name", SERVICES)
def test_a_build_names_a_stage_and_arguments_of_the_dockerfile(name: str) -> None:
    build = SERVICES[name].get("build")
    if build is None:
        return
    assert (CHECKOUT / build["context"] / build["dockerfile"]).is_file()
    assert re.search(rf"^FROM \S+ AS {build['target']}$", DOCKERFILE, re.MULTILINE)
    for argument, value in build["args"].items():
        assert f"ARG {argument}={defaults(value)}\n" in DOCKERFILE
    assert SERVICES[name]["image"] == f"mondrian-ops/{build['target']}:local"


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_named_and_declared(name: str) -> None:
    for source, target, _ in mounts(name):
        assert source in COMPOSE["volumes"] or source == "./dags"
        assert target.startswith("/")


def mounts(name: str) -> list[tuple[str, str, str]]:
    """Source, target and mode of each mount of a service."""
    volumes = [f"{defaults(each)}:rw" for each in SERVICES[name].get("volumes", [])]
    return [tuple(each.split(":")[:3]) for each in volumes]


def test_no_volume_is_declared_in_vain() -> None:
    used = {source for name in SERVICES for source, _, _ in mounts(name)}
    assert used == COMPOSE["volumes"].keys() | {"./dags"}


def test_dags_are_a_folder_that_airflow_only_reads() -> None:
    (mode,) = {mode for name in SERVICES for source, _, mode in mounts(name) if source == "./dags"}
    assert mode == "ro"
    reading = {name for name in SERVICES if "./dags" in str(mounts(name))}
    assert reading >= {"airflow-dag-processor", "airflow-worker", "laptop"}


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    for port in ports:
        assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+", port)


def test_no_secret_is_in_the_file() -> None:
    for match in re.finditer(r"^ *(\S*(?:PASS|SECRET|KEY)\S*): *(.*)$", TEXT, re.MULTILINE):
        name, value = match.groups()
        given_or_made = value == f"${{{name}:-}}"
        read_from_the_volume = value.startswith(("cat /opt/secrets/", "/"))
        assert given_or_made or read_from_the_volume or name.endswith("_CONN_ID"), name
    assert not re.search(r"://[^/\s]*:[^/\s]*@", TEXT)


READERS = {
    "postgres-secrets": {"postgres"},
    "redis-secrets": {"redis"},
    "server-secrets": AIRFLOW - {"airflow-worker", "demo"},
    "worker-secrets": {"airflow-worker"},
    "login": {"airflow-api-server", "laptop", "demo"},
}


@pytest.mark.parametrize("volume", READERS)
def test_secrets_are_mounted_where_they_are_needed_and_read_only(volume: str) -> None:
    modes = {
        name: mode for name in SERVICES for source, _, mode in mounts(name) if source == volume
    }
    assert modes.keys() == READERS[volume] | {"secrets"}
    # SimpleAuthManager opens the file of its passwords to write, whether it does or not.
    signs_in = {"airflow-api-server", "laptop"} if volume == "login" else set()
    assert {name for name, mode in modes.items() if mode != "ro"} == {"secrets"} | signs_in


@pytest.mark.parametrize("name", ["airflow-worker", "demo"])
def test_who_runs_tasks_knows_no_key_and_no_database(name: str) -> None:
    known = {variable for variable in SERVICES[name]["environment"] if variable.endswith("_CMD")}
    broker = {"AIRFLOW__CELERY__BROKER_URL_CMD", "AIRFLOW__CELERY__RESULT_BACKEND_CMD"}
    assert known == (broker if name == "airflow-worker" else set())


def test_secrets_that_are_read_are_written(tmp_path: Path) -> None:
    program = CHECKOUT / "docker" / "airflow" / "make_secrets.py"
    subprocess.run([sys.executable, program, tmp_path], check=True)
    for name in SERVICES:
        seen = {target for _, target, _ in mounts(name)}
        for file in re.findall(r"/opt/secrets/\w+/\w+", str(SERVICES[name])):
            assert (tmp_path / Path(file).relative_to("/opt/secrets")).is_file()
            assert str(Path(file).parent) in seen
    environment = SERVICES["airflow-worker"]["environment"]
    named = {value for name, value in environment.items() if name.endswith("_CONN_ID")}
    assert json.loads((tmp_path / "server" / "connections.json").read_text()).keys() == named
    assert {path.name for path in (tmp_path / "worker").iterdir()} == {
        "broker_url",
        "result_backend",
    }


def test_the_example_of_env_lists_every_variable_and_its_default() -> None:
    example = (CHECKOUT / ".env.example").read_text()
    listed = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.MULTILINE))
    assert listed == {match[1]: match[3] or "" for match in VARIABLE.finditer(TEXT)}


@pytest.mark.parametrize("name", sorted(AIRFLOW))
def test_airflow_knows_its_settings(name: str) -> None:
    known = {**retrieve_configuration_description(include_providers=True), **CONFIG}
    for variable in SERVICES[name]["environment"]:
        if not (match := re.fullmatch(r"AIRFLOW__([A-Z_]+?)__([A-Z_]+?)(_CMD)?", variable)):
            continue
        option = known[match[1].lower()]["options"][match[2].lower()]
        assert not match[3] or option["sensitive"], f"{variable}: only secrets are read by _CMD"


@pytest.mark.parametrize("name", sorted(AIRFLOW - {"demo", "airflow-init"}))
def test_airflow_knows_its_commands(name: str) -> None:
    program, *arguments = command(name)
    assert program == "airflow"
    get_parser().parse_args(arguments)


def test_the_connections_lead_to_services() -> None:
    environment = SERVICES["airflow-worker"]["environment"]
    connections = {
        name.removeprefix("AIRFLOW_CONN_").lower(): Connection.from_json(value)
        for name, value in environment.items()
        if name.startswith("AIRFLOW_CONN_")
    }
    settings = {
        name: (each.conn_type, each.host, each.port, each.login)
        for name, each in connections.items()
    }
    assert settings == {
        "spark_connect_default": ("spark_connect", "spark-connect", 15002, None),
        "spark_default": ("spark", "spark://spark-master", 7077, None),
        "webhdfs_default": ("webhdfs", "namenode", 9870, "airflow"),
    }


@pytest.mark.parametrize("name", sorted(SPARK))
def test_spark_has_the_programs_and_classes_that_are_started(name: str) -> None:
    home = Path(pyspark.__file__).parent
    program, *arguments = command(name)
    assert (home / program.removeprefix("/opt/spark/")).is_file()
    (started,) = re.findall(r"org\.apache\.spark[.\w]+", " ".join(arguments))
    entry = f"{started.replace('.', '/')}.class"
    assert any(entry in zipfile.ZipFile(jar).namelist() for jar in home.glob("jars/spark-*.jar"))


def test_spark_knows_its_settings() -> None:
    core = next(Path(pyspark.__file__).parent.glob("jars/spark-core_*.jar"))
    with zipfile.ZipFile(core) as jar:
        config = [name for name in jar.namelist() if "/internal/config/" in name]
        known = b"".join(jar.read(name) for name in config)
    conf = (CHECKOUT / "docker" / "spark" / "spark-defaults.conf").read_text()
    names = re.findall(r"^(spark\.\S+) ", conf, re.MULTILINE)
    assert len(names) > 5
    assert [name for name in names if name.encode() not in known] == []


@pytest.mark.parametrize("name", sorted(HDFS))
def test_hdfs_has_the_commands_that_are_started(name: str) -> None:
    script = (CHECKOUT / "docker" / "hadoop" / "hdfs").read_text()
    used = set(re.findall(r"\bhdfs (\w+)", " ".join(command(name))))
    assert used
    assert used <= set(re.findall(r"^(\w+)\)", script, re.MULTILINE))


@pytest.mark.parametrize("program", ["healthcheck", "connect-answers"])
def test_health_checks_of_this_project_are_in_the_image(program: str) -> None:
    (source,) = set(
        re.findall(rf"COPY --chmod=755 (\S+) /usr/local/bin/{program}$", DOCKERFILE, re.M)
    )
    assert (CHECKOUT / source).is_file()


@pytest.mark.parametrize("name", ["secrets", "airflow-init", "demo"])
def test_programs_of_this_project_are_in_the_image(name: str) -> None:
    interpreter, program, *_arguments = command(name)
    assert interpreter == "python"
    source = "docker/airflow/" if program.startswith("/opt/airflow/") else "scripts/"
    assert (CHECKOUT / source / Path(program).name).is_file()
    assert f"{source}{Path(program).name}" in DOCKERFILE
