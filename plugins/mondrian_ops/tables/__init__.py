"""How rows are read: CSV, Parquet, tables in memory and what other packages add, behind `Table`.

Imports stores, and of cut the plan alone, by which a reader skips rows. Knows no release. Public:
the names in ``__init__.pyi``, each imported on first use.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
