"""Rows become the rows of a release: they are encoded, cut, generalized and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.cut.algorithms.di_mondrian import MultiwayPolicy
from mondrian_ops.cut.algorithms.mondrian import CodedRows, CutPolicy
from mondrian_ops.cut.criteria import Privacy
from mondrian_ops.cut.holding import Holding
from mondrian_ops.cut.person_values import PersonsValues, joined, lower_l, satisfied
from mondrian_ops.cut.plan import Order, orders_of
from mondrian_ops.cut.recoding import Recoding
from mondrian_ops.cut.suppression import without_costly_rows
from mondrian_ops.data.column_types import without_dictionaries
from mondrian_ops.data.combinations import Combinations
from mondrian_ops.data.encoding import Codes, code_dtype, encode_ranks
from mondrian_ops.data.frequency_set import FrequencySet
from mondrian_ops.data.hierarchy import CodedHierarchy, Hierarchy
from mondrian_ops.data.persons import encode_persons
from mondrian_ops.data.pool import HIDDEN, NIGHT, SIGNATURE
from mondrian_ops.data.profile import Profile
from mondrian_ops.data.sensitive_domain import SensitiveDomain
from mondrian_ops.data.values import in_one_spelling
from mondrian_ops.errors import UnattainableError
from mondrian_ops.generalize.attributes import Attribute, Classes, Published, TreeAttribute
from mondrian_ops.generalize.native.classes import (
    arrange_classes,
    repeat,
    shuffle_classes,
    sort_classes,
)
from mondrian_ops.generalize.resolving import attributes_of
from mondrian_ops.job.job import Job
from mondrian_ops.phases import Phases

REDACTED = "*"


class Released(NamedTuple):
    """Some rows in their released form, with their figures.

    ``summary`` has rows, suppressed rows, classes as cut and the sum of their DP. ``persons`` is
    the person of each row of ``table``, where the job counts persons, null for a counterfeit; it is
    never published. ``held`` are the rows, as they came, that wait for the next night of a series.
    Their number, and that of the counterfeits in ``table``, are in no other figure of the summary.
    ``order`` (published rows,) tells which of the rows each row of ``table`` is, ``made_up`` which
    of them are counterfeits; None if there are none. ``signatures``, where a series protects
    against subtraction: the signature of each row of ``table`` as bits, null for a counterfeit.
    """

    table: pa.Table
    summary: dict[str, Any]
    persons: pa.ChunkedArray | None
    held: pa.Table | None
    order: NDArray[np.int32]
    made_up: NDArray[np.bool_] | None
    signatures: pa.Array | None = None


class Counterfeits(NamedTuple):
    """Rows that are made up: the class of each, and a row that has its sensitive value, (n,)."""

    classes: NDArray[np.int64]
    rows: NDArray[np.int32]

    @classmethod
    def none(cls) -> Counterfeits:
        """No rows."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int32))

    @classmethod
    def of(cls, pairs: NDArray[np.int64], values: NDArray[np.int32]) -> Counterfeits:
        """By class and code of a value, (n, 2); ``values``: (rows,) the codes of all rows.

        Chance gives each one of the rows that have its value.
        """
        order = np.argsort(values, kind="stable")
        first, end = (np.searchsorted(values[order], pairs[:, 1] + more) for more in (0, 1))
        rows = order[np.random.default_rng().integers(first, end)]
        return cls(pairs[:, 0], rows.astype(np.int32))

    def where(self, chosen: NDArray[np.bool_]) -> Counterfeits:
        """Those of the classes that are ``chosen`` (classes,), which are numbered anew."""
        kept = chosen[self.classes]
        return Counterfeits((np.cumsum(chosen) - 1)[self.classes[kept]], self.rows[kept])

    def added(self, classes: Classes, first: int) -> Classes:
        """The classes with these rows in them, which are numbered from ``first`` on."""
        if not len(self.rows):
            return classes
        count = len(classes.starts)
        class_of = np.append(np.repeat(np.arange(count), classes.sizes), self.classes)
        order = np.argsort(class_of, kind="stable")
        index = np.append(classes.index, np.arange(first, first + len(self.rows), dtype=np.int32))
        return Classes(index[order], np.searchsorted(class_of[order], np.arange(count)))


