"""A table with values that no message and no log may show."""

from __future__ import annotations

import pyarrow as pa

CANARIES = ("Canaria", "Quasimodo", "77317731", "Secretus", "123-45-6789")


def canary_people(rows: int) -> pa.Table:
    """Columns ``ssn``, ``age``, ``country``, ``zip`` and ``illness``, each with a canary."""
    return pa.table(
        {
            "ssn": ["123-45-6789"] * rows,
            "age": [77317731 if at == 3 else at % 7 for at in range(rows)],
            "country": ["Canaria" if at == 5 else "Italy" for at in range(rows)],
            "zip": ["Quasimodo" if at == 6 else f"10{at % 3}" for at in range(rows)],
            "illness": ["Secretus" if at % 2 else "flu" for at in range(rows)],
        }
    )
