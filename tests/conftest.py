"""Before any test imports Airflow: give it a home of its own, far from the user's.

Then what is run, in which order, and by which process. `calm_threads` is imported before numpy.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import calm_threads  # noqa: F401
from groups import imports_airflow, in_order, leaves_airflow_out, tier_of
from hypothesis_profiles import register_profiles
from mondrian_ops import catalogue
from mondrian_ops.datasets import blocks
from mondrian_ops.job import limits
from mondrian_ops.stores.locations import use_home
from servers.needs import NEEDS, needs

_HOME = tempfile.TemporaryDirectory(prefix="mondrian_ops-tests-")
_PLUGINS = Path(__file__).resolve().parents[1] / "plugins"

os.environ.update(
    AIRFLOW_HOME=_HOME.name,
    AIRFLOW_CONFIG=f"{_HOME.name}/airflow.cfg",
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    # Files that a test changes are parsed at once; the others need not be again.
    AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL="3600",
    AIRFLOW__USAGE_DATA_COLLECTION__ENABLED="False",
    # Subprocesses of the tests find the package too.
    PYTHONPATH=os.pathsep.join([str(_PLUGINS), *filter(None, [os.environ.get("PYTHONPATH")])]),
)

register_profiles()

# A few people are cut from a block of 131,072: tests ask for the same ones again and again.
blocks._whole = lru_cache(maxsize=8)(blocks._whole)

pytest_plugins = ["airflow_process", "golden.fixtures", "servers.fixtures"]


@pytest.fixture(autouse=True)
def settings_of_the_environment() -> Iterator[None]:
    """Whoever runs a task in this process changes its limits, and where its paths start."""
    yield
    limits.use(None)
    use_home(None)


@pytest.fixture(autouse=True)
def own_catalogue(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Each test has a catalogue of its own, unless a fixture of its module names one.

    Only the tests of the catalogue itself make its tables anew each time.
    """
    is_needed = "mondrian_ops.catalogue.database" in sys.modules
    if is_needed and not request.node.nodeid.startswith("tests/unit/catalogue/"):
        from kept_catalogue import keep_tables  # late: it imports the database

        keep_tables(monkeypatch)
    path = tmp_path_factory.getbasetemp() / "catalogues" / uuid.uuid4().hex / "catalogue.db"
    for name in ("MONDRIAN_OPS_CATALOGUE", "AIRFLOW__MONDRIAN_OPS__CATALOGUE"):
        if name not in os.environ:
            monkeypatch.setenv(name, str(path))
            monkeypatch.setenv(f"{name}_KEY", str(path.with_name("catalogue.key")))
    yield
    catalogue.use(None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where there are several processes, deal out the groups of :mod:`groups`."""
    from scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: the garbage collector need not look at it now, nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what imports Airflow to the process that does."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    named = f"{path}/" if collection_path.is_dir() else path
    return True if leaves_airflow_out(config) and imports_airflow(named) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that imports Airflow in a process that leaves it out."""
    has_airflow = "airflow" in sys.modules
    report = yield
    if leaves_airflow_out(collector.config) and not has_airflow and "airflow" in sys.modules:
        report.outcome = "failed"
        report.longrepr = "imports Airflow: name it in IMPORTING_AIRFLOW of tests/support/groups.py"
    return report


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its tier and put them in order.

    What takes long is left out unless -m or the name of a test asks for it.
    """
    items[:] = in_order(items)
    for item in items:
        if tier := tier_of(item):
            item.add_marker(tier)
    if "soak" in config.option.markexpr or any("::" in each for each in config.args):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in set(long)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests say by a marker what they need of the machine."""
    for name in NEEDS.keys() & {mark.name for mark in item.iter_markers()}:
        needs(name)
