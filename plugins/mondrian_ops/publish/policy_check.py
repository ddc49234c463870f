"""Whether a job asks what the policies of its input, and of its waiting rows, require.

Rows of a series that wait bring along the policies under which they came, and those that match
their input today. Both hold for the night that publishes them (:func:`note_arrivals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mondrian_ops.errors import JobError
from mondrian_ops.job.policy import Arrival, Policy, Required, misused, short
from mondrian_ops.job.policy import shortfalls as policy_shortfalls
from mondrian_ops.publish.workdir import WorkDir
from mondrian_ops.stores import access_policy, policies
from mondrian_ops.stores.locations import is_of_table, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from mondrian_ops.job.job import Job
    from mondrian_ops.tables.table import Table

_ARRIVALS = "policies.json"


def check_job(job: Job, *, publishes: bool = True, work: str | None = None) -> Job:
    """The job as it has to run: with an approval, or without disclosing columns, if a policy
    says so.

    ``publishes``: whether it is to publish rows; for figures alone there is no floor. ``work``: the
    working files of a run that has begun, for the rows of its series that waited.

    Raises JobError if the job names what is not allowed here, asks less than a policy requires, or
    has an input that no policy matches where that is refused; StorageError if the working files
    vanished.
    """
    access_policy.check_access(job)
    matching = policies.policies_of(job)
    if not publishes:
        return job
    _refuse(shortfalls(job, matching))
    waiting = list(_of_waiting(job, work))
    _refuse(
        _since(since, problem) for since, policy in waiting for problem in shortfalls(job, [policy])
    )
    floor = Required.by([*matching, *(policy for _, policy in waiting)])
    return replace(
        job,
        require_approval=job.require_approval or floor.approval,
        dependencies="refuse" if floor.dependencies == "refuse" else job.dependencies,
    )


def check_input(url: str) -> list[Policy]:
    """The policies of an input of which figures are shown.

    Raises JobError if it may not be read here, or if no policy matches it where that is refused.
    """
    access_policy.check_location("input", url)
    return policies.matching(url)


def check_source(job: Job, source: Table) -> None:
    """Check what could not be seen before the files of the job's input were listed.

    Raises JobError as :func:`check_locations` does, or if a column is published in another way than
    its role allows.
    """
    if policies.current() is not None:
        check_locations(source)
        check_columns(job, source.schema)


def check_locations(source: Table) -> None:
    """Raise JobError if a file lies, by a symbolic link, where the input does not match a policy.

    Also if no policy matches it where that is refused.
    """
    known = policies.current()
    if known is None:
        return
    held = {policy.name for policy in policies.matching(source.url)}
    inputs = policies.inputs_of(known)
    of_catalog = is_of_table(source.url)  # which decides where the files of its tables lie
    for place in source.locations:
        names = [policy.name for policy in policies.met(inputs, place)]
        if not names and known.unmatched == "refuse" and not of_catalog:
            raise policies.unmatched(place)
        if not held.issuperset(names):
            raise JobError(
                f"input: {shown(place)} leads to a location of a policy that {shown(source.url)} "
                "does not match; "
                + (
                    "have an administrator add the table to the inputs of that policy"
                    if of_catalog
                    else "give that location as the input"
                )
            )


def check_columns(job: Job, schema: pa.Schema, work: str | None = None) -> None:
    """Raise JobError if a column is published in another way than its role allows.

    ``work``: as for :func:`check_job`; then ``schema`` is that of all rows of the night.
    """
    columns = list(_columns(schema))
    _refuse(
        problem
        for policy in policies.policies_of(job)
        for problem in _misuses(policy, job, columns)
    )
    _refuse(
        _since(since, problem)
        for since, policy in _of_waiting(job, work)
        for problem in _misuses(policy, job, columns)
    )


def required(job: Job, work: str | None = None) -> Required:
    """What the policies require of the rest of a run; ``work``: as for :func:`check_job`."""
    return Required.by(
        [*policies.policies_of(job), *(policy for _, policy in _of_waiting(job, work))]
    )


def note_arrivals(work: str, arrivals: Iterable[Arrival]) -> None:
    """Have the policies of rows that wait hold for the rest of the run with these working files."""
    WorkDir(work).write_json(_ARRIVALS, [each.to_json() for each in arrivals])


def _of_waiting(job: Job, work: str | None) -> Iterator[tuple[str, Policy]]:
    """The policies of rows that waited, each with the night in which these came.

    They are those that were kept with the rows, and those that match their input now. Raises
    JobError where there are neither, and every input needs a policy here.
    """
    arrivals = _arrivals(job, work)
    known = policies.current() if arrivals else None
    inputs = policies.inputs_of(known)
    for rows in arrivals:
        held = dict.fromkeys([*rows.policies, *policies.met(inputs, rows.input)])
        if not held and known is not None and known.unmatched == "refuse":
            raise JobError(
                f"series: no policy matches {shown(rows.input)}, from where rows came that wait "
                f"since {rows.since}, and such rows are refused here; have an administrator add a "
                "policy for this input"
            )
        yield from ((rows.since, policy) for policy in held)


def _arrivals(job: Job, work: str | None) -> list[Arrival]:
    """What :func:`note_arrivals` noted; only a series has rows that wait."""
    if work is None or job.series is None:
        return []
    return [Arrival.from_json(each) for each in WorkDir(work).read_json(_ARRIVALS)]


def _since(since: str, problem: str) -> str:
    return f"{problem}; rows that wait since {since} came under this policy"


def _refuse(problems: Iterable[str]) -> None:
    found = ". ".join(dict.fromkeys(problems))
    if found:
        raise JobError(found)


def shortfalls(job: Job, matching: Iterable[Policy]) -> Iterator[str]:
    """What the job asks less than policies require, locations included, and the remedies."""
    output = str(job.output)
    for policy in matching:
        yield from policy_shortfalls(policy, job)
        if policy.outputs and not access_policy.below(output, policy.outputs):
            required_ = f"outputs: {', '.join(map(shown, policy.outputs))}"
            remedy = "give a directory in it"
            yield short(policy, "output", f"is {shown(output)}", required_, remedy)


def _misuses(policy: Policy, job: Job, columns: Iterable[tuple[str, str]]) -> Iterator[str]:
    for column, within in columns:
        yield from misused(policy, job, column, within)


def _columns(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The names of all columns and of the fields inside them, each with its column."""
    for column in schema:
        fields = [column]
        while fields:
            field = fields.pop()
            yield field.name, column.name
            fields += [field.type.field(at) for at in range(field.type.num_fields)]
