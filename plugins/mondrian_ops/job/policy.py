"""Policies: the floor under every job, which the deployment sets and no job can lower.

A policy says what jobs on some inputs must ask. Of several policies that match a job each holds, so
the strictest requirement of all of them does. Which locations match is decided in
:mod:`mondrian_ops.stores.policies`, which also reads the file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal

from mondrian_ops.job.criterion import Criterion, WithCriteria
from mondrian_ops.job.job import Job
from mondrian_ops.job.options import Options, option, wrong
from mondrian_ops.job.widths import as_width
from mondrian_ops.late_methods import dataclass

ROLES: Mapping[str, tuple[str, ...]] = {
    "identifier": ("identifiers",),
    "quasi_identifier": ("quasi_identifiers", "identifiers"),
    "sensitive": ("sensitive", "identifiers"),
    "any": ("identifiers", "quasi_identifiers", "sensitive", "unlisted"),
}
"""By required role, the options by which a job may publish the column; it may leave it out, too."""

_ENGINES = ("local", "spark")


@dataclass(frozen=True, slots=True)
class Approvers(Options):
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
class Policy(WithCriteria):
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
    l_width: Mapping[str, str] = option(
        {},
        text="The minimum `l_width` of sensitive numbers and dates, by a name or a pattern of it. "
        "A job that publishes the column must list it under `sensitive`, or as an identifier.",
        noun="a column and a width",
        needs="min_l",
    )
    max_t: float | None = option(None, text="The maximum `t`.", above=0, maximum=1)
    t_distance: Literal["equal", "ordered", "hierarchical"] = option(
        "equal", text="The distance of `t`; `equal` meets the others.", needs="max_t"
    )
    max_gcp: float | None = option(None, text="The maximum `max_gcp`.", minimum=0, maximum=1)
    max_risk: float | None = option(None, text="The maximum `max_risk`.", minimum=0, maximum=1)
    max_query_error: float | None = option(None, text="The maximum `max_query_error`.", minimum=0)
    max_suppressed: float | None = option(
        None,
        text="The maximum `max_suppressed`, a number of rows or a share of them below 1.",
        minimum=0,
        whole_from=1,
        noun="a number of rows, or a share of them below 1",
    )
    roles: Mapping[str, str] = option(
        {},
        text="By the name of a column, or a pattern of it: `identifier`, `quasi_identifier`, "
        "`sensitive` or `any`. A job that publishes the column must list it as that, or as an "
        "identifier.",
        noun="a column and its role",
    )
    others: Literal["drop", "publish"] = option(
        "publish",
        text="`drop`: jobs may publish no column without a role here, whichever option lists it.",
        needs="roles",
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
    people_by: tuple[str, ...] = option(
        (),
        text="The columns by which `overlap` tells people apart, in place of the job's own.",
        noun="a column",
        examples=(("ssn",),),
        only_with={"overlap": ("warn", "refuse")},
    )
    engines: tuple[str, ...] = option((), text="The engines that may be used.", noun="an engine")
    outputs: tuple[str, ...] = option(
        (), text="The locations below which the output must lie.", noun="a location"
    )
    dependencies: Literal["warn", "refuse"] = option(
        "warn", text="What happens to a release with columns that undo its generalization."
    )
    approval: Approvers = option(Approvers(), text="Who approves the release.")
    criteria: Mapping[str, Criterion] = field(default_factory=dict, hash=False)

    def check(self, path: str) -> None:
        """Raise JobError for a role, a width or an engine that there is not, a c without a bound,
        or an overlap of people whom each job may tell apart by other columns."""
        if self.diversity == "recursive" and self.max_c is None:
            raise wrong(f"{path}.max_c", "is required by diversity: recursive")
        if self.overlap != "ignore" and not self.tells_apart_by:
            raise wrong(
                f"{path}.people_by",
                f"is required by overlap: {self.overlap}, because releases that tell people apart "
                "by other columns cannot be compared; list the columns, or set entity_id",
            )
        of_rows = "max_t" if self.max_t is not None else next(iter(self.criteria), "")
        if self.entity_id is not None and of_rows:
            raise wrong(
                f"{path}.{of_rows}",
                "counts rows, while entity_id requires that persons are counted; remove one of "
                "the two, or require min_l, which counts persons",
            )
        for pattern, role in self.roles.items():
            if role not in ROLES:
                raise wrong(f"{path}.roles.{pattern}", f"{role!r} is not one of {', '.join(ROLES)}")
        for pattern, text in self.l_width.items():
            as_width(text, f"{path}.l_width.{pattern}")
            role = self.roles.get(pattern, "sensitive")
            if role != "sensitive":
                raise wrong(
                    f"{path}.l_width.{pattern}",
                    f"is for sensitive columns, and the role is {role}; remove one of the two",
                )
        for at, engine in enumerate(self.engines):
            if engine not in _ENGINES:
                raise wrong(
                    f"{path}.engines[{at}]", f"{engine!r} is not one of {', '.join(_ENGINES)}"
                )

    @property
    def roles_required(self) -> dict[str, str]:
        """The roles by column or pattern; columns with a width are sensitive."""
        return {**dict.fromkeys(self.l_width, "sensitive"), **self.roles}

    @property
    def tells_apart_by(self) -> list[str]:
        """The columns by which people are told apart, as names are compared; empty if any may."""
        by = self.people_by or ((self.entity_id,) if self.entity_id else ())
        return sorted(map(folded, by))


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
        """Raise JobError for two policies of one name, or two that could not see the overlap of
        their people."""
        names = [policy.name for policy in self.policies]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise wrong(f"policies[{at}].name", f"{name!r} is the name of two policies")
        first_of: dict[str | None, Policy] = {}
        for at, policy in enumerate(self.policies):
            if policy.overlap == "ignore":
                continue
            first = first_of.setdefault(policy.population, policy)
            if first.tells_apart_by != policy.tells_apart_by:
                raise wrong(
                    f"policies[{at}].people_by",
                    f"tells people apart by other columns than the policy {first.name!r}, so their "
                    "overlaps could not be seen; give both the same columns, or each a population "
                    "of its own",
                )


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows of a series that wait, and the policies under which they came.

    They came in the night ``since``, its dates, from ``input``.
    """

    since: str
    input: str
    policies: tuple[Policy, ...]

    def to_json(self) -> dict[str, Any]:
        """A small JSON value."""
        policies = [policy.to_dict() for policy in self.policies]
        return {"since": self.since, "input": self.input, "policies": policies}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Arrival:
        """The value that :meth:`to_json` described; raises JobError for a policy of a newer
        version."""
        where = f"policies of rows that wait since {value['since']}"
        policies = tuple(Policy.read(each, where) for each in value["policies"])
        return cls(value["since"], value["input"], policies)


