"""The files of the rows that wait: original rows, so they are as private as working files.

They lie in ``.mondrian_waiting`` beside the releases of the series, in a directory for each series:
mode 0700, the files 0600 (S3 has no such permissions). The directory's name is a keyed hash: it
tells the series to nobody, and the series of another catalogue have other directories. A night
writes one file, named by its number and its attempt, with all rows that wait after it. Once the
night is current, no other file up to its number is of use: it was consumed, or belongs to an
attempt that lost.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from mondrian_ops import catalogue, stores
from mondrian_ops.publish.publication import publication_of
from mondrian_ops.stores.access_policy import check_writing
from mondrian_ops.stores.files import make_private, new_file, open_file, remove_file
from mondrian_ops.stores.locations import WAITING
from mondrian_ops.stores.store import store_of

_ARRIVALS = b"mondrian_ops:arrivals"
_NAME = re.compile(r"(\d{6})-[0-9a-f]+\.parquet")
_UNFINISHED = re.compile(rf"\.{_NAME.pattern}\.[0-9a-f]{{8}}\.tmp")


def directory_of(series: str) -> str:
    """The directory of a series' waiting rows: beside its releases, above the first date.

    That of a table is where the tables of its namespace lie.
    """
    above = publication_of(series).above(series.partition("*")[0])
    return stores.joined(above, WAITING, name_of(series))


def name_of(series: str) -> str:
    """The name of the directory of a series."""
    key = catalogue.current().key
    return hashlib.blake2b(series.encode(), key=key, digest_size=12).hexdigest()


def file_of(series: str, number: int, token: str) -> str:
    """The file of the rows that wait after an attempt at a night."""
    return stores.joined(directory_of(series), f"{number:06d}-{token}.parquet")


def is_file_name(name: str) -> bool:
    """Whether :func:`write` may have given a file this name, if only until it was whole."""
    return _NAME.fullmatch(name) is not None or _UNFINISHED.fullmatch(name) is not None


def write(
    file: str, schema: pa.Schema, tables: Iterable[pa.Table], arrivals: Mapping[int, str]
) -> None:
    """Write rows that wait, flushed to disk, as a whole or not at all.

    ``arrivals``: the signature of how the rows of each night came. Whoever can write to the
    database only can put back an older row of the night, but not an older signature here.
    """
    check_writing(file)
    schema = schema.with_metadata({_ARRIVALS: json.dumps(arrivals)})
    directory = file.rpartition("/")[0]
    for each in (directory.rpartition("/")[0], directory):
        with suppress(FileExistsError):
            make_private(each)
        store_of(each).keep_private(each)
    with new_file(file, durable=True) as sink, pq.ParquetWriter(sink, schema) as writer:
        for table in tables:
            writer.write_table(table)
    store_of(file).keep_file(file, 3)  # or a power failure loses the name of the file


def arrivals_in(file: str) -> dict[int, str]:
    """The signatures that :func:`write` has kept with the rows; of earlier versions none."""
    with open_file(file) as source:
        kept = (pq.read_schema(source).metadata or {}).get(_ARRIVALS, b"{}")
    return {int(number): signature for number, signature in json.loads(kept).items()}


def remove_used(series: str, number: int, files: Iterable[str]) -> None:
    """Remove the files up to a night that is current, except for its own ``files``."""
    directory, own = directory_of(series), {file.rpartition("/")[2] for file in files}
    with suppress(FileNotFoundError):
        for name in stores.names_in(directory):
            found = _NAME.fullmatch(name)
            if found is not None and int(found[1]) <= number and name not in own:
                remove_file(stores.joined(directory, name))
