"""A synthetic population: every kind of column that an anonymization meets, and missing values.

Its countries, occupations and diagnoses are leaves of the hierarchies in ``include/hierarchies/``.
Names are put together from syllables; nobody bears them on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mondrian_ops.datasets import blocks

Codes = NDArray[np.int64]

_FIRST_DAY = np.datetime64("2024-01-01")
_DAYS = 731
_ZIP_AREAS = 240
_MISSING = {"zip": 0.01, "country": 0.02, "occupation": 0.03, "income": 0.05, "diagnosis": 0.02}

_SYLLABLES = ("ba", "da", "el", "fi", "gar", "hol", "ki", "lo", "mi", "no", "ra", "tu", "ven", "zo")

# Country of birth: share in a thousand.
_COUNTRIES = {
    "United States": 640, "Mexico": 70, "India": 38, "China": 36, "Philippines": 22,
    "Canada": 18, "Vietnam": 15, "Germany": 15, "United Kingdom": 14, "Cuba": 13,
    "South Korea": 12, "Italy": 11, "Poland": 10, "Colombia": 9, "Brazil": 9,
    "Dominican Republic": 8, "France": 8, "Nigeria": 7, "Japan": 7, "Jamaica": 6,
    "Haiti": 6, "Ethiopia": 5, "Egypt": 5, "Iran": 4, "Spain": 4, "Australia": 3,
    "Ghana": 2, "Greenland": 1, "New Zealand": 1, "Fiji": 1,
}  # fmt: skip

# Occupation: share in a thousand, typical yearly income in thousands.
_OCCUPATIONS = {
    "Managing director": (12, 142), "Sales manager": (32, 96), "Restaurant manager": (24, 58),
    "Civil engineer": (16, 92), "Physician": (14, 205), "Nurse": (48, 74),
    "Primary school teacher": (42, 58), "University lecturer": (14, 82), "Accountant": (34, 78),
    "Software developer": (46, 112), "Lawyer": (14, 138), "Social worker": (18, 52),
    "Electrical technician": (14, 62), "Pharmacy assistant": (14, 40),
    "Insurance agent": (18, 60), "Executive secretary": (26, 52), "IT support technician": (18, 56),
    "Office clerk": (62, 41), "Bank teller": (16, 37), "Bookkeeper": (26, 46),
    "Mail carrier": (12, 50), "Cook": (44, 32), "Waiter": (44, 28), "Hairdresser": (18, 31),
    "Shop salesperson": (72, 31), "Cashier": (58, 26), "Childcare worker": (28, 28),
    "Home care worker": (40, 30), "Police officer": (16, 68), "Crop farmer": (14, 44),
    "Bricklayer": (16, 48), "Electrician": (20, 60), "Welder": (14, 46), "Car mechanic": (22, 46),
    "Baker": (10, 31), "Machine operator": (28, 40), "Bus driver": (14, 43),
    "Truck driver": (44, 48), "Cleaner": (54, 28), "Warehouse worker": (52, 33),
    "Kitchen helper": (22, 25), "Farm labourer": (16, 29),
}  # fmt: skip

# Diagnosis: share in a thousand below the age of 50, and from then on.
_DIAGNOSES = {
    "Influenza": (170, 90), "Acute bronchitis": (120, 80), "Asthma": (110, 50),
    "Migraine": (110, 50), "Depressive episode": (100, 60), "Anxiety disorder": (110, 50),
    "Gastritis": (80, 70), "Low back pain": (100, 110), "Forearm fracture": (40, 30),
    "Type 2 diabetes": (20, 110), "Essential hypertension": (20, 140),
    "Ischaemic heart disease": (5, 60), "Osteoarthritis": (5, 60), "Breast cancer": (5, 20),
    "Lung cancer": (2, 12), "HIV disease": (3, 8),
}  # fmt: skip


def people(rows: int, seed: int) -> pa.Table:
    """A population with dependent columns and, in five of them, 1 to 5 % missing values.

    ``name`` (text, a direct identifier), ``age`` (int16), ``sex`` (text), ``zip`` (text, five
    digits), ``country`` (text, of birth), ``occupation`` (text), ``visit_date`` (date32),
    ``income`` (int32, yearly), ``diagnosis`` (text). Raises InputError on no rows.
    """
    return blocks.table(block, rows, seed)


def block(generator: np.random.Generator, rows: int) -> pa.RecordBatch:
    """The rows of one block of :func:`people`."""
    age = _ages(generator, rows)
    occupation = _weighted(generator, [share for share, _ in _OCCUPATIONS.values()], rows)
    columns: dict[str, pa.Array[Any]] = {
        "name": _names(generator, rows),
        "age": pa.array(age),
        "sex": pa.array(["female", "male"]).take(generator.integers(0, 2, rows)),
        "zip": redrawn(generator, "zip", age),
        "country": _text(
            generator,
            "country",
            pa.array(list(_COUNTRIES)),
            _weighted(generator, list(_COUNTRIES.values()), rows),
        ),
        "occupation": _text(generator, "occupation", pa.array(list(_OCCUPATIONS)), occupation),
        "visit_date": pa.array(_FIRST_DAY + generator.integers(0, _DAYS, rows)),
        "income": pa.array(
            _incomes(generator, age, occupation), mask=_missing(generator, "income", rows)
        ),
        "diagnosis": redrawn(generator, "diagnosis", age),
    }
    return pa.RecordBatch.from_pydict(columns)


def redrawn(generator: np.random.Generator, column: str, age: NDArray[np.int16]) -> pa.StringArray:
    """(n,) new values of ``zip`` or ``diagnosis`` for people of these ages."""
    if column == "zip":
        return _text(generator, column, _all_zips(), _zips(generator, len(age)))
    return _text(generator, column, pa.array(list(_DIAGNOSES)), _diagnoses(generator, age))


def _ages(generator: np.random.Generator, rows: int) -> NDArray[np.int16]:
    return (18 + 78 * generator.beta(1.3, 2.2, rows)).astype(np.int16)


def _names(generator: np.random.Generator, rows: int) -> pa.StringArray:
    import pyarrow.compute as pc

    names = _all_names()
    given = names.take(generator.integers(0, len(names), rows))
    family = names.take(generator.integers(0, len(names), rows))
    space = pa.array([" "]).take(np.zeros(rows, dtype=np.int64))
    return pc.binary_join_element_wise(given, family, space)


@cache
def _all_names() -> pa.StringArray:
    return pa.array(
        [(a + b + c).capitalize() for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES]
    )


@cache
def _all_zips() -> pa.StringArray:
    return pa.array([f"{code:05d}" for code in range(100_000)])


def _zips(generator: np.random.Generator, rows: int) -> Codes:
    """Areas of three digits, some of them populous, with a few post offices in each."""
    area = (_ZIP_AREAS * generator.power(0.45, rows)).astype(np.int64)
    office = (20 * generator.power(0.6, rows)).astype(np.int64)
    return (100 + area * 3) * 100 + office * 4 + 1


def _incomes(
    generator: np.random.Generator, age: NDArray[np.int16], occupation: Codes
) -> NDArray[np.int32]:
    typical = np.array([thousands for _, thousands in _OCCUPATIONS.values()])[occupation]
    seniority = 0.75 + 0.5 * (np.minimum(age, 60) - 18) / 42
    spread = generator.lognormal(0, 0.25, len(age))
    return (np.round(typical * seniority * spread, 1) * 1000).astype(np.int32)


def _diagnoses(generator: np.random.Generator, age: NDArray[np.int16]) -> Codes:
    younger, older = zip(*_DIAGNOSES.values(), strict=True)
    return np.where(
        age < 50,
        _weighted(generator, younger, len(age)),
        _weighted(generator, older, len(age)),
    )


def _weighted(generator: np.random.Generator, shares: Sequence[int], rows: int) -> Codes:
    """(rows,) codes drawn with these shares."""
    edges = np.cumsum(shares) / np.sum(shares)
    return np.searchsorted(edges, generator.random(rows), side="right")


def _text(
    generator: np.random.Generator, column: str, values: pa.StringArray, codes: Codes
) -> pa.StringArray:
    return values.take(pa.array(codes, pa.int64(), mask=_missing(generator, column, len(codes))))


def _missing(generator: np.random.Generator, column: str, rows: int) -> NDArray[np.bool_]:
    return generator.random(rows) < _MISSING[column]
