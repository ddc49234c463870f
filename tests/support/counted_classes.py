"""All classes of a release that was counted, however they were divided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mondrian_ops.verify.counts import ClassCounts, ReleaseCount


def all_classes(count: ReleaseCount) -> ClassCounts:
    """The classes of all partitions, numbered through."""
    first, *others = count.partitions()
    for classes in others:
        first = joined(first, classes)
    return first


def joined(one: ClassCounts, other: ClassCounts) -> ClassCounts:
    """The classes of the one, then of the other, which share no class."""
    sensitive = {
        name: replace(
            each,
            classes=np.append(each.classes, other.sensitive[name].classes + len(one.class_sizes)),
            codes=np.append(each.codes, other.sensitive[name].codes),
            counts=np.append(each.counts, other.sensitive[name].counts),
        )
        for name, each in one.sensitive.items()
    }
    persons = None if one.persons is None else np.append(one.persons, other.persons)
    return ClassCounts(
        np.append(one.class_sizes, other.class_sizes),
        np.append(one.first_rows, other.first_rows),
        sensitive,
        persons,
    )
