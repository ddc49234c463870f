"""Raw rows as a release would show them, for models that are trained on the release."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops.errors import InputError, did_you_mean
from mondrian_ops.job.job import Job
from mondrian_ops.reading.columns import Categories
from mondrian_ops.reading.release import Reader
from mondrian_ops.verify.arrays import decoded
from mondrian_ops.verify.labels import labels_of_job
from mondrian_ops.verify.loss import columns_of
from mondrian_ops.verify.quoted_texts import as_texts
from mondrian_ops.verify.scales import written

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise InputError("Generalizer: scikit-learn is not installed; install it") from None

_BLOCK = 1 << 22  # pairs of a row and a class that are compared at once

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Generalizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer: raw rows become what the release shows of rows like them.

    A row gets the features of the classes whose labels cover its values; of several their mean, by
    the rows that each has. If none does, those count that cover most of its columns. An interval of
    numbers or dates is its middle (days since 1970), a set, prefix or node a share for each of its
    values, as in `read_release`; what is hidden is NaN, or equal shares.

    ``training`` gives the rows of the release with the same features, to fit a model on.

    Args:
        path: the release's directory, with its ``_report.json``; any store.
        hierarchies: by column, the file of its hierarchy; needed for columns that have one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        hierarchies: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> None:
        self.path = path
        self.hierarchies = hierarchies

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: N803 - scikit-learn's names
        """Read the release; ``X`` and ``y`` are ignored.

        Raises InputError where there is no release with a report, or a hierarchy is not given.
        """
        reader = Reader(os.fspath(self.path), "weights", self.hierarchies or {})
        for name, how in reader.generalizations.items():
            options = reader.options[name]
            if how == "hierarchy" and "ladder" not in options and name not in reader.trees:
                raise InputError(
                    f"hierarchies: column {name!r} is generalized by a hierarchy; give its file, "
                    f"hierarchies={{{name!r}: ...}}"
                )
        self._reader, self._table = reader, reader.published()
        names = list(reader.generalizations)
        self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = len(names)
        self._labels, label_of = {}, []
        for name in names:
            arrays = [
                decoded(as_texts(self._table[each]))
                for each in columns_of(name, self._table.schema)
            ]
            self._labels[name], of_rows = _distinct(arrays)
            label_of.append(of_rows)
        rows = np.stack(label_of)
        classes, first, self._class_of, self._sizes = np.unique(
            rows, axis=1, return_index=True, return_inverse=True, return_counts=True
        )
        self._label_of_class = dict(zip(names, classes, strict=True))
        features = reader.read(names)
        self._names = features.column_names
        self._features = np.stack([_numbers(column) for column in features.columns], axis=1)[first]
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features, as `read_release` names them."""
        check_is_fitted(self)
        return np.array(self._names, object)

    def training(self, target: str) -> tuple[Floats, NDArray[Any]]:
        """The features (rows, features) of the release's rows, and the values of ``target``.

        ``target`` is a column that the release publishes as it is, such as a sensitive one.
        """
        check_is_fitted(self)
        labels = {each for name in self._labels for each in columns_of(name, self._table.schema)}
        published = [name for name in self._table.column_names if name not in labels]
        if target not in published:
            hint = did_you_mean(target, published)
            raise InputError(f"target: the release publishes no column {target!r} as it is{hint}")
        values = decoded(self._table[target]).to_numpy(zero_copy_only=False)
        return self._features[self._class_of.ravel()], values

    def transform(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """(rows, features) of raw rows: a DataFrame or an Arrow table with the columns that the
        release generalizes, others are ignored.

        Raises InputError where a column is missing, or of another type than in the release.
        """
        check_is_fitted(self)
        covered, value_of = [], []
        for name in self._labels:
            values, place = _coded(_column(X, name), name)
            covered.append(self._covered(name, values)[self._label_of_class[name]])
            value_of.append(place)
        shown = ~np.isnan(self._features)
        known, rows = np.where(shown, self._features, 0.0), len(value_of[0])
        found = np.empty((rows, len(self._names)))
        size = max(1, _BLOCK // max(1, len(self._sizes)))
        for start in range(0, rows, size):
            here = slice(start, start + size)
            fits = np.zeros((len(value_of[0][here]), len(self._sizes)), np.int16)
            for of_column, place in zip(covered, value_of, strict=True):
                fits += of_column[:, place[here]].T
            weight = (fits == fits.max(axis=1, keepdims=True)) * self._sizes
            with np.errstate(invalid="ignore"):
                found[here] = (weight @ known) / (weight @ shown)
        return found

    def _covered(self, name: str, values: pa.Array) -> NDArray[np.bool_]:
        """(labels, values) whether each label covers each of some raw values."""
        reader, labels = self._reader, self._labels[name]
        how, options = reader.generalizations[name], dict(reader.options[name])
        options["generalization"] = how
        if name in reader.steps:
            options["grid"] = reader.steps[name]
        if how == "hierarchy" and "ladder" not in options:
            options.setdefault("hierarchy", "given")
        job = Job.from_dict({"k": 2, "quasi_identifiers": [options]}, paths_required=False)
        domain = values.drop_null()
        if how == "set":
            members = Categories.of_labels(pa.chunked_array(labels), how, None).domain
            domain = pa.concat_arrays([members, written(domain)]).unique()
        elif len(domain):
            domain = domain.take(pc.array_sort_indices(domain))
        size = len(labels[0]), len(values)
        pairs = np.divmod(np.arange(size[0] * size[1]), max(1, size[1]))
        try:
            reads = labels_of_job(job, {name: values.type}, {name: domain}, {}, reader.trees)[name]
            return reads.covers(labels, values, *pairs).reshape(size)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise InputError(
                f"column {name!r}: its values of type {values.type} cannot be compared with the "
                "release's labels; convert them to the type that they had when it was made"
            ) from None


def _column(table: Any, name: str) -> pa.Array:
    """A column of a DataFrame or an Arrow table."""
    names = table.column_names if isinstance(table, pa.Table) else list(table.columns)
    if name not in names:
        raise InputError(f"X: has no column {name!r}{did_you_mean(name, list(map(str, names)))}")
    if isinstance(table, pa.Table):
        return decoded(table[name])
    column = table[name]
    read = column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
    return decoded(read)


def _coded(values: pa.Array, name: str) -> tuple[pa.Array, Ints]:
    """The distinct values, a missing one among them, and the place of each row's."""
    try:
        if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
            values = values.cast(pa.string())
        encoded = values.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        raise InputError(f"X: column {name!r} of type {values.type} cannot be compared") from None
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _distinct(arrays: list[pa.Array]) -> tuple[list[pa.Array], Ints]:
    """The distinct labels, as columns, and the number of each row's."""
    codes = [each.dictionary_encode(null_encoding="encode").indices.to_numpy() for each in arrays]
    _, first, number = np.unique(np.stack(codes), axis=1, return_index=True, return_inverse=True)
    return [each.take(pa.array(first)) for each in arrays], number.ravel().astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Features as numbers, moments as days since 1970."""
    values = decoded(column)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        ticks = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        return _numbers(pa.chunked_array([ticks])) / 86_400e6
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
