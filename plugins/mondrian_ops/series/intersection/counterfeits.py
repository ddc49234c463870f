"""Rows that are made up, so that a class has the sensitive values that it lacks.

Xiao and Tao (m-invariance, SIGMOD 2007, section 3.2) publish beside a release how many of them each
class has. Analysts subtract these. docs/privacy.md says what that number tells an attacker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import publish, stores
from mondrian_ops.errors import StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.series.intersection.night import in_classes
from mondrian_ops.series.keyed_hashes import class_texts
from mondrian_ops.series.naming import COUNTERFEITS

if TYPE_CHECKING:
    from mondrian_ops.verify.requirements import Verdict

_COUNT = "counterfeits"


def content_of(rows: pa.Table) -> bytes:
    """The content of the file, from the columns that define the class of each row made up."""
    names = rows.column_names
    classes = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
    sink = pa.BufferOutputStream()
    pq.write_table(classes.rename_columns([*names, _COUNT]), sink)
    return bytes(sink.getvalue())


def by_class(release: str) -> Counter[str] | None:
    """How many rows of each class are made up, by its text; None where no file says so.

    Raises StorageError where the file cannot be read.
    """
    try:
        table = pq.read_table(pa.BufferReader(publish.beside_release(release, COUNTERFEITS)))
        counts = table[_COUNT].cast(pa.int64()).fill_null(0).to_pylist()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (pa.ArrowInvalid, KeyError) as error:
        raise StorageError(
            f"{stores.shown(release)}/{COUNTERFEITS}: cannot be read; restore it"
        ) from error
    texts = class_texts(table.drop_columns([_COUNT])).to_pylist()
    return Counter(dict(zip(texts, counts, strict=True)))


def without_counterfeits(job: Job, release: str, verdict: Verdict, reported: int | None) -> Verdict:
    """The verdict on a release whose rows were counted, with k of those that are not made up.

    ``reported``: how many are made up by the release's report; None where nothing is known. A
    person has one row in a release of such a series.
    """
    made_up = by_class(release)
    if made_up is None:
        if reported == 0:
            return verdict
        missing = f"{COUNTERFEITS}: is missing, so persons cannot be counted; restore it"
        return replace(verdict, passed=False, failures=(*verdict.failures, missing))
    failures = list(verdict.failures)
    if reported is not None and made_up.total() != reported:
        failures.append(
            f"{COUNTERFEITS}: has {made_up.total()} counterfeits, but {reported} are in the "
            "report; restore it"
        )
    if not made_up:
        return replace(verdict, passed=verdict.passed and not failures, failures=tuple(failures))
    if min(made_up.values()) < 1:
        failures.append(f"{COUNTERFEITS}: has a class without counterfeits; restore it")
    sizes = Counter(_texts_of(job, release))
    least = min((size - made_up[text] for text, size in sizes.items()), default=0)
    if failing := sum(size - made_up[text] < job.k for text, size in sizes.items()):
        failures.append(
            f"{failing} of {len(sizes)} classes have fewer than k = {job.k} rows that are not "
            "counterfeits"
        )
    if strangers := len(made_up.keys() - sizes.keys()):
        failures.append(f"{COUNTERFEITS}: {strangers} class(es) are not in the release; restore it")
    checked = f"k = {job.k} without {in_classes(made_up.total(), len(made_up))}"
    return replace(
        verdict,
        passed=verdict.passed and not failures,
        achieved={**verdict.achieved, "k": least},
        checked=(*verdict.checked, checked),
        failures=tuple(failures),
    )


def _texts_of(job: Job, release: str) -> Iterable[str]:
    """The text of each row's class."""
    from mondrian_ops.verify.requirements import published_columns

    for file in publish.release_files(release):
        names = published_columns(job, file.columns)
        yield from class_texts(pa.Table.from_batches(file.batches(names))).to_pylist()
