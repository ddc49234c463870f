"""How a quasi-identifier is generalized, by its column's type where the job does not say."""

from __future__ import annotations

import pyarrow as pa

from mondrian_ops.data.encoding import value_type
from mondrian_ops.data.named_types import is_text
from mondrian_ops.errors import JobError
from mondrian_ops.job.quasi_identifier import QuasiIdentifier

MOSTLY_RARE = 0.5
"""The share of rows with rare values from which on texts are prefixes unless the job says set."""


def generalization_of(quasi: QuasiIdentifier, type_: pa.DataType) -> str:
    """The generalization of a quasi-identifier, by the column's type where the job names none.

    Of texts the values decide, too: see `profile.Profile.resolved`. Raises JobError where the type
    cannot be generalized so.
    """
    type_ = value_type(type_)
    binary = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    number = binary or pa.types.is_decimal128(type_) or pa.types.is_decimal256(type_)
    has_days = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
    ordered = number or has_days or pa.types.is_time(type_)
    unordered = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_boolean,
        pa.types.is_null,
    )
    where = f"quasi_identifiers: column {quasi.name!r} of type {type_}"
    if not (ordered or any(is_type(type_) for is_type in unordered)):
        raise JobError(
            f"{where} cannot be generalized; flatten it, or make it text, a number or a decimal128"
        )
    how = quasi.generalization or ("interval" if ordered else "set")
    if quasi.order is not None and not is_text(type_):
        raise JobError(f"{where} cannot use order, which is for text; say types: text")
    if how == "interval" and not ordered and quasi.order is None:
        raise JobError(
            f"{where} cannot be generalized to intervals; use set, prefix or a hierarchy, or give "
            "its values an order"
        )
    _check_ladder(quasi, where, number=number, has_days=has_days, ordered=ordered)
    if quasi.line_options and how != "interval" and not pa.types.is_null(type_):
        raise JobError(
            f"{where} cannot use {quasi.line_options[0]}, which is for intervals of numbers or "
            "dates; list texts such as 'unknown' in csv.missing, or give its type in types"
        )
    if quasi.scale == "log" and how == "interval" and not number:
        raise JobError(f"{where} cannot use scale: log, which needs numbers; use linear or rank")
    if quasi.grid is None:
        return how
    if not (number or has_days):
        raise JobError(f"{where} cannot use a grid; a grid needs numbers, dates or timestamps")
    if has_days and not all(
        float(each or 0).is_integer() for each in (quasi.grid_step, quasi.origin)
    ):
        raise JobError(
            f"{where}: a grid of dates counts days; give its step and origin as whole numbers"
        )
    return how


def described(quasi: QuasiIdentifier, how: str, tree: str = "") -> str:
    """A quasi-identifier's generalization ``how``, in a text that is the same for the same one.

    ``tree``: a digest of its hierarchy, if it has one from a file.
    """
    if quasi.ladder is not None:
        how = f"ladder {quasi.steps}"
    elif quasi.order is not None:
        how = f"order {'/'.join(quasi.order)}"
    elif quasi.grid is not None:
        how = f"grid {quasi.on_grid}"
    elif tree:
        how = f"{how} {tree}"
    return how + quasi.open_ends


def _check_ladder(
    quasi: QuasiIdentifier, where: str, *, number: bool, has_days: bool, ordered: bool
) -> None:
    """Refuse a ladder that a column cannot have; the flags say what its type is."""
    if quasi.ladder is None:
        return
    kind = quasi.named_ladder
    if not kind and not number:
        raise JobError(
            f"{where} cannot use a ladder of widths, which needs numbers; dates have ladders such "
            "as month/year, texts prefix:5/3/1"
        )
    if kind == "calendar" and not has_days:
        raise JobError(f"{where} cannot use {quasi.steps}, which needs dates or timestamps")
    if kind in ("icd10", "postal", "ip") and ordered:
        raise JobError(f"{where} cannot use {kind}, which needs text; say types: text")


def published_as_prefixes(name: str, rare: float) -> str:
    """A note on a column whose values decided that it is published as prefixes."""
    return (
        f"column {name!r}: {100 * rare:.0f} % of the rows have values that fewer than k have, "
        "which sets would show word for word, so it is published as prefixes; name its "
        "generalization to have another one"
    )