class Formed(NamedTuple):
    """The classes of some rows, as a :data:`ClassMaker` forms them.

    ``unmatched`` (rows,) bool: rows that are in none of them; None: there are none. ``signatures``
    (rows,): as in `Released`.
    """

    classes: Classes
    unmatched: NDArray[np.bool_] | None
    counterfeits: Counterfeits
    signatures: pa.Array | None = None


ClassMaker = Callable[[Job, CodedRows, pa.ChunkedArray, int], Formed]
"""Forms the classes of rows whose persons are followed, from the job, the rows in codes,
what is known of their persons (the column SIGNATURE), and the cores to use."""


class Anonymizer:
    """Anonymizes parts of one dataset, all measured by the whole dataset's profile.

    ``hierarchies`` by column; ``cut`` is the policy selected for the job.
    """

    def __init__(
        self,
        job: Job,
        profile: Profile,
        hierarchies: Mapping[str, Hierarchy],
        cut: CutPolicy | MultiwayPolicy,
    ) -> None:
        self.job = job
        self.profile = profile
        self.cut = cut
        self.privacy = Privacy.of(job, hierarchies)
        self._hierarchies = hierarchies

    @cached_property
    def attributes(self) -> list[Attribute]:
        """The quasi-identifiers in the job's order."""
        return attributes_of(self.profile, self.job, self._hierarchies, self.cut.tree_order)

    @property
    def trees(self) -> list[TreeAttribute]:
        """The quasi-identifiers, where recoding is global: all are trees then."""
        return [attribute for attribute in self.attributes if isinstance(attribute, TreeAttribute)]

    @property
    def coded_hierarchies(self) -> list[CodedHierarchy]:
        """Their hierarchies over codes."""
        return [tree.coded_hierarchy for tree in self.trees]

    @cached_property
    def domains(self) -> list[SensitiveDomain]:
        """The sensitive columns in the job's order."""
        return self.profile.sensitive(self.job, self._hierarchies)

    @property
    def joins_for_persons(self) -> bool:
        """Whether classes are joined until persons have the values that l needs."""
        return self.persons_values is not None and not self.job.recodes_globally

    def counts_person_rows(self, leaves: int) -> bool:
        """Whether a plan with ``leaves`` is judged by what values persons have in each.

        Of one fragment it would tell whether it can keep l, unless rows of equal quasi-identifiers
        may be in several classes.
        """
        return self.joins_for_persons and (leaves > 1 or not self.cut.parts_equal_rows)

    @cached_property
    def persons_values(self) -> PersonsValues | None:
        """What l asks of the values of persons, if it does.

        Where a series follows persons, each has one row.
        """
        job = self.job
        if job.l is None or job.entity_id is None or job.follows_persons:
            return None
        return PersonsValues(self.domains, job.l, job.missing_sensitive == "value")

    @cached_property
    def counted_domains(self) -> list[SensitiveDomain]:
        """The columns counted beside the quasi-identifiers, where recoding is global:
        the sensitive ones and, where the job counts persons, the ``entity_id``."""
        if self.job.entity_id is None:
            return self.domains
        return [*self.domains, self.profile.persons(self.job)]

    @cached_property
    def orders(self) -> dict[str, Order]:
        """How the values of each quasi-identifier are compared."""
        return orders_of(self.attributes)

    def encode(self, table: pa.Table, privacy: Privacy | None = None) -> CodedRows:
        """The rows of ``table`` in codes; ``privacy`` overrides the job's criteria."""
        encoded = [attribute.encode(table[attribute.name]) for attribute in self.attributes]
        privacy = privacy or self.privacy
        domains = list(self.domains)
        sensitive = [domain.encode(table[domain.name]) for domain in domains]
        if privacy.persons is not None:
            column = privacy.persons.column
            persons, codes = encode_persons(column, table[column])
            domains.append(persons)
            sensitive.append(codes)
        return CodedRows.of(encoded, sensitive, domains, privacy)

    def frequencies(self, combinations: Combinations) -> FrequencySet:
        """``combinations`` in codes: of the quasi-identifiers, then of `counted_domains`."""
        encoded = [
            attribute.encode(combinations.values[attribute.name]) for attribute in self.attributes
        ]
        domains = self.counted_domains
        counted = [domain.encode(combinations.values[domain.name]) for domain in domains]
        names = [*(each.name for each in self.attributes), *(each.name for each in domains)]
        codes = [*(each.codes for each in encoded), *counted]
        columns = (
            column[combinations.indices(name)] for name, column in zip(names, codes, strict=True)
        )
        sizes = [*(each.size for each in encoded), *(len(each.counts) for each in domains)]
        return FrequencySet.of(columns, sizes, combinations.frequencies.rows)

    def release(
        self,
        table: pa.Table,
        recoding: Recoding | None = None,
        cores: int = 1,
        holding: Holding | None = None,
        class_maker: ClassMaker | None = None,
        phases: Phases | None = None,
    ) -> Released:
        """The released form of ``table``, class by class.

        ``recoding`` is that of the dataset, where recoding is global. Without one, the
        rows are cut in up to ``cores`` threads. ``holding``: which of them wait.
        ``class_maker``: forms the classes, where persons are followed. ``phases`` measures.
        """
        end = (phases or Phases()).laps()
        held, counterfeits, signatures = None, Counterfeits.none(), None
        if recoding is None:
            rows = self.encode(table)
            end("encode")
            formed = self._formed(table, rows, cores, class_maker)
            classes, unmatched, counterfeits, signatures = formed
            most = 0 if class_maker else self._most_suppressed(table.num_rows)
            if most:
                classes = without_costly_rows(
                    self.attributes, rows, classes, most, lambda kept: self._cut(rows, kept, cores)
                )
            end("cut")
            extents = classes.extents(rows.rows.codes)
            published = {
                attribute.name: attribute.publish(encoded, classes, extent)
                for attribute, encoded, extent in zip(
                    self.attributes, rows.encoded, extents, strict=True
                )
            }
            if holding is not None:
                divided = holding.divide(classes, published.values(), table[NIGHT], unmatched)
                held = table.filter(pa.array(divided.waiting))
                classes = classes.where(divided.published)
                published = {n: each.where(divided.published) for n, each in published.items()}
                counterfeits = counterfeits.where(divided.published)
        else:
            classes, nodes = recoding.classes(
                [attribute.encode(table[attribute.name]).codes for attribute in self.attributes]
            )
            published = {
                attribute.name: attribute.publish_nodes(of_attribute)
                for attribute, of_attribute in zip(self.trees, nodes, strict=True)
            }
        end("generalize")
        index, order, sizes = laid_out(counterfeits.added(classes, table.num_rows), published)
        made_up = None
        if len(counterfeits.rows):
            made_up = index >= table.num_rows
            index[made_up] = counterfeits.rows[index[made_up] - table.num_rows]
        taken = pa.array(index)
        released = self._table(table, taken, order, sizes, published)
        summary = _summary(classes)
        summary["counterfeits"] = len(counterfeits.rows)
        summary["held"] = 0 if held is None else held.num_rows
        summary["suppressed"] = table.num_rows - summary["rows"] - summary["held"]
        entity = self.job.entity_id
        persons = None if entity is None else table[entity].take(pa.array(index, mask=made_up))
        if signatures is not None:
            signatures = signatures.take(pa.array(index, mask=made_up))
        end("lay_out")
        return Released(released, summary, persons, held, index, made_up, signatures)

    def _formed(
        self, table: pa.Table, rows: CodedRows, cores: int, class_maker: ClassMaker | None
    ) -> Formed:
        if SIGNATURE not in table.column_names:
            classes = self._with_persons_values(rows, self.cut.classes(rows, cores))
            return Formed(classes, None, Counterfeits.none())
        if class_maker is None:
            raise RuntimeError("persons are followed, but nothing forms their classes")
        return class_maker(self.job, rows, table[SIGNATURE], cores)

    def _most_suppressed(self, rows: int) -> int:
        """How many of the rows of a part may be left out: its share of those of the dataset."""
        total = self.profile.rows
        return self.job.suppressible(total) * rows // max(1, total)

    def _cut(self, rows: CodedRows, kept: NDArray[np.int32], cores: int) -> Classes:
        """The classes of some of the rows."""
        part = rows.taken(kept)
        classes = self._with_persons_values(part, self.cut.classes(part, cores))
        return Classes(kept[classes.index], classes.starts)

    def _with_persons_values(self, rows: CodedRows, classes: Classes) -> Classes:
        """The classes, joined where the values of l would be those of too few persons."""
        values = self.persons_values
        if values is None:
            return classes
        *sensitive, persons = rows.rows.sensitive
        if len(np.unique(persons)) == len(persons):  # each has one row
            return classes
        columns, level = values.columns(sensitive), values.level
        has_added = bool(self.job.criteria)  # which a join may break
        classes = joined(classes, persons, columns, level, rows.satisfied if has_added else None)
        if len(classes.starts) == 1 and not satisfied(classes, persons, columns, level).all():
            raise UnattainableError(
                f"l: the {len(persons)} rows of a fragment cannot be divided into classes whose "
                f"persons have the values that l = {level:g} needs, not even as one class; "
                f"{lower_l(columns)}, or use fewer fragments"
            )
        return classes

    def _table(
        self,
        table: pa.Table,
        rows: pa.Array,
        order: NDArray[np.int32],
        sizes: NDArray[np.int64],
        published: Mapping[str, Published],
    ) -> pa.Table:
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name in self._released_columns(table.column_names):
            if name in published:
                for column, values in published[name].columns.items():
                    columns[column] = _repeated(values, order, sizes)
            elif name in self.job.identifiers:
                redacted = pa.array([REDACTED]).take(pa.array(np.zeros(len(rows), np.int32)))
                columns[name] = redacted.dictionary_encode()
            elif name in self.job.sensitive and self.job.follows_persons:
                columns[name] = in_one_spelling(table[name]).take(rows)
            else:
                columns[name] = without_dictionaries(table[name].take(rows))
        return pa.table(columns)

    def _released_columns(self, read: list[str]) -> list[str]:
        """Names in the source's order; redacted identifiers come first, wherever they were."""
        redacted = self.job.identifiers if self.job.identifier_policy == "redact" else ()
        left_out = {*self.job.identifiers, *HIDDEN}
        return [*redacted, *(name for name in read if name not in left_out)]


