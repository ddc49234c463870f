"""An application for spark-submit: one step of a run, wherever Spark puts its driver.

The driver sees neither Airflow nor the machine that submitted it. Its order says where the working
files are; all else is in them, and so is its answer in the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mondrian_ops import pipeline, storage
from mondrian_ops.core import errors, limits
from mondrian_ops.core.errors import MondrianOpsError, StorageError
from mondrian_ops.engines.run import Run

__all__ = ["ORDER_FILE", "ORDER_VARIABLE", "Answer", "Order", "main"]

ORDER_VARIABLE = "SPARK_MONDRIAN_OPS_ORDER"
"""Holds the order; Spark hands variables on to a driver whose names begin so."""

ORDER_FILE = "mondrian_ops_order.json"
"""Holds the order where Spark hands files on, but no variables."""


@dataclass(frozen=True)
class Order:
    """What an application is to do: the ``step`` ``partition``, or ``anonymize``.

    ``fragment`` is the number of the one to anonymize; None: all of them. ``storage`` says how the
    working files and the input are reached, and may hold secrets; ``allowed`` what may be read and
    written; ``limits`` the limits of what is read that are not the defaults. ``attempt`` tells the
    working files from those of another attempt at the same run.
    """

    step: str
    work: str
    attempt: str
    fragment: int | None = None
    storage: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Any] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """The order as text."""
        return json.dumps(asdict(self))

    @classmethod
    def given(cls) -> Order:
        """The order that this process was given."""
        text = os.environ.get(ORDER_VARIABLE) or Path(ORDER_FILE).read_text(encoding="utf-8")
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Answer:
    """What an application leaves: the fragments or summaries, or an error that is final."""

    value: Any = None
    error: str = ""
    text: str = ""

    @classmethod
    def left(cls, work: str, step: str, fragment: int | None) -> Answer | None:
        """The answer to an order, if there is one in the working files as they are now."""
        directory = storage.WorkDir(work)
        try:
            order = Order(step, work, directory.token, fragment)
            return cls(**directory.read_json(_answer_name(order)))
        except StorageError:
            return None

    def result(self) -> Any:
        """The value; raises the error if it is one."""
        if self.error:
            kind: type[MondrianOpsError] = getattr(errors, self.error)
            raise kind(self.text)
        return self.value


def main() -> None:
    """Do what is ordered; only an error that a retry might cure ends the process with a failure."""
    order = Order.given()
    storage.use_options(order.storage)
    storage.restrict_to(storage.Allowed.from_json(order.allowed))
    limits.use(order.limits)
    work = storage.WorkDir(order.work, order.attempt)
    work.check_attempt()
    try:
        with errors.values_withheld():
            answer = Answer(_done(order, Run(work)))
    except MondrianOpsError as error:
        answer = Answer(error=type(error).__name__, text=str(error))
    work.write_json(_answer_name(order), asdict(answer))


def _answer_name(order: Order) -> str:
    """The name of the working file; an obsolete application does not touch another's."""
    which = "all" if order.fragment is None else order.fragment
    return f"answer-{order.step}-{which}-{order.attempt}.json"


def _done(order: Order, run: Run) -> Any:
    from mondrian_ops.engines.spark import SparkEngine, session_of

    # What the machine that starts drivers was started with: this one has a cluster of its own.
    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"):
        os.environ.pop(name, None)
    session = session_of()
    try:
        engine = SparkEngine(session)
        if order.step == "partition":
            return pipeline.divide(run, engine=engine)
        fragments = run.state["fragments"]
        chosen = fragments if order.fragment is None else [fragments[order.fragment]]
        return list(engine.anonymize(run, chosen))
    finally:
        session.stop()
