"""An application for spark-submit: one step of a run, wherever Spark puts its driver.

See :mod:`mondrian_ops.engines.spark_submit`, which requests it and takes its result.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mondrian_ops import errors, pipeline
from mondrian_ops.engines.release_check import ReleaseCheck
from mondrian_ops.engines.run import Run
from mondrian_ops.engines.spark_submit import Request, Result
from mondrian_ops.errors import MondrianOpsError

__all__ = ["REQUEST_FILE", "REQUEST_VARIABLE", "main"]

REQUEST_VARIABLE = "SPARK_MONDRIAN_OPS_REQUEST"
"""Holds the request; Spark passes variables with this prefix on to a driver."""

REQUEST_FILE = "mondrian_ops_request.json"
"""Holds the request where Spark passes on files, but no variables."""


def main() -> None:
    """Do the requested work; the process fails only on an error that a retry might cure."""
    text = os.environ.get(REQUEST_VARIABLE) or Path(REQUEST_FILE).read_text(encoding="utf-8")
    request = Request.from_json(text)
    run = request.location.enter()
    run.work.check_attempt()
    pipeline.set_class_maker(run)
    try:
        with errors.values_withheld():
            result = Result(_done(request, run))
    except MondrianOpsError as error:
        result = Result(error=type(error).__name__, text=str(error))
    result.leave(run.work, request.step, request.fragment)


def _done(request: Request, run: Run) -> Any:
    from mondrian_ops.engines.spark import SparkEngine, session_of

    # Variables of the machine that starts drivers; this driver has a cluster of its own.
    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(name, None)
    session = session_of()
    try:
        engine = SparkEngine(session)
        if request.step == "partition":
            key = bytes.fromhex(request.people_key) or None
            return pipeline.divide(run, engine, people_key=key)
        if request.step != "anonymize":
            return engine.check(run, ReleaseCheck.load(run.work, request.step))
        fragments = run.state.fragments
        chosen = fragments if request.fragment is None else [fragments[request.fragment]]
        return [summary.to_dict() for summary in engine.anonymize(run, chosen)]
    finally:
        session.stop()
