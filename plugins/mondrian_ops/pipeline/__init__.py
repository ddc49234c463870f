"""The three phases as plain functions; the command line, the operators and Spark call these.

`partition` profiles the dataset, plans the fragments on a sample and makes sure that each satisfies
the criteria; `anonymize_fragment` turns one fragment into one part of the release; `wrap_up` checks
the release as written, measures it and publishes it, or refuses. `check` and `publish` are its two
steps, for a release that waits for an approval between them. The phases share private working
files, and pass small dicts. `specialize_part` and `recode` follow a `partition` that leaves the
recoding to tasks of its own.
"""

from typing import TYPE_CHECKING

from mondrian_ops.late_names import late_names
from mondrian_ops.pipeline.api import (
    anonymize_all,
    anonymize_fragment,
    discard,
    run,
    verify,
    verify_series,
)
from mondrian_ops.pipeline.approval import Approval, asks, exceeded, refuse_without_users
from mondrian_ops.pipeline.partition import (
    begin,
    divide,
    partition,
    parts_to_map,
    plan,
    recode,
    specialize_part,
)
from mondrian_ops.pipeline.report_builder import is_held
from mondrian_ops.pipeline.wrap_up import (
    Checked,
    check,
    publish,
    published_once,
    published_report,
    wrap_up,
)
from mondrian_ops.storage import load_job

if TYPE_CHECKING:
    from mondrian_ops.pipeline.in_memory import anonymize

__all__ = [
    "Approval",
    "Checked",
    "anonymize",
    "anonymize_all",
    "anonymize_fragment",
    "asks",
    "begin",
    "check",
    "discard",
    "divide",
    "exceeded",
    "is_held",
    "load_job",
    "partition",
    "parts_to_map",
    "plan",
    "publish",
    "published_once",
    "published_report",
    "recode",
    "refuse_without_users",
    "run",
    "specialize_part",
    "verify",
    "verify_series",
    "wrap_up",
]

if not TYPE_CHECKING:  # mypy would take any name for one of the package
    __getattr__ = late_names(__name__, {"in_memory": ("anonymize",)})  # no run on files needs it
