"""A pandas.DataFrame as a table of its caller; imported only where there is one.

A column that is published as it is consists of the caller's own values, taken row by row, so it
keeps its dtype.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from mondrian_ops.data.encoding import value_type
from mondrian_ops.errors import InputError
from mondrian_ops.tables.callers_table import (
    CallersTable,
    name_of,
    plain,
    readable,
    refuse_duplicates,
    unreadable,
)

_CLOCK = {"Milli": "ms", "Micro": "us", "Nano": "ns"}  # frequencies below a second


class PandasFrame(CallersTable):
    """A pandas.DataFrame; a level of its index is a column where the job names it.

    A column is called by the text of its label: ``0`` and ``"0"`` are both called 0.
    """

    kind = "pandas.DataFrame"
    by_rows = True

    def __init__(self, frame: pd.DataFrame, named: Collection[str]) -> None:
        self._labels = frame.columns
        at: dict[str, int] = {}
        refuse_duplicates([name_of(label) for label in frame.columns if isinstance(label, str)])
        for number, label in enumerate(frame.columns):
            name = name_of(label)
            if name in at:
                raise InputError(
                    f"columns {frame.columns[at[name]]!r} and {label!r} are both called {name!r} "
                    "in a job; rename one of the two"
                )
            at[name] = number
        levels = {name: number for name, number in _levels(frame.index).items() if name not in at}
        self.index = [name for name in levels if name not in named]
        self._series: dict[str, pd.Series] = {
            name: frame.index.get_level_values(number).to_series(index=range(len(frame)))
            for name, number in levels.items()
            if name in named
        }
        self._label: dict[str, Hashable] = {
            name: _padded(_or_name(frame.index.names[levels[name]], name), frame.columns)
            for name in self._series
        }
        for name, number in at.items():
            self._series[name] = frame.iloc[:, number]
            self._label[name] = frame.columns[number]
        self.names = list(self._series)
        self.rows = len(frame)

    def column(self, name: str) -> pa.ChunkedArray:
        return _read(self._series[name], name)

    def returned(self, released: pa.Table, raw: Collection[str], numbers: Any) -> pd.DataFrame:
        columns: list[Any] = []
        labels: list[Hashable] = []
        for name, column in zip(released.column_names, released.columns, strict=True):
            if name in raw:
                columns.append(_raw(name, column, self._series[name], numbers))
                labels.append(self._label[name])
                continue
            source, end = (name, "") if name in self._series else _split(name)
            is_text = pa.types.is_string(value_type(column.type))
            columns.append((_text if is_text else _nullable)(column, self._series[source].dtype))
            labels.append(_with_suffix(self._label[source], end) if end else self._label[source])
        frame = pd.DataFrame(dict(enumerate(columns)), index=range(released.num_rows))
        frame.columns = _index_of(labels, self._labels)
        return frame

    def read_back(self, returned: Any, schema: pa.Schema) -> pa.Table:
        columns = [
            _read(returned.iloc[:, at], field.name, field.type) for at, field in enumerate(schema)
        ]
        return pa.table(columns, schema=schema)


def _levels(index: pd.Index) -> Mapping[str, int]:
    """What a job calls the levels of an index, as `reset_index` does; not the plain row number."""
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return {}
    unnamed = "level_{}" if index.nlevels > 1 else "index"
    named = [
        unnamed.format(at) if name is None else name_of(name) for at, name in enumerate(index.names)
    ]
    refuse_duplicates(named)
    return {name: at for at, name in enumerate(named)}


def _or_name(label: Hashable, name: str) -> Hashable:
    return name if label is None else label


def _padded(label: Hashable, columns: pd.Index) -> Hashable:
    """A label of a level as one of the columns, which may have several levels themselves."""
    if columns.nlevels == 1 or isinstance(label, tuple):
        return label
    return (label, *[""] * (columns.nlevels - 1))


def _split(name: str) -> tuple[str, str]:
    """The quasi-identifier that a column publishes, and its ending, ``_min``."""
    source, _, end = name.rpartition("_")
    return source, f"_{end}"


def _with_suffix(label: Hashable, suffix: str) -> Hashable:
    if not isinstance(label, tuple):
        return f"{label}{suffix}"
    last = max((at for at, part in enumerate(label) if part != ""), default=0)
    return (*label[:last], f"{label[last]}{suffix}", *label[last + 1 :])


def _index_of(labels: list[Hashable], columns: pd.Index) -> pd.Index:
    if columns.nlevels > 1:
        return pd.MultiIndex.from_tuples(labels, names=columns.names)
    return pd.Index(labels, name=columns.name, tupleize_cols=False)


def _read(series: pd.Series, name: str, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    """A column in a plain type: that of its values, or ``kind``."""
    with readable(name, series.dtype):
        column = _arrow_of(series, name, kind)
        column = plain(pa.chunked_array([column]) if isinstance(column, pa.Array) else column)
        return column if kind is None else column.cast(kind)


def _arrow_of(series: pd.Series, name: str, kind: pa.DataType | None) -> Any:
    dtype = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return pa.array(series)
    if isinstance(dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    elif isinstance(dtype, pd.CategoricalDtype):
        values = _read(pd.Series(dtype.categories), name).combine_chunks()
        codes = series.cat.codes.to_numpy()
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=bool(dtype.ordered))
    elif isinstance(dtype, pd.PeriodDtype):
        return _starts(series.array, _clock(dtype))
    elif isinstance(dtype, pd.IntervalDtype):
        return pa.array([None if part is pd.NaT or part != part else str(part) for part in series])
    elif pd.api.types.is_object_dtype(dtype):
        inferred = series.infer_objects()
        if inferred.dtype.kind in "mM" or isinstance(
            inferred.dtype, pd.PeriodDtype | pd.IntervalDtype
        ):
            return _arrow_of(inferred, name, kind)
        column = _array(series, kind)
        _refuse_mixture(series, name, column.type)
        return column
    return pa.array(series, from_pandas=True)


def _array(objects: pd.Series, kind: pa.DataType | None) -> Any:
    """Python objects in the type that they had before, or else in the one that they show."""
    if kind is not None:
        with suppress(pa.ArrowException):
            return pa.array(objects, type=kind, from_pandas=True)
    return pa.array(objects, from_pandas=True)


def _refuse_mixture(series: pd.Series, name: str, kind: pa.DataType) -> None:
    """Refuse values of several types of which Arrow would make one: dates of times, say."""
    if pa.types.is_temporal(kind):
        kinds = {
            (isinstance(value, datetime), getattr(value, "tzinfo", None) is None)
            for value in series.dropna()
        }
        if len({has_time for has_time, _ in kinds}) > 1:
            raise InputError(
                f"column {name!r}: holds dates (datetime.date) and dates with a time "
                "(datetime.datetime); make all of them dates, or all datetimes"
            )
        if len(kinds) > 1:
            raise InputError(
                f"column {name!r}: holds times with a time zone and times without one, which "
                "cannot be compared; give all of them a time zone, or none"
            )
    elif pa.types.is_binary(kind) and len({type(value) for value in series.dropna()}) > 1:
        raise unreadable(name, series.dtype)


def _clock(dtype: pd.PeriodDtype) -> str:
    """The unit in which the start of a period is counted: days, or parts of one."""
    freq = dtype.freq
    if isinstance(freq, pd.offsets.Tick) and not isinstance(freq, pd.offsets.Day):
        return _CLOCK.get(type(freq).__name__, "s")
    return "D"


def _starts(periods: Any, unit: str) -> pa.Array:
    """The first day, or moment, of each period: one for one, and in the same order."""
    starts = periods.asfreq(unit, how="start").asi8
    missing = np.asarray(periods.isna())
    if unit == "D":
        days = np.where(missing, 0, starts).astype(np.int32)
        return pa.array(days, pa.date32(), mask=missing)
    return pa.array(starts, mask=missing).cast(pa.timestamp(unit))


def _raw(name: str, column: pa.ChunkedArray, series: pd.Series, numbers: Any) -> Any:
    """The caller's values in some rows, with nothing that tells of other rows."""
    if isinstance(series.dtype, pd.ArrowDtype):
        kind = series.dtype.pyarrow_dtype
        with readable(name, series.dtype):
            if pa.types.is_dictionary(kind):
                column = column.dictionary_encode().unify_dictionaries()
            return pd.arrays.ArrowExtensionArray(column.cast(kind))
    taken = series.take(numbers).reset_index(drop=True)
    is_category = isinstance(taken.dtype, pd.CategoricalDtype)
    return _categories_of(taken, series) if is_category else taken


