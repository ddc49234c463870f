"""The trigger of a task that waits for a driver on the cluster without its slot."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from airflow.sdk._shared.module_loading import import_string

from mondrian_ops.hooks import spark_driver
from mondrian_ops.hooks.spark_driver import DriverTrigger
from spark_master import spark_master

LATER = time.time() + 3600


@pytest.fixture
def master(monkeypatch):
    with spark_master() as master:
        monkeypatch.setenv("AIRFLOW_CONN_A_CLUSTER", json.dumps(master.connection))
        yield master


def trigger(until=LATER):
    return DriverTrigger("a_cluster", "driver-1", until, poll_s=0)


def event_of(trigger):
    async def first():
        return await anext(trigger.run())

    return asyncio.run(first()).payload


@pytest.mark.parametrize("last", ["FINISHED", "FAILED", "KILLED", "ERROR"])
def test_a_driver_that_is_over_is_an_event(master, last):
    master.statuses = ["SUBMITTED", "RUNNING", "RELAUNCHING", "UNKNOWN", last]
    assert event_of(trigger()) == {"driver_id": "driver-1", "status": last}
    assert master.killed == []


def test_a_driver_that_does_not_end_is_an_event_too(master):
    assert event_of(trigger(until=time.time() - 1))["status"] == "TIMED OUT"


def test_a_master_that_is_away_for_a_while_is_borne(master, monkeypatch):
    looks = iter([ConnectionError("no route"), ("RUNNING", False), ("FINISHED", True)])

    def look(_trigger):
        seen = next(looks)
        if isinstance(seen, Exception):
            raise seen
        return seen

    monkeypatch.setattr(DriverTrigger, "_look", look)
    assert event_of(trigger())["status"] == "FINISHED"


def test_a_master_that_stays_away_is_an_event(monkeypatch):
    def look(_trigger):
        raise ConnectionError("no route")

    monkeypatch.setattr(DriverTrigger, "_look", look)
    assert event_of(trigger())["status"] == spark_driver.UNREACHABLE


def test_it_goes_on_in_another_triggerer_and_its_arguments_hold_no_secret(master):
    first = trigger()
    path, arguments = first.serialize()
    assert json.loads(json.dumps(arguments)) == arguments
    assert "hush" not in str(arguments)

    async def restarted():
        """The first triggerer ends, as in a deployment, and another one takes over."""
        running = asyncio.create_task(anext(first.run()))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await first.cleanup()
        master.statuses = ["FINISHED"]
        return await anext(import_string(path)(**arguments).run())

    event = asyncio.run(restarted())
    assert event.payload == {"driver_id": "driver-1", "status": "FINISHED"}
    assert master.killed == []


def test_a_person_who_ends_the_task_ends_the_driver(master):
    asyncio.run(trigger().on_kill())
    assert master.killed == ["driver-1"]
