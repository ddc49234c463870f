"""What this package tells Airflow as a provider: complete, valid, and all of it is there."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from airflow.sdk import BaseOperatorLink
from airflow.sdk._shared.module_loading import import_string

from mondrian_ops import hooks
from mondrian_ops.hooks.provider_info import get_provider_info
from mondrian_ops.operators import WrapUpOperator

INFO = get_provider_info()
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def modules(kind):
    return {name for each in INFO[kind] for name in each["python-modules"]}


def test_it_is_valid():
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())
    jsonschema.validate(INFO, schema)


@pytest.mark.parametrize("kind", ["operators", "hooks"])
def test_its_modules_are_there(kind):
    assert all(map(import_module, modules(kind)))


def test_it_names_every_hook_and_link():
    ours = {path.stem for path in Path(hooks.__file__).parent.glob("*.py")}
    named = {name.rpartition(".")[2] for name in modules("hooks")}
    assert ours - named == {"__init__", "provider_info", "settings"}
    links = {type(link) for link in WrapUpOperator.operator_extra_links}
    assert {*map(import_string, INFO["extra-links"])} == links
    assert all(issubclass(link, BaseOperatorLink) for link in links)


def test_its_plugin_is_the_one_of_the_plugins_folder():
    from mondrian_ops.airflow_plugin import MondrianOpsPlugin

    (plugin,) = INFO["plugins"]
    assert import_string(plugin["plugin-class"]) is MondrianOpsPlugin
    assert plugin["name"] == MondrianOpsPlugin.name


def test_the_wheel_leads_airflow_to_it():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    named = project["entry-points"]["apache_airflow_provider"]["provider_info"]
    assert import_string(named.replace(":", ".")) is get_provider_info
    plugin = project["entry-points"]["airflow.plugins"]["mondrian_ops"]
    assert plugin.replace(":", ".") == INFO["plugins"][0]["plugin-class"]
