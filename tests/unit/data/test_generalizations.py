"""The generalization of a column, by its type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mondrian_ops.data.generalizations import generalization_of
from mondrian_ops.errors import JobError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.int8(), "interval"),
        (pa.float16(), "interval"),
        (pa.decimal128(5, 1), "interval"),
        (pa.date64(), "interval"),
        (pa.timestamp("ns", "Europe/Rome"), "interval"),
        (pa.time32("s"), "interval"),
        (pa.string(), "set"),
        (pa.large_string(), "set"),
        (pa.bool_(), "set"),
        (pa.null(), "set"),
        (pa.dictionary(pa.int32(), pa.string()), "set"),
        (pa.dictionary(pa.int32(), pa.int64()), "interval"),
    ],
)
def test_the_default_generalization_of_a_type(type_, expected):
    assert generalization_of(QuasiIdentifier("q"), type_) == expected


def test_a_column_without_values_may_have_open_ends():
    assert generalization_of(QuasiIdentifier("q", top="9"), pa.null()) == "set"


@pytest.mark.parametrize(
    ("quasi", "type_", "says"),
    [
        (QuasiIdentifier("q"), pa.list_(pa.int8()), "flatten"),
        (QuasiIdentifier("q"), pa.struct([("a", pa.int8())]), "flatten"),
        (QuasiIdentifier("q"), pa.binary(), "make it text"),
        (QuasiIdentifier("q"), pa.duration("s"), "a number"),
        (QuasiIdentifier("q"), pa.month_day_nano_interval(), "a number"),
        (QuasiIdentifier("q", "interval"), pa.string(), "cannot be generalized to intervals"),
        (QuasiIdentifier("q", "interval"), pa.bool_(), "cannot be generalized to intervals"),
        (QuasiIdentifier("q", "interval", grid=5), pa.time32("s"), "cannot use a grid"),
        (QuasiIdentifier("q", "interval", grid=0.5), pa.date32(), "whole"),
        (QuasiIdentifier("q", "interval", grid=7, origin=0.5), pa.timestamp("s"), "whole"),
        (QuasiIdentifier("q", "hierarchy", ladder=(5,)), pa.string(), "cannot use a ladder"),
        (QuasiIdentifier("q", "hierarchy", ladder=(5,)), pa.date32(), "cannot use a ladder"),
        (QuasiIdentifier("q", top="200000"), pa.string(), "cannot use top, which is for intervals"),
        (QuasiIdentifier("q", bottom="1 %"), pa.bool_(), "cannot use bottom, which is for"),
        (QuasiIdentifier("q", scale="rank"), pa.string(), "cannot use scale, which is for"),
        (QuasiIdentifier("q", scale="log"), pa.date32(), "cannot use scale: log"),
        (QuasiIdentifier("q", scale="log"), pa.timestamp("s"), "cannot use scale: log"),
        (QuasiIdentifier("q", scale="log"), pa.time32("s"), "cannot use scale: log"),
    ],
)
def test_types_that_cannot_be_generalized_so(quasi, type_, says):
    with pytest.raises(JobError, match="'q'") as caught:
        generalization_of(quasi, type_)
    assert says in str(caught.value)
