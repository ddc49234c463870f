"""Read a release for work: its generalized columns in a form to compute with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from mondrian_ops import publish, stores
from mondrian_ops.errors import InputError, did_you_mean
from mondrian_ops.job.quasi_identifier import CALENDAR
from mondrian_ops.reading.columns import Categories, Intervals
from mondrian_ops.verify.loss import columns_of

Form = Literal["midpoint", "bounds", "sets", "weights", "sample"]
Kind = Literal["pandas", "polars", "arrow"]

_MOST_SHARES = 1000
_WHOLE = ("integer", "date")


def read_release(
    path: str | os.PathLike[str],
    as_: Form = "midpoint",
    *,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, str | os.PathLike[str]] | None = None,
    kind: Kind = "pandas",
    seed: int | None = None,
) -> Any:
    """The rows of a release, with its generalized columns as ``as_`` says; all others unchanged.

    ==========  ===========================  ================================================
    ``as_``     an interval ``[25, 30]``     a set, prefix or node ``{France, Italy}``
    ==========  ===========================  ================================================
    midpoint    ``27.5``                     its text
    bounds      ``age_min``, ``age_max``     its text
    sets        ``27.5``                     the list of its values
    weights     ``27.5``                     a column ``country=France`` per value, with its
                                             share, here 0.5
    sample      a value drawn from it        a value drawn from it
    ==========  ===========================  ================================================

    What is hidden (``*``) has no number, may be each value of its column, and is drawn as those of
    other rows are; missing values stay missing.

    Args:
        path: the release's directory, with its ``_report.json``; any store.
        columns: those to read, by the names that the job has for them; all by default.
        hierarchies: by column, the file of its hierarchy; without it a node is one value, and its
            leaves are not known. A prefix is always one value.
        kind: what is returned: a pandas or polars DataFrame, or a pyarrow.Table.
        seed: makes ``sample`` repeatable.

    Raises:
        InputError: there is no release with a report, a column is not in it, its labels cannot be
            read, or the form would make a column that the release has already.
        HierarchyError: a hierarchy cannot be read.
    """
    for option, value, known in (("as_", as_, get_args(Form)), ("kind", kind, get_args(Kind))):
        if value not in known:
            hint = did_you_mean(str(value), known)
            raise InputError(f"{option}: {value!r} is none of {', '.join(known)}{hint}")
    url = os.fspath(path)
    reader = Reader(url, as_, hierarchies or {}, np.random.default_rng(seed))
    return _of_kind(reader.read(columns), kind)


class Reader:
    """Reads one release in one form.

    By column: how its ``generalizations`` are named, the job's ``options``, the ``trees`` that are
    given, and the ``steps`` of grids that the values decided.
    """

    def __init__(
        self,
        url: str,
        form: Form,
        hierarchies: Mapping[str, str | os.PathLike[str]],
        draw: np.random.Generator | None = None,
    ) -> None:
        report = publish.report_of(url) or {}
        if not {"attributes", "job"} <= report.keys():
            raise InputError(
                f"{stores.shown(url)}: no _report.json of a release, by which it is read; name the "
                "directory of a release"
            )
        self._url, self._form = url, form
        self._draw = np.random.default_rng() if draw is None else draw
        attributes = report["attributes"]
        self.generalizations = {name: each["generalization"] for name, each in attributes.items()}
        self.steps = {name: each["grid"] for name, each in attributes.items() if each.get("grid")}
        self._types = report.get("source", {}).get("types", {})
        self.options = {each["name"]: each for each in report["job"]["quasi_identifiers"]}
        self._bounds = report["job"].get("interval_style") == "bounds"
        self._refuse_unknown(hierarchies, "hierarchies")
        self.trees = {
            name: stores.read_hierarchy(os.fspath(file)) for name, file in hierarchies.items()
        }

    def read(self, columns: Sequence[str] | None) -> pa.Table:
        """The release as a table."""
        table = self.published()
        pairs = self._pairs(table.schema)
        names = [pairs.get(name, name) for name in table.column_names]
        names = list(dict.fromkeys(names))  # age_min and age_max are one: age
        if columns is not None:
            self._refuse_unknown(columns, "columns", names)
            names = list(dict.fromkeys(columns))
        read: dict[str, Any] = {}
        for name in names:
            made = self._column(table, name)
            if twice := made.keys() & read.keys():
                raise InputError(
                    f"columns: {min(twice)!r} is a column of the release and would be made of "
                    "another one, too; leave one of the two out, or choose another form"
                )
            read |= made
        return pa.table(read)

    def published(self) -> pa.Table:
        """The rows as they are published."""
        batches = [batch for file in publish.release_files(self._url) for batch in file.batches()]
        return pa.Table.from_batches(batches).unify_dictionaries()

    def _pairs(self, published: pa.Schema) -> dict[str, str]:
        """The column that each of two bounds, and what is hidden, belongs to."""
        ends = {
            end: name
            for name in self.generalizations
            if self._bounds and name not in published.names
            for end in columns_of(name, published)
        }
        return {end: name for end, name in ends.items() if end in published.names}

    def _column(self, table: pa.Table, name: str) -> dict[str, Any]:
        how = self.generalizations.get(name)
        if how is None:
            return {name: _plain(table[name])}
        options, whole = self.options[name], self._types.get(name) in _WHOLE
        if name not in table.column_names:
            low, high, *hidden = (table[each] for each in columns_of(name, table.schema))
            is_open = "grid" in options or name in self.steps
            return self._interval(
                name, Intervals.of_bounds(low, high, next(iter(hidden), None), whole, is_open)
            )
        if "order" in options:
            if self._form in ("midpoint", "bounds"):
                return {name: _plain(table[name])}
            return self._category(name, Categories.in_order(table[name], options["order"]))
        ladder = next(iter(options.get("ladder", ())), None)
        if how == "hierarchy" and isinstance(ladder, str) and ladder in CALENDAR:
            return self._interval(name, Intervals.of_calendar(name, table[name]))
        is_widths = how == "hierarchy" and ladder is not None and not isinstance(ladder, str)
        if how == "interval" or is_widths:
            return self._interval(name, Intervals.of_labels(name, table[name], whole))
        if self._form in ("midpoint", "bounds"):
            return {name: _plain(table[name])}
        return self._category(name, Categories.of_labels(table[name], how, self.trees.get(name)))

    def _interval(self, name: str, read: Intervals) -> dict[str, Any]:
        if self._form == "bounds":
            return {f"{name}_min": read.low, f"{name}_max": read.high}
        if self._form == "sample":
            return {name: _filled(read.drawn(self._draw), read.hidden, self._draw)}
        return {name: read.middle}

    def _category(self, name: str, read: Categories) -> dict[str, Any]:
        if self._form == "sets":
            return {name: read.lists}
        if self._form == "sample":
            return {name: read.drawn(self._draw)}
        if len(read.domain) > _MOST_SHARES:
            raise InputError(
                f"column {name!r}: has more than {_MOST_SHARES:,} values, each of which would "
                "become a column; read it as sets, or leave it out of columns"
            )
        shares = read.shares()
        return {
            f"{name}={value}": shares[:, at] for at, value in enumerate(read.domain.to_pylist())
        }

    def _refuse_unknown(
        self, asked: Iterable[str], option: str, known: Sequence[str] | None = None
    ) -> None:
        names = list(self.generalizations) if known is None else known
        for name in asked:
            if name not in names:
                raise InputError(
                    f"{option}: the release has no column {name!r}{did_you_mean(name, names)}"
                )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as its values are, and not as they are stored."""
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def _filled(values: pa.Array, hidden: np.ndarray[Any, Any], draw: np.random.Generator) -> pa.Array:
    """Values, those of hidden rows drawn among the others'."""
    known = values.drop_null()
    if not hidden.any() or not len(known):
        return values
    place = np.arange(len(values))
    place[hidden] = len(values) + draw.integers(0, len(known), int(hidden.sum()))
    return pa.concat_arrays([values, known]).take(pa.array(place))


def _of_kind(table: pa.Table, kind: Kind) -> Any:
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    try:
        import polars
    except ImportError:
        raise InputError("kind: polars is not installed; install it, or take arrow") from None
    return polars.from_arrow(table)
