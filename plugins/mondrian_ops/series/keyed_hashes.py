"""Keyed hashes of the persons, values and classes of a series: equal ones are equal, no more."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mondrian_ops import catalogue
from mondrian_ops.data.encoding import as_array, value_type
from mondrian_ops.data.values import in_one_spelling, one_spelling, text_of
from mondrian_ops.errors import InputError
from mondrian_ops.job.job import Job
from mondrian_ops.verify.quoted_texts import as_texts

Ints = NDArray[np.int64]

NO_VALUE = 0
_MISSING, _BETWEEN = "\x00", "\x1f"


def value_hashes(job: Job, name: str, column: pa.ChunkedArray | pa.Array) -> Ints:
    """A keyed hash of each sensitive value; NO_VALUE for a missing one, unless that is a value."""
    texts = spelled(in_one_spelling(column))
    if job.missing_sensitive == "value":
        texts = texts.fill_null(_MISSING)
    return hashes_of(name, texts, b"value")


def hashes_as_written(job: Job, name: str, column: pa.ChunkedArray | pa.Array) -> Ints:
    """As :func:`value_hashes`, but texts of which a single byte differs have different ones."""
    texts = _numbers_alike(as_array(column))
    if job.missing_sensitive == "value":
        texts = texts.fill_null(_MISSING)
    return hashes_of(name, texts, b"value")


def person_hashes(
    job: Job, name: str, column: pa.ChunkedArray | pa.Array, may_lack: bool = False
) -> Ints:
    """A keyed hash of each person; 0 where a row has none, if it ``may_lack``, or InputError."""
    texts = spelled(column)
    if texts.null_count and not may_lack:
        raise InputError(
            f"column {job.entity_id!r}: {texts.null_count} rows have no value, so their persons "
            "cannot be followed through the nights; fill them in, or leave these rows out"
        )
    return hashes_of(name, texts, b"person")


def place_hashes(name: str, persons: Ints, quasi_identifiers: pa.Table) -> Ints:
    """A keyed hash of each person's quasi-identifiers, which nobody else has."""
    own = quasi_identifiers.append_column("mondrian_ops_person", pa.array(persons))
    return hashes_of(name, _joined(own), b"place")


def spelled(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The text of each value, in one spelling."""
    return one_spelling(_numbers_alike(as_array(column)))


def _numbers_alike(values: pa.Array) -> pa.Array:
    """The text of each value; numbers that are equal have one text, in whichever type they are."""
    texts = text_of(values)
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        plain = (text and format(Decimal(text).normalize(), "f") for text in texts.to_pylist())
        texts = pa.array(plain, pa.string())
    return texts


def class_texts(published: pa.Table) -> pa.Array:
    """One text per row of a release, of the columns that define its class, in any order."""
    return _joined(published.select(sorted(published.column_names)))


def class_hashes(name: str, texts: pa.Array) -> Ints:
    """A keyed hash of each of some :func:`class_texts`."""
    return hashes_of(name, texts, b"class")


def _joined(table: pa.Table) -> pa.Array:
    """One text per row of all columns."""
    texts = [text_of(as_array(as_texts(each))).fill_null(_MISSING) for each in table.columns]
    large = [each.cast(pa.large_string()) for each in texts]
    return pc.binary_join_element_wise(*large, pa.scalar(_BETWEEN, pa.large_string()))


def hashes_of(name: str, texts: pa.Array, kind: bytes) -> Ints:
    """Keyed hashes, (texts,) int64, which no other series has; 0 for a missing text only."""
    key = catalogue.current().key
    salt = hashlib.blake2b(name.encode(), digest_size=hashlib.blake2b.SALT_SIZE).digest()
    encoded = texts.dictionary_encode()
    made = [
        hashlib.blake2b(text.encode(), key=key, salt=salt, digest_size=8, person=kind).digest()
        for text in encoded.dictionary.to_pylist()
    ]
    of_text = np.frombuffer(b"".join([*made, bytes(8)]), "<i8").astype(np.int64)
    hashes: Ints = of_text[encoded.indices.fill_null(len(made)).to_numpy()]
    return hashes


def types_of(job: Job, schema: pa.Schema) -> dict[str, str]:
    """The types by which all nights must tell persons, and their values, apart; by column.

    All types of numbers are one. A column without values has no type.
    """
    if not job.follows_persons:
        return {}
    types = {name: schema.field(name).type for name in (str(job.entity_id), *job.sensitive)}
    return {name: _type_name(each) for name, each in types.items() if not pa.types.is_null(each)}


def _type_name(type_: pa.DataType) -> str:
    type_ = value_type(type_)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "numbers"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    return str(type_)
