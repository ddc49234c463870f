"""What the phases of a run ask a store about the files of its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from mondrian_ops import pipeline, publish
from mondrian_ops.job.job import Job
from mondrian_ops.stores.files import FileInfo
from mondrian_ops.stores.local import LocalStore
from mondrian_ops.stores.remote import RemoteStore
from mondrian_ops.stores.store import Store
from mondrian_ops.tables import files as sources


@dataclass
class Asked:
    """Directories of the source that were listed, and files that were asked for one by one."""

    listed: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@contextmanager
def _asking() -> Iterator[Asked]:
    asked = Asked()
    data_file = sources.data_file

    def listing(of: type[Store]) -> Callable[[Store, str], tuple[list[str], list[FileInfo]]]:
        contents = of.contents

        def listed(store: Store, directory: str) -> tuple[list[str], list[FileInfo]]:
            asked.listed.append(directory)
            return contents(store, directory)

        return listed

    def one(url: str) -> FileInfo:
        asked.files.append(url)
        return data_file(url)

    with (
        patch.object(LocalStore, "contents", listing(LocalStore)),
        patch.object(RemoteStore, "contents", listing(RemoteStore)),
        patch.object(sources, "data_file", one),
    ):
        yield asked


def asked_by_phase(job: Job) -> tuple[Asked, list[Asked], Asked]:
    """What `partition` asks, the task of each fragment, and `wrap_up`."""
    work = publish.work_path(str(job.output), "asked")
    with _asking() as partition:
        fragments = pipeline.partition(job, work=work)
    tasks, summaries = [], []
    for fragment in fragments:
        with _asking() as task:
            summaries.append(pipeline.anonymize_fragment(fragment))
        tasks.append(task)
    with _asking() as wrap_up:
        pipeline.wrap_up(job, work=work, summaries=summaries)
    pipeline.discard(work)
    return partition, tasks, wrap_up
