"""What the check for truth and the measuring of losses take of a whole job's processor time.

`python -m benchmarks.truth JOB`: runs a job in this process and prints, in seconds of processor
time, what comparing the parts with the source takes, what the losses take, and the whole process.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.context import Context
    from benchmarks.tables import Table


def tables(context: Context) -> Iterator[Table]:
    """A process for each number of rows, the median of several."""
    from statistics import median

    from benchmarks import required
    from benchmarks.context import MILLION
    from benchmarks.measure import HERE
    from benchmarks.tables import Table, seconds, verdict

    lines = []
    for rows in context.sizes:
        path = context.job_file(context.job(rows, cut="median"))
        found = [json.loads(HERE.output("-m", "benchmarks.truth", str(path)))
                 for _ in range(context.rounds)]  # fmt: skip
        truth, losses, whole = (median(each[at] for each in found) for at in range(3))
        share = median((each[0] + each[1]) / each[2] for each in found)
        lines.append(
            (f"{rows:,}", seconds(whole), seconds(truth), seconds(losses), f"{100 * share:.1f} %",
             verdict(share <= required.TRUTH_SHARE) if rows >= 10 * MILLION else "")
        )  # fmt: skip
        context.say(" | ".join(lines[-1]))
    yield Table(
        "What the check for truth costs: 10 quasi-identifiers, k = 5, l = 2, median",
        ("rows", "CPU of the job", "rows compared", "losses measured", "both", ""),
        lines,
        note="CPU of one process that runs the job; rows compared: reading each part back, and "
        "comparing it with the rows of the source; losses measured: in `wrap_up`, on the published "
        f"text. Required: both at most {100 * required.TRUTH_SHARE:.0f} % at 10 million rows.",
    )


def main() -> None:
    from mondrian_ops import pipeline
    from mondrian_ops.verify import counts
    from mondrian_ops.verify import truth as release_truth

    spent: Counter[str] = Counter()

    def timed(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        @wraps(work)
        def call(*arguments: Any, **options: Any) -> Any:
            started = time.thread_time()
            try:
                return work(*arguments, **options)
            finally:
                spent[name] += time.thread_time() - started

        setattr(owner, name, call)

    timed(release_truth.PartTruth, "check")
    timed(counts, "losses_of_part")
    pipeline.run(pipeline.load_job(sys.argv[1]))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([spent["check"], spent["losses_of_part"], used.ru_utime + used.ru_stime]))


if __name__ == "__main__":
    main()
