"""The catalogue: what was released, when, from what and of whom, in one database.

Importing this package imports no SQLAlchemy: DAG files and small jobs, which never open the
catalogue, start without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mondrian_ops.catalogue.place import Place, current, use
from mondrian_ops.late_names import late_names

if TYPE_CHECKING:
    from mondrian_ops.catalogue.database import Catalogue

__all__ = ["Catalogue", "Place", "current", "use"]

__getattr__ = late_names(__name__, {"database": ["Catalogue"]})
