"""Where a release that becomes a table has its files: all in one folder of the table's location.

::

    LOCATION/_mondrian_ops/TOKEN/               the parts and the report of one attempt, for good
    LOCATION/_mondrian_ops/.CATALOG@NAMESPACE.TABLE.mondrian_ops-…/      working files of one run

Programs that remove orphan files skip each folder whose name begins with an underscore or a dot.
"""

from __future__ import annotations

import re

from mondrian_ops.stores.locations import joined, name_of, parent_of, parts_of

FOLDER = "_mondrian_ops"
_SCHEME = "iceberg"
_TOKEN = re.compile(r"[0-9a-f]{32}")


def beside(location: str, url: str) -> str:
    """The location in a table's folder beside which the working files of its runs lie."""
    base, path = parts_of(url)
    catalog, table = base.partition("://")[2], path.strip("/").replace("/", ".")
    return joined(location, FOLDER, f"{catalog}@{table}")


def table_of(beside: str) -> str | None:
    """The URL of the table for which :func:`beside` returned this; None if it did not."""
    catalog, mark, table = name_of(beside).rpartition("@")
    if not mark or name_of(parent_of(beside)) != FOLDER:
        return None
    return f"{_SCHEME}://{catalog}/{table}"


def of_attempt(folder: str, token: str) -> str:
    """The directory of an attempt's parts in the folder of a table."""
    return joined(folder, token)


def is_token(name: str) -> bool:
    """Whether a directory in the folder of a table is that of an attempt."""
    return _TOKEN.fullmatch(name) is not None


def is_part(url: str) -> bool:
    """Whether a file may be a part of a release that becomes a table."""
    attempt = parent_of(url)
    return is_token(name_of(attempt)) and name_of(parent_of(attempt)) == FOLDER