@dataclass(frozen=True, slots=True)
class Required:
    """What several policies require together of what follows the check of a job.

    ``approvers``: the name by id of each user who may approve; None if everybody may.
    ``people_by``: the columns that tell people apart; empty if the job says it.
    """

    policies: tuple[str, ...] = ()
    approval: bool = False
    approvers: Mapping[str, str] | None = None
    four_eyes: bool = False
    dependencies: Literal["warn", "refuse"] = "warn"
    people_by: tuple[str, ...] = ()

    @classmethod
    def by(cls, policies: Iterable[Policy]) -> Required:
        """What these policies require: the strictest of all of them."""
        policies = tuple(policies)
        approvals = [policy.approval for policy in policies]
        refuse = any(policy.dependencies == "refuse" for policy in policies)
        return cls(
            policies=tuple(dict.fromkeys(policy.name for policy in policies)),
            approval=any(each.required for each in approvals),
            approvers=_common([_users(each) for each in approvals if each.approvers]),
            four_eyes=any(each.four_eyes for each in approvals),
            dependencies="refuse" if refuse else "warn",
            # Policies whose jobs have one population name the same columns.
            people_by=next((each.people_by for each in policies if each.people_by), ()),
        )


def _users(approval: Approvers) -> dict[str, str]:
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

    Locations are left out; ``publish.policy_check`` compares them.
    """
    yield from _k_and_diversity(policy, job)
    yield from _widths(policy, job)
    yield from _closeness(policy, job)
    yield from _criteria(policy, job)
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


def _widths(policy: Policy, job: Job) -> Iterator[str]:
    """The sensitive columns whose similar values need not be as far apart as the policy says."""
    for pattern, least in policy.l_width.items():
        for column in job.sensitive:
            asked = job.l_width.get(column)
            if not _matches(column, pattern) or (
                asked is not None and as_width(asked).covers(as_width(least))
            ):
                continue
            required, remedy = f"l_width of {pattern}: {least}", f"set {least} or a wider one"
            yield short(policy, f"l_width.{column}", _is(asked), required, remedy)


def _closeness(policy: Policy, job: Job) -> Iterator[str]:
    most = policy.max_t
    if most is None:
        return
    if job.t is None or job.t > most:
        yield short(policy, "t", _is(job.t), f"max_t: {most:g}", f"set {most:g} or less")
    if job.t_distance not in ("equal", policy.t_distance):
        required = f"t_distance: {policy.t_distance}"
        yield short(policy, "t_distance", _is(job.t_distance), required, f"set {policy.t_distance}")


def _criteria(policy: Policy, job: Job) -> Iterator[str]:
    """The criteria of packages that the job does not ask for, or by less strict options."""
    for name, least in policy.criteria.items():
        asked = job.criteria.get(name)
        if asked is None or not asked.covers(least):
            options = least.to_dict(complete=True)
            problem = "is not set" if asked is None else f"is {asked.to_dict(complete=True)}"
            yield short(policy, name, problem, f"{name}: {options}", f"set {options} or stricter")


def _limits(policy: Policy, job: Job) -> Iterator[str]:
    for name in ("max_gcp", "max_risk", "max_query_error", "max_suppressed"):
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
    if entity is not None and folded(job.entity_id or "") != folded(entity):
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
    listed = {folded(name) for name in job.named_columns}
    if missing := [name for name in policy.people_by if folded(name) not in listed]:
        requirement = f"people_by: {', '.join(policy.people_by)}"
        lacks = f"does not list {', '.join(missing)}"
        yield short(policy, "identifiers", lacks, requirement, "list what is missing")


def misused(policy: Policy, job: Job, column: str, within: str = "") -> Iterator[str]:
    """How a job publishes a column in another way than its role in a policy allows.

    ``within`` is the column that has it inside, as a structure has its fields.
    """
    listed = _option_with(job, within or column)
    if listed == "unlisted" and job.unlisted == "drop":
        return
    # Without a header the names of columns are values, so only the job's own are shown.
    is_named = listed != "unlisted"
    problem = f"has {within or column!r}" if is_named else "publishes a column as it is"
    roles = required_roles(policy, column)
    for pattern, role in roles.items():
        if listed not in ROLES[role]:
            key = "the role" if pattern in policy.roles else "l_width, and so the role"
            required = f"{key} {pattern}: {role}"
            remedy = f"list the column under {ROLES[role][0]}, or leave it out"
            yield short(policy, listed, problem, required, remedy)
    is_whole = within in ("", column)  # the fields of a column that may be published may be, too
    if policy.others == "drop" and is_whole and not roles and listed != "identifiers":
        remedy = "leave the column out, or list it under identifiers"
        yield short(policy, listed, problem, "others: drop", remedy)


def required_roles(policy: Policy, column: str) -> dict[str, str]:
    """The roles that a policy gives a column, by the patterns that it matches."""
    return {name: role for name, role in policy.roles_required.items() if _matches(column, name)}


def _option_with(job: Job, column: str) -> str:
    """The option of a job by which a column is published, or would be."""
    if column in job.identifiers:
        return "identifiers"
    if column in job.quasi_identifier_names:
        return "quasi_identifiers"
    return "sensitive" if column in job.sensitive else "unlisted"


def _matches(column: str, pattern: str) -> bool:
    """Whether a pattern stands for a column; case does not count.

    A column's name may hold the characters of a pattern, so they are compared as they are, too.
    """
    name, pattern = folded(column), folded(pattern)
    return name == pattern or fnmatchcase(name, pattern)


def folded(name: str) -> str:
    """A name as it is compared: without case, widths of characters, and blanks around it."""
    return unicodedata.normalize("NFKC", name).casefold().strip()