def laid_out(
    classes: Classes, published: Mapping[str, Published]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """The order in which rows are published, (rows,); that of the classes, and their sizes.

    Classes with equal published values become one, and classes ascend by these values: in the order
    in which they were cut, a row's place would disclose on which side of a cut it was. The rows of
    a class are in random order.
    """
    labels = [
        _labels(values) for attribute in published.values() for values in attribute.columns.values()
    ]
    order, firsts = sort_classes(labels)
    sizes = classes.sizes[order]
    index = arrange_classes(classes.index, classes.starts, order)
    shuffle_classes(index, (np.cumsum(sizes) - sizes)[firsts])
    return index, order, sizes


def _repeated(values: pa.Array, order: NDArray[np.int32], times: NDArray[np.int64]) -> pa.Array:
    """The values in an order, each repeated as ``times`` says, (values,) all."""
    if not pa.types.is_dictionary(values.type):
        return values.take(pa.array(np.repeat(order, times)))
    indices = repeat(values.indices.fill_null(0).to_numpy(), order, times)
    mask = None
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False).view(np.uint8)
        mask = repeat(is_null, order, times).view(np.bool_)
    if pa.types.is_list(values.dictionary.type):
        return values.dictionary.take(pa.array(indices, mask=mask))
    # They were indices of a dictionary array before, so they need not be looked at.
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=mask), values.dictionary, safe=False
    )


def _labels(values: pa.Array) -> Codes:
    """(classes,) numbers that ascend with the published values; 0 for null."""
    if pa.types.is_dictionary(values.type):  # its labels are sorted
        indices = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes: Codes = indices.astype(code_dtype(len(values.dictionary) + 1))
        codes += codes.dtype.type(1)  # -1, which is null, becomes 0
        return codes
    return encode_ranks(values)[0]


def columns_to_read(job: Job, names: list[str]) -> list[str]:
    """The columns of the source that a release or its check needs, in the source's order."""
    listed = {*job.quasi_identifier_names, *job.sensitive, job.entity_id, *HIDDEN}
    if job.unlisted == "publish":
        listed.update(unlisted_columns(job, names))
    return [name for name in names if name in listed]


def unlisted_columns(job: Job, names: list[str]) -> list[str]:
    """The columns that the job does not name."""
    listed = {*job.quasi_identifier_names, *job.sensitive, *job.identifiers, *HIDDEN}
    return [name for name in names if name not in listed]


def _summary(classes: Classes) -> dict[str, int]:
    sizes = classes.sizes
    return {
        "rows": int(sizes.sum()),
        "equivalence_classes": len(sizes),
        "DP": int(np.sum(sizes * sizes)),
    }
