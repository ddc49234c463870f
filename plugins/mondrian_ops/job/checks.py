"""What no two options of a job may say together; each error names the option and the remedy."""

from __future__ import annotations

import re

from mondrian_ops.errors import did_you_mean
from mondrian_ops.job.job_options import JobOptions
from mondrian_ops.job.options import as_number, shown, wrong
from mondrian_ops.job.series_options import Series
from mondrian_ops.job.widths import widths_of

_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def check_options(job: JobOptions) -> None:
    """Raise JobError where options contradict each other, or a location is a template."""
    _check_locations(job)
    _check_columns(job)
    _check_diversity(job)
    _check_closeness(job)
    _check_criteria(job)
    _check_algorithm(job)
    _check_publication(job)
    if job.series is not None:
        _check_series(job, job.series)


def with_codes(job: JobOptions) -> frozenset[str]:
    """The sensitive columns whose texts are codes: 250.1 and 250.10 are two values.

    Those with a hierarchy, whose leaves say what is a value of its own; and that of a series which
    follows its persons, where texts with different bytes would tell them apart.
    """
    return frozenset(job.sensitive if job.follows_persons else job.sensitive_hierarchy)


def refuse_template(path: str, location: str | None) -> None:
    """Raise JobError if a location, that of the option at ``path``, holds a template's braces.

    Airflow has rendered all that it renders before a job is read.
    """
    template = _TEMPLATE.search(location or "")
    if template is not None:
        raise wrong(
            path,
            f"holds the template {shown(template[0])} as text; Airflow renders templates in the "
            "arguments of a task, not in a value from an XCom, a form or a file; render it in the "
            "task that returns the job, or give the job as an argument in the DAG",
        )


def _check_locations(job: JobOptions) -> None:
    refuse_template("input", job.input)
    refuse_template("output", job.output)
    for at, quasi in enumerate(job.quasi_identifiers):
        refuse_template(f"quasi_identifiers[{at}].hierarchy", quasi.hierarchy)
    for name, file in job.sensitive_hierarchy.items():
        refuse_template(f"sensitive_hierarchy.{name}", file)


def _check_columns(job: JobOptions) -> None:
    """Refuse a column that is named twice."""
    roles = {
        "identifiers": job.identifiers,
        "quasi_identifiers": job.quasi_identifier_names,
        "sensitive": job.sensitive,
    }
    seen: dict[str, tuple[str, str]] = {}
    for role, names in roles.items():
        for at, name in enumerate(names):
            is_entity = role == "identifiers" and name == job.entity_id and at == len(names) - 1
            path = "entity_id" if is_entity else f"{role}[{at}]"
            earlier, earlier_role = seen.setdefault(name, (path, role))
            if earlier == path:
                continue
            if earlier_role == role:
                raise wrong(path, f"column {name!r} is listed twice; remove one")
            raise wrong(
                path,
                f"column {name!r} is listed already, at {earlier}; a column is either an "
                "identifier, a quasi-identifier or sensitive; remove it from one of the two",
            )
    raw = {*job.sensitive} if job.unlisted == "drop" else {*job.sensitive, job.target} - {
        *job.identifiers, *job.quasi_identifier_names
    }  # fmt: skip
    if job.target is not None and job.target not in raw:
        raise wrong(
            "target",
            f"column {job.target!r} is not published as it is, so no model can be trained to "
            "predict it; name a sensitive column",
        )


def _check_diversity(job: JobOptions) -> None:
    if job.l is not None and job.diversity != "entropy" and job.l != int(job.l):
        raise wrong(
            "l",
            f"must be a whole number for {job.diversity} diversity, not {job.l}; or use entropy",
        )
    for name in widths_of(job.l_width):
        if name not in job.sensitive:
            hint = did_you_mean(name, job.sensitive) or "; list it under sensitive, or remove it"
            raise wrong(f"l_width.{name}", f"is not a sensitive column{hint}")
        if name in job.sensitive_hierarchy:
            raise wrong(
                f"l_width.{name}",
                "cannot be combined with sensitive_hierarchy of the same column, whose order need "
                "not be that of the numbers; remove one of the two",
            )
    if job.c is None and job.diversity == "recursive":
        raise wrong("c", "is required by diversity: recursive; set it, such as c: 3")


def _check_closeness(job: JobOptions) -> None:
    for name in job.sensitive_hierarchy:
        if name not in job.sensitive:
            hint = did_you_mean(name, job.sensitive) or (
                "; list it under sensitive, or remove it here"
            )
            raise wrong(f"sensitive_hierarchy.{name}", f"is not a sensitive column{hint}")
    for name in job.sensitive if job.t_distance == "hierarchical" else ():
        if not job.sensitive_hierarchy.get(name):
            raise wrong(
                f"sensitive_hierarchy.{name}",
                "is required by t_distance: hierarchical; name the hierarchy's file",
            )


def _check_criteria(job: JobOptions) -> None:
    """Refuse a criterion of a package where it cannot hold."""
    for name, asked in job.criteria.items():
        if not job.sensitive:
            raise wrong(name, "needs sensitive; list a column under sensitive, or remove it")
        level, least = asked.level, asked.min_class_size
        if isinstance(level, str) or as_number(level) is None:
            raise wrong(
                name,
                f"level of {type(asked).__name__} must be a finite number, not {shown(level)}; "
                "correct the criterion of the package",
            )
        if not isinstance(least, int) or isinstance(least, bool) or least < 1:
            raise wrong(
                name,
                f"min_class_size of {type(asked).__name__} must be a whole number of at least 1, "
                f"not {shown(least)}; correct the criterion of the package",
            )


