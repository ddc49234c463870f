"""Policies: the floor under every job, which the deployment sets and no job can lower.

A policy says what jobs on some inputs must ask. Of several policies that match a job each holds, so
the strictest requirement of all of them does. Which locations match is decided in
:mod:`mondrian_ops.storage.policies`, which also reads the file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

from mondrian_ops.core.job import Job
from mondrian_ops.core.options import Options, option, wrong

__all__ = ["Approval", "OutputRule", "Policies", "Policy", "Required", "misused", "shortfalls"]

ROLES: Mapping[str, tuple[str, ...]] = {
    "identifier": ("identifiers",),
    "quasi_identifier": ("quasi_identifiers", "identifiers"),
    "sensitive": ("sensitive", "identifiers"),
}
"""By required role, where a job may list the column; it may also leave the column out."""

_ENGINES = ("local", "spark")


@dataclass(frozen=True, slots=True)
class Approval(Options):
    """Who approves a release."""

    described: ClassVar[str] = "a mapping of required, approvers and four_eyes"

    required: bool = option(
        False, text="Whether every release waits for an approval, although its job asks for none."
    )
    approvers: tuple[str, ...] = option(
        (),
        text="The users who may approve, by the id that Airflow's auth manager gives them; "
        "`ID=NAME` where their name is another. Of the DAG's `stewards` only these may.",
        noun="the id of a user",
    )
    four_eyes: bool = option(
        False, text="Whether the user who triggered the run may not approve its release."
    )


@dataclass(frozen=True, slots=True)
class Policy(Options):
    """What the jobs on some inputs must ask at least."""

    name: str = option(text="Its name, which errors and reports give.", examples=("patients",))
    inputs: tuple[str, ...] = option(
        (),
        required=True,
        text="The locations of the inputs, absolute paths or URLs, with all that is below them; "
        "`*` stands for any characters of a name.",
        noun="a location",
        examples=(("/srv/landing/patients",),),
    )
    min_k: int | None = option(None, text="The minimum `k`.", minimum=2)
    min_l: float | None = option(None, text="The minimum `l`.", minimum=2)
    diversity: Literal["distinct", "entropy", "recursive"] = option(
        "distinct", text="The kind of l-diversity; all kinds meet `distinct`.", needs="min_l"
    )
    max_c: float | None = option(
        None, text="The maximum `c`.", above=0, only_with={"diversity": ("recursive",)}
    )
    max_t: float | None = option(None, text="The maximum `t`.", above=0, maximum=1)
    t_distance: Literal["equal", "ordered", "hierarchical"] = option(
        "equal", text="The distance of `t`; `equal` meets the others.", needs="max_t"
    )
    max_gcp: float | None = option(None, text="The maximum `max_gcp`.", minimum=0, maximum=1)
    max_risk: float | None = option(None, text="The maximum `max_risk`.", minimum=0, maximum=1)
    max_suppressed: float | None = option(
        None,
        text="The maximum `max_suppressed`, a number of rows or a share of them below 1.",
        minimum=0,
        whole_from=1,
        noun="a number of rows, or a share of them below 1",
    )
    roles: Mapping[str, str] = option(
        {},
        text="By the name of a column, or a pattern of it: `identifier`, `quasi_identifier` or "
        "`sensitive`. A job that publishes the column must list it as that, or as an identifier.",
        noun="a column and its role",
    )
    entity_id: str | None = option(None, text="The `entity_id`.")
    unlisted: Literal["drop", "publish"] = option(
        "publish", text="`drop`: jobs may not publish columns that they do not name."
    )
    overlap: Literal["ignore", "warn", "refuse"] = option(
        "ignore", text="The `overlap`; `refuse` meets `warn`, too."
    )
    population: str | None = option(
        None,
        text="The `population`; without one, jobs name none.",
        examples=("patients",),
        only_with={"overlap": ("warn", "refuse")},
    )
    engines: tuple[str, ...] = option((), text="The engines that may be used.", noun="an engine")
    outputs: tuple[str, ...] = option(
        (), text="The locations below which the output must lie.", noun="a location"
    )
    dependencies: Literal["warn", "refuse"] = option(
        "warn", text="What happens to a release with columns that undo its generalization."
    )
    approval: Approval = option(Approval(), text="Who approves the release.")

    def check(self, path: str) -> None:
        """Raise JobError for a role or an engine that there is not, or a c without a bound."""
        if self.diversity == "recursive" and self.max_c is None:
            raise wrong(f"{path}.max_c", "is required by diversity: recursive")
        for pattern, role in self.roles.items():
            if role not in ROLES:
                raise wrong(f"{path}.roles.{pattern}", f"{role!r} is not one of {', '.join(ROLES)}")
        for at, engine in enumerate(self.engines):
            if engine not in _ENGINES:
                raise wrong(
                    f"{path}.engines[{at}]", f"{engine!r} is not one of {', '.join(_ENGINES)}"
                )


@dataclass(frozen=True, slots=True)
class OutputRule(Options):
    """Whose releases may lie in a location."""

    location: str = option(text="The location, with all that is below it.")
    dags: tuple[str, ...] = option(
        (), text="Patterns of the ids of the DAGs that may write there.", noun="a DAG's id"
    )
    replace: Literal["never", "same", "any"] = option(
        "same", text="Which earlier releases there may be replaced at most."
    )


@dataclass(frozen=True, slots=True)
class Policies(Options):
    """The policies of a deployment."""

    described: ClassVar[str] = "a mapping of unmatched, policies and outputs"

    unmatched: Literal["refuse", "allow"] = option(
        "refuse", text="What happens to a job whose input no policy matches."
    )
    policies: tuple[Policy, ...] = option((), text="The policies.")
    outputs: tuple[OutputRule, ...] = option((), text="Whose releases may lie where.")

    def check(self, path: str) -> None:
        """Raise JobError for two policies of one name."""
        names = [policy.name for policy in self.policies]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise wrong(f"policies[{at}].name", f"{name!r} is the name of two policies")


@dataclass(frozen=True, slots=True)
class Required:
    """What several policies require together of what follows the check of a job.

    ``approvers``: the name by id of each user who may approve; None if everybody may.
    """

    policies: tuple[str, ...] = ()
    approval: bool = False
    approvers: Mapping[str, str] | None = None
    four_eyes: bool = False
    dependencies: Literal["warn", "refuse"] = "warn"

    @classmethod
    def by(cls, policies: Iterable[Policy]) -> Required:
        """What these policies require: the strictest of all of them."""
        policies = tuple(policies)
        approvals = [policy.approval for policy in policies]
        refuse = any(policy.dependencies == "refuse" for policy in policies)
        return cls(
            policies=tuple(policy.name for policy in policies),
            approval=any(each.required for each in approvals),
            approvers=_common([_users(each) for each in approvals if each.approvers]),
            four_eyes=any(each.four_eyes for each in approvals),
            dependencies="refuse" if refuse else "warn",
        )


def _users(approval: Approval) -> dict[str, str]:
    """The name of each approver by id."""
    pairs = (entry.partition("=") for entry in approval.approvers)
    return {user.strip(): name.strip() or user.strip() for user, _, name in pairs}


def _common(users: list[dict[str, str]]) -> dict[str, str] | None:
    """The users who are in all of them; None where there are none of these."""
    if not users:
        return None
    first, *others = users
    return {user: name for user, name in first.items() if all(user in each for each in others)}


def shortfalls(policy: Policy, job: Job) -> Iterator[str]:
    """What a job asks less than a policy requires: option, value, requirement and remedy.

    Locations are left out; ``storage.policies`` compares them.
    """
    yield from _k_and_diversity(policy, job)
    yield from _closeness(policy, job)
    yield from _limits(policy, job)
    yield from _data(policy, job)
    for column in job.named_columns:
        yield from misused(policy, job, column)


def short(policy: Policy, option_: str, problem: str, requirement: str, remedy: str) -> str:
    """One sentence of :func:`shortfalls`."""
    return f"{option_}: {problem}, and the policy {policy.name!r} requires {requirement}; {remedy}"


def _is(value: object) -> str:
    return "is not set" if value is None else f"is {value}"


def _k_and_diversity(policy: Policy, job: Job) -> Iterator[str]:
    least = policy.min_l
    if policy.min_k is not None and job.k < policy.min_k:
        required = f"min_k: {policy.min_k}"
        yield short(policy, "k", _is(job.k), required, f"set {policy.min_k} or more")
    if least is None:
        return
    if job.l is None or job.l < least:
        yield short(policy, "l", _is(job.l), f"min_l: {least:g}", f"set {least:g} or more")
    if policy.diversity not in ("distinct", job.diversity):
        required = f"diversity: {policy.diversity}"
        yield short(policy, "diversity", _is(job.diversity), required, f"set {policy.diversity}")
    if policy.max_c is not None and job.c is not None and job.c > policy.max_c:
        required = f"max_c: {policy.max_c:g}"
        yield short(policy, "c", _is(job.c), required, f"set {policy.max_c:g} or less")
    if job.missing_sensitive == "value":
        required = f"min_l: {least:g} of known values"
        yield short(policy, "missing_sensitive", "is value", required, "set no_value")


def _closeness(policy: Policy, job: Job) -> Iterator[str]:
    most = policy.max_t
    if most is None:
        return
    if job.t is None or job.t > most:
        yield short(policy, "t", _is(job.t), f"max_t: {most:g}", f"set {most:g} or less")
    if job.t_distance not in ("equal", policy.t_distance):
        required = f"t_distance: {policy.t_distance}"
        yield short(policy, "t_distance", _is(job.t_distance), required, f"set {policy.t_distance}")


def _limits(policy: Policy, job: Job) -> Iterator[str]:
    for name in ("max_gcp", "max_risk", "max_suppressed"):
        most, limit = getattr(policy, name), getattr(job, name)
        if most is None:
            continue
        required = f"{name}: {most:g}"
        # How many rows a share stands for is not known yet.
        is_share = name == "max_suppressed" and limit is not None and 0 < limit < 1 <= most
        if limit is None or limit > most or is_share:
            remedy = f"set {most:g} or less" + (", as a number of rows" if is_share else "")
            yield short(policy, name, _is(limit), required, remedy)
        if job.on_exceeded == "ask":
            yield short(policy, "on_exceeded", "is ask", f"{required} of all", "set refuse")


def _data(policy: Policy, job: Job) -> Iterator[str]:
    entity = policy.entity_id
    if entity is not None and _folded(job.entity_id or "") != _folded(entity):
        required = f"entity_id: {entity}"
        yield short(policy, "entity_id", _is(job.entity_id), required, f"set {entity}")
    if policy.unlisted == "drop" and job.unlisted != "drop":
        yield short(policy, "unlisted", _is(job.unlisted), "unlisted: drop", "set drop")
    yield from _overlap(policy, job)
    if policy.engines and job.engine not in policy.engines:
        allowed = " or ".join(policy.engines)
        yield short(policy, "engine", _is(job.engine), f"engines: {allowed}", f"set {allowed}")


def _overlap(policy: Policy, job: Job) -> Iterator[str]:
    required = policy.overlap
    if required == "ignore":
        return
    if job.overlap not in (required, "refuse"):
        yield short(policy, "overlap", _is(job.overlap), f"overlap: {required}", f"set {required}")
    if job.population != policy.population:
        named = policy.population
        remedy = "remove it" if named is None else f"set {named}"
        yield short(policy, "population", _is(job.population), f"population: {named}", remedy)


def misused(policy: Policy, job: Job, column: str, within: str = "") -> Iterator[str]:
    """How a job publishes a column in another way than its role in a policy allows.

    ``within`` is the column that has it inside, as a structure has its fields.
    """
    listed = _option_with(job, within or column)
    if listed is None and job.unlisted == "drop":
        return
    for pattern, role in policy.roles.items():
        if not _matches(column, pattern) or listed in ROLES[role]:
            continue
        # Without a header the names of columns are values, so only the job's own are shown.
        problem = f"has {within or column!r}" if listed else "publishes a column as it is"
        required = f"the role {pattern}: {role}"
        remedy = f"list the column under {ROLES[role][0]}, or leave it out"
        yield short(policy, listed or "unlisted", problem, required, remedy)


def _option_with(job: Job, column: str) -> str | None:
    """The option of a job that lists a column; None if none does."""
    if column in job.identifiers:
        return "identifiers"
    if column in job.quasi_identifier_names:
        return "quasi_identifiers"
    return "sensitive" if column in job.sensitive else None


def _matches(column: str, pattern: str) -> bool:
    """Whether a pattern stands for a column; case does not count.

    A column's name may hold the characters of a pattern, so they are compared as they are, too.
    """
    name, folded = _folded(column), _folded(pattern)
    return name == folded or fnmatchcase(name, folded)


def _folded(name: str) -> str:
    """A name as it is compared: without case, widths of characters, and blanks around it."""
    return unicodedata.normalize("NFKC", name).casefold().strip()
