"""The Dockerfiles and what they copy, and the scripts that run around and inside the images."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest
from dockerfile_parse import DockerfileParser

CHECKOUT = Path(__file__).resolve().parents[3]
DOCKERFILES = ("docker/Dockerfile", "docker/stand-ins/Dockerfile")
SCRIPTS = sorted(
    str(path.relative_to(CHECKOUT))
    for folder in ("docker", "scripts", ".ci")
    for path in (CHECKOUT / folder).rglob("*")
    if "__pycache__" not in path.parts  # where files come and go
    and path.is_file()
    and path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))
)


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    content = (CHECKOUT / dockerfile).read_bytes()
    parser = DockerfileParser(fileobj=None, path=str(CHECKOUT / dockerfile))
    assert parser.content.encode() == content
    return [(each["instruction"], each["value"]) for each in parser.structure]


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_hadolint_finds_nothing(dockerfile: str) -> None:
    checked("hadolint", "--config", ".hadolint.yaml", dockerfile)


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script: str) -> None:
    checked("shellcheck", "--external-sources", script)


def checked(linter: str, *words: str) -> None:
    program = Path(sys.executable).parent / linter  # it comes from requirements-dev.txt
    done = subprocess.run(
        [program, *words], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_can_be_run() -> None:
    assert len(SCRIPTS) >= 6
    assert [each for each in SCRIPTS if not (CHECKOUT / each).stat().st_mode & 0o100] == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_what_is_copied_is_there(dockerfile: str) -> None:
    context = CHECKOUT if dockerfile == "docker/Dockerfile" else CHECKOUT / "docker" / "stand-ins"
    copied = sources(dockerfile)
    assert copied
    assert [each for each in copied if not (context / each).exists()] == []


def test_what_is_copied_is_sent_to_docker() -> None:
    ignore = (CHECKOUT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    sent = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    for each in sources("docker/Dockerfile"):
        assert sent & {each, *map(str, Path(each).parents)}, each


def sources(dockerfile: str) -> list[str]:
    """What is copied from the build's context."""
    names = []
    for instruction, value in instructions(dockerfile):
        if instruction == "COPY" and "--from=" not in value:
            names += [word for word in value.split()[:-1] if not word.startswith("--")]
    return names


def test_nothing_runs_as_root() -> None:
    stages: dict[str, list[tuple[str, str]]] = {}
    for instruction, value in instructions("docker/Dockerfile"):
        if instruction == "FROM":
            stage = stages[value.split()[-1]] = []
        elif stages:
            stage.append((instruction, value))
    users = {
        name: [value for instruction, value in stage if instruction == "USER"]
        for name, stage in stages.items()
    }
    of_root = {"java": [], "hadoop-jars": [], "kernels": []}
    assert users == of_root | {"hdfs": ["hdfs"], "platform": ["airflow"]}


def test_dependencies_come_before_the_project() -> None:
    steps = [f"{name} {value}" for name, value in instructions("docker/Dockerfile")]

    def step(part: str) -> int:
        return next(number for number, text in enumerate(steps) if part in text)

    project = step("plugins plugins")
    assert step("requirements.txt requirements-hdfs.txt") < step("pip install") < project
    assert project < step("--from=kernels") < step("dags dags")


def test_java_and_hadoop_are_those_that_spark_wants() -> None:
    assert "openjdk-17-jre-headless" in (CHECKOUT / "docker" / "Dockerfile").read_text()
    version = xml("docker/hadoop/pom.xml").find("{*}properties/{*}hadoop.version")
    jars = Path(pyspark.__file__).parent / "jars"
    assert [jar.name for jar in jars.glob("hadoop-client-api-*.jar")] == [
        f"hadoop-client-api-{version.text}.jar"
    ]


@pytest.mark.parametrize("name", ["core-site.xml", "hdfs-site.xml"])
def test_hadoop_s_settings_are_well_formed(name: str) -> None:
    for setting in xml(f"docker/hadoop/conf/{name}"):
        assert [each.tag for each in setting] == ["name", "value"]
        assert re.fullmatch(r"(dfs|fs|hadoop)\.[a-zA-Z.-]+", setting[0].text)


def xml(file: str) -> ElementTree.Element:
    return ElementTree.parse(CHECKOUT / file).getroot()  # noqa: S314 - our own files
