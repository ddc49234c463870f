"""The three phases as plain functions; the command line, the operators and Spark call these.

`partition` surveys the dataset, plans the fragments from a sample and makes sure that each can
stand alone; `anonymize_fragment` turns one fragment into one part of the release; `wrap_up` checks
the release as written, measures it and publishes it, or refuses. Its two steps are `check` and
`publish`, for a release that has to wait for an approval between them. Between the phases there are
the private working files of the run and small dicts. An engine does the work of the first two.
`count`, `specialize_part` and `recode` are the steps of a `partition` whose recoding has a first
phase in tasks of its own.
"""

from mondrian_ops.pipeline.api import (
    anonymize,
    anonymize_all,
    anonymize_fragment,
    discard,
    give_up,
    run,
    verify,
)
from mondrian_ops.pipeline.approval import Approval, asks, exceeded
from mondrian_ops.pipeline.partition import begin, count, divide, partition, plan
from mondrian_ops.pipeline.recoding import parts_to_map, recode, specialize_part
from mondrian_ops.pipeline.wrap_up import (
    Checked,
    check,
    publish,
    published_once,
    published_report,
    wrap_up,
)
from mondrian_ops.storage import load_job

__all__ = [
    "Approval",
    "Checked",
    "anonymize",
    "anonymize_all",
    "anonymize_fragment",
    "asks",
    "begin",
    "check",
    "count",
    "discard",
    "divide",
    "exceeded",
    "give_up",
    "load_job",
    "partition",
    "parts_to_map",
    "plan",
    "publish",
    "published_once",
    "published_report",
    "recode",
    "run",
    "specialize_part",
    "verify",
    "wrap_up",
]
