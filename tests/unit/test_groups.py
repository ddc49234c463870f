"""Which tests share a process."""

from pathlib import Path

import pytest

from groups import GROUPS, IMPORTING_AIRFLOW, group_of, imports_airflow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", [*GROUPS, *IMPORTING_AIRFLOW])
def test_a_group_names_tests_that_are_there(path: str) -> None:
    """A renamed file that is left behind here starts servers of its own, or imports Airflow."""
    assert (ROOT / path).exists()


class Process:
    """Runs each test at once, and has one on hand until it is shut down, as a worker of xdist."""

    def __init__(self, collected: list[str]) -> None:
        self.collected, self.sent, self.shutting_down = collected, list[int](), False
        self.gateway, self.id = self, "gw"

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def ran(self) -> list[str]:
        return [self.collected[at] for at in self.sent]


def test_every_test_runs_once_and_those_with_airflow_where_it_is_imported(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduling = pytest.importorskip("scheduling")
    monkeypatch.setattr(pytestconfig.option, "tx", ["3*popen"])
    files = ["tests/unit/test_x.py", "tests/unit/test_y.py", *IMPORTING_AIRFLOW[-3:]]
    whole = [f"{file}::test_{at}" for file in files for at in range(5)]
    others = [each for each in whole if not imports_airflow(each)]
    processes = [Process(others), Process(whole), Process(others)]
    deals = scheduling.GroupScheduling(pytestconfig)
    for each in processes:
        deals.add_node(each)
        deals.add_node_collection(each, each.collected)
    deals.schedule()
    for _ in whole:
        for each in processes:
            for at in each.sent:
                deals.mark_test_complete(each, at)
    assert sorted(test for each in processes for test in each.ran) == sorted(whole)
    assert not any(map(imports_airflow, [*processes[0].ran, *processes[2].ran]))
    assert imports_airflow(processes[1].ran[0])  # first what no other one can run
    assert all(each.shutting_down for each in processes)
    for file in {group_of(each) for each in whole}:
        assert sum(any(group_of(test) == file for test in each.ran) for each in processes) == 1
