"""Whether a release may take the place of the one that is at its output.

Readers rely on what a release promises, and on who makes it. So it is replaced only by its maker,
the same task group of the same DAG, and only by a release that promises no less; anything else
needs ``replace: any``. The report of a release says what it promises, and who made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mondrian_ops import report as reports
from mondrian_ops import storage
from mondrian_ops.core.errors import StorageError
from mondrian_ops.core.job import Job
from mondrian_ops.report.statements import MAX_NAMES, maker, promise

__all__ = ["refuse_replacing", "replaced_by", "standing_report", "weaknesses"]

# How much of a column is published, in ascending order.
_HIDDEN, _GENERALIZED, _SENSITIVE, _RAW = range(4)

Report = Mapping[str, Any]


def refuse_replacing(job: Job, made_by: str | None) -> None:
    """Refuse to replace a release of another maker, or one that promises more.

    ``made_by``: who makes the new one, None for the command line and Python. A release of a version
    that did not note its maker may be anybody's.

    Raises StorageError, which names whose it is and what is weaker.
    """
    standing = None if job.replace == "any" else standing_report(str(job.output))
    if standing is None:
        return
    reasons = weaknesses(job, standing)
    if standing.get("made_by", made_by) != made_by:
        reasons.insert(0, "it is not of the same maker")
    if reasons:
        whose = f"of {maker(standing['made_by'])} " if "made_by" in standing else ""
        raise StorageError(
            f"output: {storage.shown(str(job.output))} holds a release {whose}with "
            f"{promise(_asked(standing))}, and one of {maker(made_by)} with "
            f"{promise(job.to_dict())} does not replace it: {'; '.join(reasons)}; choose another "
            "`output`, or set replace: any"
        )


def replaced_by(job: Job) -> dict[str, Any]:
    """What is told of the release that this one would replace; empty where there is none."""
    standing = standing_report(str(job.output))
    if standing is None:
        return {}
    asked = _asked(standing)
    told = {key: asked[key] for key in ("k", "l", "t") if asked.get(key) is not None}
    return {key: standing[key] for key in ("made_by", "created") if key in standing} | told


def standing_report(output: str) -> Report | None:
    """The report of the release at ``output``; None where there is none."""
    try:
        found = reports.parsed(storage.read_file(storage.joined(output, reports.JSON_NAME)))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def weaknesses(job: Job, standing: Report) -> list[str]:
    """In what a release of ``job`` protects less than the one of this report; none: in nothing.

    Compared are k and what it counts, l, t, and what is published of the columns of the other one.
    How a quasi-identifier is generalized is not: classes are as large either way.
    """
    asked, columns = _asked(standing), _mapping(standing.get("columns"))
    checks = (
        _smaller_k(job, asked),
        _less_diverse(job, asked),
        _less_close(job, asked),
        _other_persons(job, asked),
        _unlisted_published(job, columns),
        *_columns_exposed(job, asked, columns),
    )
    return [reason for reason in checks if reason]


def _smaller_k(job: Job, asked: Report) -> str:
    k = _number(asked.get("k"))
    return "" if k is None or job.k >= k else f"k is {job.k}, and was {k:g}"


def _less_diverse(job: Job, asked: Report) -> str:
    """Entropy and recursive diversity with some l include the distinct one; not each other."""
    l, kind, c = _number(asked.get("l")), asked.get("diversity", "distinct"), asked.get("c")  # noqa: E741
    if l is None:
        return ""
    if job.l is None:
        return f"no l is asked for, and l was {l:g}"
    if job.l < l:
        return f"l is {job.l:g}, and was {l:g}"
    if job.missing_sensitive == "value" and asked.get("missing_sensitive") != "value":
        return "missing sensitive values count towards l, and did not"
    if kind not in ("distinct", job.diversity):
        return f"diversity is {job.diversity}, and was {kind}"
    limit = _number(c)
    if limit is not None and job.c is not None and job.c > limit:
        return f"c is {job.c:g}, and was {limit:g}"
    return ""


def _less_close(job: Job, asked: Report) -> str:
    """No two distributions are further apart by another distance than by the equal one."""
    t, distance = _number(asked.get("t")), asked.get("t_distance", "equal")
    if t is None:
        return ""
    if job.t is None:
        return f"no t is asked for, and t was {t:g}"
    if job.t > t:
        return f"t is {job.t:g}, and was {t:g}"
    if job.t_distance not in ("equal", distance):
        return f"t_distance is {job.t_distance}, and was {distance}"
    hierarchies = _mapping(asked.get("sensitive_hierarchy"))
    if job.t_distance == "hierarchical" and dict(job.sensitive_hierarchy) != dict(hierarchies):
        return "t is measured by other hierarchies"
    return ""


def _other_persons(job: Job, asked: Report) -> str:
    entity = asked.get("entity_id")
    if entity is None or job.entity_id == entity:
        return ""
    counted = "rows" if job.entity_id is None else f"persons by {job.entity_id!r}"
    return f"k counts {counted}, and counted persons by {entity!r}"


def _unlisted_published(job: Job, columns: Report) -> str:
    if job.unlisted == "publish" and columns.get("unlisted_policy") == "drop":
        return "columns that the job does not name are published, and were dropped"
    return ""


def _columns_exposed(job: Job, asked: Report, columns: Report) -> list[str]:
    """Columns of which more is published, or that lose their diversity."""
    roles = {role: _names(columns, role) for role in _ROLES}
    published = columns.get("unlisted_policy") == "publish"
    before = {
        **dict.fromkeys(roles["index"] | roles["identifiers"], _HIDDEN),
        **dict.fromkeys(roles["unlisted"], _RAW if published else _HIDDEN),
        **dict.fromkeys(roles["quasi_identifiers"], _GENERALIZED),
        **dict.fromkeys(roles["sensitive"], _SENSITIVE),
    }
    now = dict.fromkeys(roles["index"], _HIDDEN)
    now |= {
        name: _RAW if job.unlisted == "publish" else _HIDDEN for name in before if name not in now
    }
    now |= dict.fromkeys(job.identifiers, _HIDDEN)
    now |= dict.fromkeys(job.quasi_identifier_names, _GENERALIZED)
    now |= dict.fromkeys(job.sensitive, _SENSITIVE)
    raw = [name for name, was in before.items() if now[name] > max(was, _GENERALIZED)]
    named = [name for name in roles["identifiers"] if now[name] == _GENERALIZED]
    was_diverse = asked.get("l") is not None or asked.get("t") is not None
    alike = [name for name in roles["sensitive"] if was_diverse and now[name] == _GENERALIZED]
    return [
        _of(raw, "published raw, and protected before"),
        _of(named, "an identifier before, and now published as a quasi-identifier"),
        _of(alike, "no longer sensitive, so that neither l nor t is asked of it"),
    ]


_ROLES = ("identifiers", "quasi_identifiers", "sensitive", "unlisted", "index")


def _of(names: Iterable[str], what: str) -> str:
    """``what`` of some columns in words; empty where there are none."""
    found = sorted(names)
    if not found:
        return ""
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"{', '.join(map(repr, found[:MAX_NAMES]))}{more}: {what}"


def _asked(standing: Report) -> Report:
    return _mapping(standing.get("job"))


# A report lies where others may write: what makes no sense in it says nothing.


def _mapping(value: object) -> Report:
    return value if isinstance(value, Mapping) else {}


def _names(columns: Report, role: str) -> set[str]:
    found = columns.get(role)
    return {each for each in found if isinstance(each, str)} if isinstance(found, list) else set()


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]