def _categories_of(taken: pd.Series, source: pd.Series) -> pd.Series:
    """The rows without the categories of rows that are left out.

    Categories in an order stay in it, and those of no row at all stay, too. Without one, categories
    are the values that occur, sorted: often they are in the order of the source's rows.
    """
    categories = taken.dtype.categories
    codes = taken.cat.codes.unique()
    if taken.dtype.ordered:
        gone = np.setdiff1d(source.cat.codes.unique(), codes)
        return taken.cat.remove_categories(categories[gone[gone >= 0]])
    return taken.cat.set_categories(categories[codes[codes >= 0]].sort_values())


def _text(column: pa.ChunkedArray, dtype: Any) -> Any:
    """Text in the dtype of the source's column if that is of text, else as pandas has text."""
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        kind = kind if is_text else pa.string()
        return pd.arrays.ArrowExtensionArray(_plain_text(column).cast(kind))
    if not isinstance(dtype, pd.StringDtype) and not pd.api.types.is_object_dtype(dtype):
        dtype = pd.Series([""]).dtype  # object in pandas 2, str in pandas 3
    if pd.api.types.is_object_dtype(dtype):
        return pd.Series(_objects(column), dtype=object)  # of an array pandas 3 would make str
    return dtype.__from_arrow__(_plain_text(column))


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _objects(column: pa.ChunkedArray) -> Any:
    """Text as Python's, each text once."""
    parts = [np.zeros(0, object)]
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        texts = np.append(chunk.dictionary.to_numpy(zero_copy_only=False), [None])
        parts.append(texts[chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy()])
    return np.concatenate(parts)


