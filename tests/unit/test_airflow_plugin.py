"""What Airflow's plugin loader makes of the plugins folder."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from functools import cache
from pathlib import Path

import pytest

from mondrian_ops import airflow_plugin

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"

# In a process for each syntax, forked from one that has imported the loader.
LOAD = """
import json, os, sys
import airflow.plugins_manager
from airflow._shared.plugins_manager import plugins_manager
before = set(sys.modules)
for syntax in sys.argv[2:]:
    if os.fork():
        if os.wait()[1]:
            sys.exit(f"{syntax} failed")
        continue
    plugins, errors = plugins_manager._load_plugins_from_plugin_directory(
        sys.argv[1], ignore_file_syntax=syntax
    )
    print(json.dumps({
        "syntax": syntax,
        "plugins": [plugin.name for plugin in plugins],
        "errors": errors,
        "modules": sorted(set(sys.modules) - before),
    }), flush=True)
    sys.exit()
"""


@pytest.fixture(scope="module")
def load(airflow_process):
    """What was loaded, by the syntax of ignored files."""
    printed = airflow_process.run(LOAD, str(PLUGINS), "glob", "regexp")
    told = [json.loads(line) for line in printed if line.startswith("{")]
    return {each["syntax"]: each for each in told}.__getitem__


def executed(loaded):
    """The modules that the loader made of files, under bare names."""
    return {name for name in loaded["modules"] if not name.startswith("mondrian_ops")}


def test_only_the_plugin_file_is_executed(load):
    loaded = load("glob")
    assert loaded["plugins"] == ["mondrian_ops"]
    assert loaded["errors"] == {}
    assert executed(loaded) == {"airflow_plugin"}


def test_nothing_heavy_is_loaded_before_the_pages_are_asked_for(load):
    loaded = load("glob")
    own = {name for name in loaded["modules"] if name.startswith("mondrian_ops")}
    assert own == {
        "mondrian_ops",
        "mondrian_ops.links",
        "mondrian_ops.version",
    }
    assert not {"fastapi", "jinja2", "numpy", "pyarrow"} & set(loaded["modules"])


@pytest.mark.parametrize("syntax", ["glob", "regexp"])
def test_no_module_of_the_standard_library_is_replaced(load, syntax):
    loaded = load(syntax)
    assert not loaded["errors"]
    assert executed(loaded) <= {"airflow_plugin"}


def test_the_pages_are_made_once_and_not_where_other_requests_wait(monkeypatch):
    makers = []

    def make():
        makers.append(threading.current_thread())
        time.sleep(0.05)  # long enough for the others to come
        return app

    async def app(scope, _receive, _send):
        answered.append(scope)

    async def first_requests():
        await asyncio.gather(*(airflow_plugin.pages(each, None, None) for each in range(3)))

    answered = []
    monkeypatch.setattr(airflow_plugin, "_pages", cache(make))
    asyncio.run(first_requests())
    assert sorted(answered) == [0, 1, 2]
    (maker,) = makers
    assert maker is not threading.current_thread()
