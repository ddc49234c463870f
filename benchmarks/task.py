"""One task of a run as a process of its own, as Airflow starts it, but without Airflow.

`python -m benchmarks.task TASK`: TASK is a JSON file, `{"phase", "job", "work", "answer"}` and what
the phase takes besides: the `fragment` of `anonymize_fragment`, the `summaries` of `wrap_up`. What
Airflow would keep as an XCom goes to the file `answer`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mondrian_ops.lean_imports import import_lean

Task = dict[str, Any]


def main() -> None:
    import_lean()  # as the operators do, before numpy is imported
    task: Task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    answer = _PHASES[task["phase"]](task)
    Path(task["answer"]).write_text(json.dumps(answer), "utf-8")


def _partition(task: Task) -> Any:
    from mondrian_ops import pipeline

    fragments = pipeline.partition(pipeline.load_job(task["job"]), work=task["work"])
    return [fragment.to_dict() for fragment in fragments]


def _anonymize(task: Task) -> Any:
    from mondrian_ops import pipeline
    from mondrian_ops.engines.handover import Fragment

    fragment = Fragment.from_dict(task["fragment"])
    if fragment.fragments is None:
        return [pipeline.anonymize_fragment(fragment).to_dict()]
    return _anonymize_all({"work": fragment.work})


def _anonymize_all(task: Task) -> Any:
    from mondrian_ops import pipeline

    return [summary.to_dict() for summary in pipeline.anonymize_all(task["work"])]


def _wrap_up(task: Task) -> Any:
    from mondrian_ops import pipeline
    from mondrian_ops.engines.handover import Summary

    job = pipeline.load_job(task["job"])
    summaries = [Summary.from_dict(each) for each in task["summaries"]]
    report = pipeline.wrap_up(job, work=task["work"], summaries=summaries)
    return {name: report[name] for name in ("rows", "achieved", "equivalence_classes")}


def _reads(task: Task) -> float:
    """How often the mapped tasks have read the source, by the statistics of its row groups."""
    import pyarrow.dataset as ds

    from mondrian_ops import publish
    from mondrian_ops.cut.plan import pushdown_filter
    from mondrian_ops.engines.run import Run

    run = Run(publish.WorkDir.attach(task["work"]))
    retrieval = run.state.retrieval
    if retrieval != "pushdown":
        return float(retrieval == "shuffle")
    orders, source = run.anonymizer.orders, run.dataset.source
    rows = 0
    for each in task["fragments"]:
        keep = pushdown_filter(run.plan.condition(each["id"], orders), orders)
        for file in ds.dataset(source.files).get_fragments():
            groups = (file if keep is None else file.subset(keep)).row_groups
            rows += sum(group.num_rows for group in groups)
    return rows / source.rows


def _clean_up(task: Task) -> None:
    from mondrian_ops import publish

    publish.WorkDir(task["work"]).remove()


_PHASES: dict[str, Callable[[Task], Any]] = {
    "partition": _partition,
    "anonymize_fragment": _anonymize,
    "anonymize_all": _anonymize_all,
    "wrap_up": _wrap_up,
    "reads": _reads,
    "clean_up": _clean_up,
}


if __name__ == "__main__":
    main()
