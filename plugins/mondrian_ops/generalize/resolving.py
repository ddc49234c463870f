"""The quasi-identifiers of a job, resolved against the profile of its dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.data.encoding import positions
from mondrian_ops.data.generalizations import generalization_of
from mondrian_ops.data.hierarchy import Hierarchy
from mondrian_ops.data.ladders import finest_units, named_ladder
from mondrian_ops.data.profile import Hierarchies, Profile
from mondrian_ops.data.spans import cut_width, robust_ends
from mondrian_ops.data.values import text_of
from mondrian_ops.errors import JobError
from mondrian_ops.generalize.attributes import (
    Attribute,
    IntervalAttribute,
    OrderedAttribute,
    TreeAttribute,
)
from mondrian_ops.generalize.cells import Boundaries, Cells, Grid
from mondrian_ops.generalize.labels import single_text
from mondrian_ops.generalize.lines import notes_on_ends, open_ends, scale_of
from mondrian_ops.generalize.set_attribute import SetAttribute
from mondrian_ops.job.job import Job
from mondrian_ops.job.quasi_identifier import QuasiIdentifier


def attributes_of(
    profile: Profile, job: Job, hierarchies: Hierarchies, tree_order: bool
) -> list[Attribute]:
    """The quasi-identifiers of ``job``, resolved against a dataset.

    ``tree_order``: a hierarchy's leaves are in depth-first order, not in that of the file.
    """
    job = profile.resolved(job)
    return [
        _attribute(profile, quasi, hierarchies.get(quasi.name), job, tree_order)
        for quasi in job.quasi_identifiers
    ]


def notes_on_open_ends(profile: Profile, job: Job) -> Iterator[str]:
    """What is to say of the open ends that ``job`` gives its columns."""
    for quasi in profile.resolved(job).quasi_identifiers:
        quantiles = profile.quantiles.get(quasi.name)
        if quasi.open_ends and quantiles is not None:
            ends = open_ends(quasi, profile.types[quasi.name], quantiles, profile.rows, job.k)
            yield from notes_on_ends(quasi, ends, quantiles, _cells(profile, quasi))


def _attribute(
    profile: Profile,
    quasi: QuasiIdentifier,
    hierarchy: Hierarchy | None,
    job: Job,
    tree_order: bool,
) -> Attribute:
    name, type_ = quasi.name, profile.types[quasi.name]
    domain = profile.domains[name]
    how, pointed = generalization_of(quasi, type_), name in profile.pointed
    robust = robust_ends(profile.quantiles.get(name, domain[:0]), name)
    more: dict[str, Any] = {"pointed": pointed, "weight": float(quasi.weight)}
    if quasi.order is not None and not job.recodes_globally:
        listed, highest = pa.array(quasi.order, pa.string()), float(len(quasi.order) - 1)
        return OrderedAttribute(name, type_, 0.0, highest, order=listed, **more)
    if how == "interval" and not job.recodes_globally:
        cells = _cells(profile, quasi)
        low, high = _reach(domain, name, cells)
        start, stop = _reach(robust, name, cells)
        quantiles = profile.quantiles.get(name, domain[:0])
        scale = scale_of(quasi, quantiles)
        least, first, last, most = scale.of(np.array([low, start, stop, high])).tolist()
        span = cut_width(most - least, last - first)
        bottom, top = open_ends(quasi, type_, quantiles, profile.rows, job.k)
        more |= {"bottom": bottom, "top": top, "scale": scale}
        bounds = job.interval_style == "bounds"
        return IntervalAttribute(name, type_, low, high, cells, bounds, span, **more)
    if how == "set" and not job.recodes_globally:
        return SetAttribute(name, type_, domain, job.set_style == "list", **more)
    hierarchy = _tree(quasi, how, domain, pointed, robust) or hierarchy
    if hierarchy is None:
        raise JobError(f"quasi_identifiers: column {name!r} needs a hierarchy file or a ladder")
    count, units = len(hierarchy.leaves), None
    if quasi.named_ladder == "calendar" and len(domain):
        texts = _texts(domain, pointed)
        place = {unit: at for at, unit in enumerate(hierarchy.leaves)}
        leaf_of = np.array([place[unit] for unit in finest_units(quasi, texts)], np.int64)
        units = pa.array(texts, pa.string()), leaf_of
        hierarchy = _measured_by_days(hierarchy, texts, leaf_of)
    order = np.argsort(hierarchy.tree_order) if tree_order else np.arange(count)
    named = quasi.hierarchy is not None
    present = len(domain) if units is None else count
    return TreeAttribute(
        name, type_, hierarchy, order, present, named, units, generalization=how, **more
    )


def _tree(
    quasi: QuasiIdentifier, how: str, domain: pa.Array, pointed: bool, robust: pa.Array
) -> Hierarchy | None:
    """The tree over the values of a column that has none from a file."""
    name, texts = quasi.name, _texts(domain, pointed)
    if quasi.order is not None:
        return Hierarchy.from_order(
            quasi.order, np.arange(len(quasi.order), dtype=np.float64), name
        )
    if how == "interval":
        line = positions(domain, name) if len(domain) else np.zeros(1)
        return _within(Hierarchy.from_order(texts, line, name), line, robust)
    if how == "set" or (quasi.named_ladder and not len(domain)):
        return _readable(Hierarchy.flat(texts, name))
    if how == "prefix":
        steps = named_ladder(quasi, texts) if quasi.ladder else None
        return _readable(steps or Hierarchy.from_prefixes(texts, name))
    if quasi.named_ladder:
        return named_ladder(quasi, texts)
    if not quasi.widths:
        return None
    values = _line(domain, name) if len(domain) else np.zeros(1)
    hierarchy = Hierarchy.from_ladder(values, quasi.widths, quasi.origin, name)
    hierarchy = _within(hierarchy, values, robust, quasi.widths[-1])
    return _labelled(replace(hierarchy, leaves=texts), texts) if len(domain) else hierarchy


def _measured_by_days(
    hierarchy: Hierarchy, texts: list[str], leaf_of: NDArray[np.int64]
) -> Hierarchy:
    """The same; a node loses the share of the days that it holds, nothing if it holds one."""
    _, first = np.unique([text[:10] for text in texts], return_index=True)
    of_leaves = np.bincount(leaf_of[first], minlength=len(hierarchy.leaves))
    days = np.zeros(len(hierarchy.labels))
    for level in hierarchy.ancestors:
        np.maximum(days, np.bincount(level, of_leaves, len(days)), out=days)
    return replace(hierarchy, share=np.where(days > 1, days / len(first), 0.0))


def _reach(ends: pa.Array, name: str, cells: Cells | None) -> tuple[float, float]:
    """The positions between which two values lie, or the cells that have them."""
    if not len(ends):
        return 0.0, 0.0
    low, high = positions(ends, name).tolist()
    if cells is not None:
        starts, stops = cells.ends(cells.of(ends, name), low, high)
        low, high = float(starts[0]), float(stops[1])
    return low, high


def _within(
    hierarchy: Hierarchy, line: NDArray[Any], robust: pa.Array, widest: float = 0.0
) -> Hierarchy:
    """The same with its losses by the robust span, where extreme values stretch the range.

    ``line`` (leaves,) ascends. ``widest``: the width of the widest intervals below the root.
    """
    if hierarchy.share is None or not len(robust):
        return hierarchy
    low, high = positions(robust, hierarchy.name).tolist()
    whole = float(line[-1]) - float(line[0]) + widest
    share = hierarchy.share * (whole / (cut_width(whole, high - low + widest) or 1.0))
    return replace(hierarchy, share=np.minimum(share, 1.0))


def _cells(profile: Profile, quasi: QuasiIdentifier) -> Cells | None:
    """The cells that the values of an interval column are put into, if it has some."""
    if quasi.grid_step is not None:
        return Grid(quasi.grid_step, quasi.origin)
    boundaries = profile.boundaries.get(quasi.name)
    return None if boundaries is None else Boundaries(boundaries)


def _readable(hierarchy: Hierarchy) -> Hierarchy:
    """The same; values that could be read as a prefix or as hidden are published quoted."""
    return _labelled(hierarchy, [single_text(leaf) for leaf in hierarchy.leaves])


def _labelled(hierarchy: Hierarchy, leaves: list[str]) -> Hierarchy:
    return replace(hierarchy, labels=[*leaves, *hierarchy.labels[len(leaves) :]])


def _line(domain: pa.Array, name: str) -> NDArray[Any]:
    """Numbers in ascending order, as NumPy has them; exact decimals as floating-point numbers."""
    if pa.types.is_decimal(domain.type):
        return positions(domain, name)
    numbers: NDArray[Any] = domain.to_numpy()
    return numbers


def _texts(domain: pa.Array, pointed: bool) -> list[str]:
    """The texts of the values as they are published; one empty text if there is no value."""
    return text_of(domain, pointed).to_pylist() or [""]
