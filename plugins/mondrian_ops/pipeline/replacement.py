"""May a release replace the one at its output?

Readers rely on what a release promises, and on who makes it. So it is replaced only by its maker,
the same task group of the same DAG, and only by a release that promises no less; anything else
needs ``replace: any``, which policies have to allow where there are some. They may also say which
DAGs write to a location. The report of a release has its promise and its maker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from mondrian_ops import publish, stores
from mondrian_ops.errors import JobError, StorageError
from mondrian_ops.job.job import Job
from mondrian_ops.job.widths import as_width
from mondrian_ops.report.statements import MAX_NAMES, maker, promise

# How a column is published, in ascending order of detail.
_HIDDEN, _GENERALIZED, _SENSITIVE, _RAW = range(4)

REPLACEABLE = ("never", "same", "any")

Report = Mapping[str, Any]


def refuse_foreign(output: str, made_by: str | None) -> None:
    """Raise JobError if, by the policies, others write to the output than this maker."""
    dag_id = (made_by or "").partition("/")[0]
    for rule in stores.output_rules(output) or ():
        if rule.dags and not any(fnmatchcase(dag_id, pattern) for pattern in rule.dags):
            raise JobError(
                f"output: {stores.shown(output)} belongs to the DAGs {', '.join(rule.dags)} by "
                f"the policies, not to {maker(made_by)}; choose another output, or have an "
                "administrator add the DAG"
            )


def refuse_replacing(job: Job, made_by: str | None) -> None:
    """Refuse to replace a release of another maker, or one that promises more.

    ``made_by``: who makes the new one, None for the command line and Python. A release whose report
    names no maker, as older versions wrote it, may be anybody's.

    Raises StorageError, which names its maker and what is weaker, or JobError if the policies do
    not let this maker write there, or replace any release there.
    """
    output = str(job.output)
    refuse_foreign(output, made_by)
    allowed = _replaceable(output)
    if job.replace == "any" and allowed != "any":
        raise JobError(
            f"replace: any is not allowed at {stores.shown(output)} by the policies; remove it, "
            "or have an administrator allow it for this location"
        )
    current = None if job.replace == "any" else publish.report_of(output)
    if current is None:
        return
    if allowed == "never":
        raise StorageError(
            f"output: {stores.shown(output)} holds a release, and the policies let none be "
            "replaced there; choose another `output`"
        )
    reasons = weaknesses(job, current)
    if current.get("made_by", made_by) != made_by:
        reasons.insert(0, "the two have different makers")
    if reasons:
        remedy = ", or set replace: any" if allowed == "any" else ""
        whose = f"of {maker(current['made_by'])} " if "made_by" in current else ""
        raise StorageError(
            f"output: {stores.shown(str(job.output))} holds a release {whose}with "
            f"{promise(_job_of(current))}, which a release of {maker(made_by)} with "
            f"{promise(job.to_dict())} may not replace: {'; '.join(reasons)}; choose another "
            f"`output`{remedy}"
        )


def _replaceable(output: str) -> str:
    """Which releases at an output may be replaced at most: never, same or any."""
    rules = stores.output_rules(output)
    if rules is None:
        return "any"
    return min((rule.replace for rule in rules), key=REPLACEABLE.index, default="same")


def replaced_by(job: Job) -> dict[str, Any]:
    """The release that this one would replace, for its approver; empty where there is none."""
    current = publish.report_of(str(job.output))
    if current is None:
        return {}
    job_before = _job_of(current)
    promised = {key: job_before[key] for key in ("k", "l", "t") if job_before.get(key) is not None}
    return {key: current[key] for key in ("made_by", "created") if key in current} | promised


def weaknesses(job: Job, current: Report) -> list[str]:
    """How a release of ``job`` protects less than the one of this report; empty if it does not.

    Compares k and what it counts, l, t, other criteria, and how the columns of the other release
    are published. How a quasi-identifier is generalized does not count: classes are as large either
    way.
    """
    before, columns = _job_of(current), _mapping(current.get("columns"))
    checks = (
        _smaller_k(job, before),
        _less_diverse(job, before),
        _less_close(job, before),
        *_fewer_criteria(job, before, current),
        _other_persons(job, before),
        _unlisted_published(job, columns),
        *_columns_exposed(job, before, columns, bool(current.get("criteria"))),
    )
    return [reason for reason in checks if reason]


def _smaller_k(job: Job, before: Report) -> str:
    k = _number(before.get("k"))
    return "" if k is None or job.k >= k else f"k is {job.k}, and was {k:g}"


def _less_diverse(job: Job, before: Report) -> str:
    """Entropy and recursive l-diversity imply the distinct one, but not each other."""
    l, kind, c = _number(before.get("l")), before.get("diversity", "distinct"), before.get("c")  # noqa: E741
    if l is None:
        return ""
    if job.l is None:
        return f"l is not set, and was {l:g}"
    if job.l < l:
        return f"l is {job.l:g}, and was {l:g}"
    if job.missing_sensitive == "value" and before.get("missing_sensitive") != "value":
        return "missing sensitive values count towards l, and did not before"
    if kind not in ("distinct", job.diversity):
        return f"diversity is {job.diversity}, and was {kind}"
    if narrower := _narrower(job, before):
        return narrower
    limit = _number(c)
    if limit is not None and job.c is not None and job.c > limit:
        return f"c is {job.c:g}, and was {limit:g}"
    return ""


def _narrower(job: Job, before: Report) -> str:
    """Whether numbers that were kept apart need be so no longer, or not as far."""
    for name, text in _mapping(before.get("l_width")).items():
        if name not in job.sensitive:
            continue
        asked, was = job.l_width.get(name), str(text)
        if asked is None:
            return f"l_width of {name!r} is not set, and was {was}"
        try:
            covered = as_width(asked).covers(as_width(was))
        except JobError:  # the report is damaged
            covered = False
        if not covered:
            return f"l_width of {name!r} is {asked}, and was {was}"
    return ""


def _less_close(job: Job, before: Report) -> str:
    """No other distance between two distributions is larger than the equal one."""
    t, distance = _number(before.get("t")), before.get("t_distance", "equal")
    if t is None:
        return ""
    if job.t is None:
        return f"t is not set, and was {t:g}"
    if job.t > t:
        return f"t is {job.t:g}, and was {t:g}"
    if job.t_distance not in ("equal", distance):
        return f"t_distance is {job.t_distance}, and was {distance}"
    hierarchies = _mapping(before.get("sensitive_hierarchy"))
    if job.t_distance == "hierarchical" and dict(job.sensitive_hierarchy) != dict(hierarchies):
        return "t is measured by other hierarchies"
    return ""


def _fewer_criteria(job: Job, before: Report, current: Report) -> Iterator[str]:
    """The criteria of installed packages that are asked for no longer, or less strictly."""
    listed = current.get("criteria")
    for added in listed if isinstance(listed, list) else ():
        key = _mapping(added).get("key")
        if not isinstance(key, str):
            continue
        asked = job.criteria.get(key)
        if asked is None:
            yield f"{key} is not set, and was"
            continue
        try:
            covered = asked.covers(type(asked).read(before.get(key), key))
        except JobError:  # the report is damaged, or that of another version of the package
            covered = False
        if not covered:
            yield f"{key} has other options, which promise less"


def _other_persons(job: Job, before: Report) -> str:
    entity = before.get("entity_id")
    if entity is None or job.entity_id == entity:
        return ""
    counted = "rows" if job.entity_id is None else f"persons by {job.entity_id!r}"
    return f"k counts {counted}, and counted persons by {entity!r}"


def _unlisted_published(job: Job, columns: Report) -> str:
    if job.unlisted == "publish" and columns.get("unlisted_policy") == "drop":
        return "columns that the job does not name are published, and were dropped"
    return ""


def _columns_exposed(job: Job, before: Report, columns: Report, has_criteria: bool) -> list[str]:
    """Columns that are published in more detail, or lose their diversity."""
    roles = {role: _names(columns, role) for role in _ROLES}
    published = columns.get("unlisted_policy") == "publish"
    levels = {
        **dict.fromkeys(roles["index"] | roles["identifiers"], _HIDDEN),
        **dict.fromkeys(roles["unlisted"], _RAW if published else _HIDDEN),
        **dict.fromkeys(roles["quasi_identifiers"], _GENERALIZED),
        **dict.fromkeys(roles["sensitive"], _SENSITIVE),
    }
    now = dict.fromkeys(roles["index"], _HIDDEN)
    now |= {
        name: _RAW if job.unlisted == "publish" else _HIDDEN for name in levels if name not in now
    }
    now |= dict.fromkeys(job.identifiers, _HIDDEN)
    now |= dict.fromkeys(job.quasi_identifier_names, _GENERALIZED)
    now |= dict.fromkeys(job.sensitive, _SENSITIVE)
    raw = [name for name, level in levels.items() if now[name] > max(level, _GENERALIZED)]
    named = [name for name in roles["identifiers"] if now[name] == _GENERALIZED]
    was_diverse = before.get("l") is not None or before.get("t") is not None or has_criteria
    alike = [name for name in roles["sensitive"] if was_diverse and now[name] == _GENERALIZED]
    return [
        _of(raw, "published raw, and protected before"),
        _of(named, "an identifier before, and now published as a quasi-identifier"),
        _of(alike, "no longer sensitive, so neither l nor t protects it"),
    ]


_ROLES = ("identifiers", "quasi_identifiers", "sensitive", "unlisted", "index")


def _of(names: Iterable[str], what: str) -> str:
    """Some columns and ``what`` they are, in words; empty where there are none."""
    in_order = sorted(names)
    if not in_order:
        return ""
    more = f" and {len(in_order) - MAX_NAMES} more" if len(in_order) > MAX_NAMES else ""
    return f"{', '.join(map(repr, in_order[:MAX_NAMES]))}{more}: {what}"


def _job_of(current: Report) -> Report:
    return _mapping(current.get("job"))


# Others may write where a report lies: entries of other types are ignored.


def _mapping(value: object) -> Report:
    return value if isinstance(value, Mapping) else {}


def _names(columns: Report, role: str) -> set[str]:
    names = columns.get(role)
    return {each for each in names if isinstance(each, str)} if isinstance(names, list) else set()


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]