def _check_algorithm(job: JobOptions) -> None:
    for at, attribute in enumerate(job.quasi_identifiers if job.recodes_globally else ()):
        if attribute.grid is not None:
            raise wrong(
                f"quasi_identifiers[{at}]",
                f"a grid is not available with algorithm: {job.algorithm}; use a ladder",
            )
        if attribute.open_ends or attribute.scale != "linear":
            what = "scale" if attribute.scale != "linear" else attribute.open_ends.split()[0]
            raise wrong(
                f"quasi_identifiers[{at}].{what}",
                f"is not available with algorithm: {job.algorithm}; use mondrian, or a ladder",
            )
    name = job.needs_all_rows
    rows = {"samarati": job.samarati.max_suppressed, "mondrian": job.mondrian.max_suppressed}
    if rows.get(job.algorithm) and name:
        raise wrong(
            f"{job.algorithm}.max_suppressed",
            f"cannot be combined with {name}: {name} compares each class with the whole release, "
            f"and suppressing rows changes that; set 0, or remove {name}",
        )
    least = job.tds.k_intermediate
    if least is not None and least < job.k:
        raise wrong(
            "tds.k_intermediate",
            f"must be a whole number of at least {job.k}, not {least}; the first phase may not be "
            "less strict than k",
        )


def _check_publication(job: JobOptions) -> None:
    lists = job.set_style == "list"
    if lists and (job.follows_persons or str(job.output).startswith("iceberg:")):
        what = "series.protect: intersection" if job.follows_persons else "a table of Iceberg"
        raise wrong("set_style", f"{what} has no sets as lists; use text")
    limits = ("max_gcp", "max_risk", "max_query_error", "max_suppressed")
    if job.on_exceeded == "ask" and all(getattr(job, name) is None for name in limits):
        raise wrong(
            "on_exceeded",
            f"ask needs a limit; set {', '.join(limits)}, or require_approval: true to be asked "
            "about every release",
        )


def _check_series(job: JobOptions, series: Series) -> None:
    """Refuse what a series cannot do with the rest of the job."""
    if job.recodes_globally:
        raise wrong(
            "series",
            f"is not available with algorithm: {job.algorithm}; use mondrian or di_mondrian",
        )
    if series.hold_nights and series.kind == "snapshots":
        raise wrong(
            "series.hold_nights",
            "applies only to kind: increments, because the next snapshot brings each row again; "
            "remove hold_nights",
        )
    if job.mondrian.max_suppressed and (series.hold_nights or job.follows_persons):
        raise wrong(
            "mondrian.max_suppressed",
            "cannot be combined with series.hold_nights, whose rows wait instead, nor with "
            "series.protect, which follows all persons; set 0, or remove the other",
        )
    if series.hold_above is not None and (name := job.needs_all_rows):
        raise wrong(
            "series.hold_above",
            f"cannot be combined with {name}: {name} compares each class with the whole release, "
            "and rows that wait change that; remove one of the two",
        )
    if job.compares_people:
        _refuse_people_of_several_nights(job, series)
    if series.protect == "intersection":
        _check_intersection(job, series)


def _refuse_people_of_several_nights(job: JobOptions, series: Series) -> None:
    """Refuse to compare people where they are in several nights of the series by design."""
    shared = {
        "hold_nights": series.hold_nights,
        "kind: snapshots": series.kind == "snapshots",
        "protect: intersection": series.protect == "intersection",
    }
    if name := next((name for name, is_set in shared.items() if is_set), None):
        raise wrong(
            "overlap",
            f"{job.overlap} cannot be combined with series.{name}, by which a person is in several "
            "nights; remove one of the two",
        )


def _check_intersection(job: JobOptions, series: Series) -> None:
    problem = (
        "entity_id, which tells persons apart; set it"
        if job.entity_id is None
        else "exactly one sensitive column; list one under sensitive"
        if len(job.sensitive) != 1
        else "l, the number of sensitive values that remain; set it, such as l: 2"
        if job.l is None
        else "diversity: distinct; change it"
        if job.diversity != "distinct"
        else "no l_width, which its classes do not follow; remove l_width"
        if job.l_width
        else "no t, which its classes do not follow; remove t"
        if job.t is not None
        else f"no {next(iter(job.criteria))}, which its classes do not follow; remove it"
        if job.criteria
        else "algorithm: mondrian, for it forms its classes by a search of its own; change it"
        if job.algorithm != "mondrian"
        else ""
    )
    if problem:
        raise wrong("series.protect", f"intersection needs {problem}")
    if series.subtraction == "protect" and series.unmatched != "counterfeit":
        raise wrong(
            "series.subtraction",
            "protect makes up rows in the place of people who left; set unmatched: counterfeit",
        )
    if series.unmatched == "wait" and series.kind == "increments" and not series.hold_nights:
        raise wrong(
            "series.unmatched",
            "wait needs hold_nights, or no row may wait; set it, or unmatched: suppress",
        )
