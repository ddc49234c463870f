"""The catalogue: what was released, when, from what and of whom, in one database.

Importing this package imports no SQLAlchemy: DAG files and small jobs, which never open the
catalogue, start without it.
"""

from mondrian_ops.late_names import late_names

__getattr__ = late_names(__name__)