def _nullable(column: pa.ChunkedArray, dtype: Any) -> Any:
    """Ends of intervals, say, in a dtype of the source's kind that can hold a missing value."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(column)
    if isinstance(dtype, pd.PeriodDtype) and column.type == _starts_type(dtype):
        return _periods(column, dtype)
    kind = column.type
    if pa.types.is_integer(kind):
        return pd.array([], dtype=_integers(kind)).dtype.__from_arrow__(column)
    if isinstance(dtype, pd.Float32Dtype | pd.Float64Dtype) and pa.types.is_floating(kind):
        return pd.array([], dtype=f"Float{kind.bit_width}").dtype.__from_arrow__(column)
    return column.to_pandas()


def _integers(kind: pa.DataType) -> str:
    return f"{'UInt' if pa.types.is_unsigned_integer(kind) else 'Int'}{kind.bit_width}"


def _starts_type(dtype: pd.PeriodDtype) -> pa.DataType:
    unit = _clock(dtype)
    return pa.date32() if unit == "D" else pa.timestamp(unit)


def _periods(starts: pa.ChunkedArray, dtype: pd.PeriodDtype) -> Any:
    """The periods that begin at some moments."""
    unit = _clock(dtype)
    counts = starts.cast(pa.int32() if unit == "D" else pa.int64()).cast(pa.int64())
    missing = starts.is_null().to_numpy()
    ordinals = counts.fill_null(0).to_numpy().copy()
    ordinals[missing] = pd.NaT._value
    return pd.arrays.PeriodArray(ordinals, dtype=pd.PeriodDtype(unit)).asfreq(dtype.freq)
