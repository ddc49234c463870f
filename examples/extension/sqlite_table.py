"""Tables of SQLite: ``sqlite:///PATH/OF/THE/DATABASE/NAME_OF_THE_TABLE``."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from mondrian_ops.errors import InputError
from mondrian_ops.tables import Table

TYPES = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}


def _query(path, text, parameters=()):
    """The answer to a query; nothing is written."""
    try:
        database = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
        cursor = database.execute(text, parameters)
    except sqlite3.Error as error:
        raise InputError(f"{path}: {error}; give another database or table") from None
    return cursor


def _version(path):
    """What tells the contents of a database apart."""
    found = os.stat(path)
    return [found.st_mtime_ns, found.st_size]


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, kw_only=True)
class SqliteTable(Table):
    """A table of a database: one part of one piece, read in the order of its row ids."""

    path: str
    name: str
    version: list[int]

    @classmethod
    def open(cls, url):
        place = PurePosixPath(unquote(urlsplit(url).path))
        path, name = str(place.parent), place.name
        fields = []
        columns = "SELECT name, upper(type) FROM pragma_table_info(?)"
        for column, declared in _query(path, columns, [name]):
            if declared not in TYPES:
                raise InputError(
                    f"{url}: column {column!r} is of type {declared}; declare it as one of "
                    f"{', '.join(TYPES)}"
                )
            fields.append((column, TYPES[declared]))
        if not fields:
            raise InputError(f"{url}: there is no table {name!r}; give the name of one")
        version = _version(path)
        ((rows,),) = _query(path, f"SELECT count(*) FROM {_quoted(name)}")  # noqa: S608
        return cls(
            url=url,
            schema=pa.schema(fields),
            sizes=[(rows,)],
            path=path,
            name=name,
            version=version,
        )

    def read(self, part, columns, pieces, batch_rows, dictionaries):
        schema = pa.schema([self.schema.field(name) for name in columns])
        wanted = ", ".join(map(_quoted, columns))
        rows = _query(self.path, f"SELECT {wanted} FROM {_quoted(self.name)} ORDER BY rowid")  # noqa: S608
        while some := rows.fetchmany(batch_rows):
            try:
                arrays = [
                    pa.array(values, field.type)
                    for values, field in zip(zip(*some, strict=True), schema, strict=False)
                ]
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                # SQLite keeps any value in any column. Arrow's own text would show the value.
                raise InputError(
                    f"{self.url}: a value is not of the type of its column; correct it"
                ) from None
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def changed(self, part=None):
        try:
            is_same = _version(self.path) == self.version
        except FileNotFoundError:
            is_same = False
        return None if is_same else self.url
