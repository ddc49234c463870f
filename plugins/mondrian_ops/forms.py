"""The fields of trigger forms, and what they say once a DAG runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from airflow.sdk import Param
from airflow.sdk.definitions.param import DagParam

if TYPE_CHECKING:
    from airflow.sdk import Context

_NAMELESS = ("''", '""')

__all__ = ["Answer", "choice", "columns", "text"]


def text(default: str, **schema: Any) -> Param:
    """A text that must be given."""
    return Param(default, type="string", minLength=1, **schema)


def columns(default: list[str], **schema: Any) -> Param:
    """A list of texts, one a line in the form."""
    return Param(default, type="array", items={"type": "string"}, **schema)


def choice(among: Any, **schema: Any) -> Param:
    """One of the words of a ``Literal``, the first unless another is chosen."""
    words = list(get_args(among) or among)
    return Param(words[0], type="string", enum=words, **schema)


def _line(item: Any) -> Any:
    """A line of a list, in which two quotes stand for the empty name."""
    if not isinstance(item, str):
        return item
    name, equals, how = item.partition("=")
    return equals + how if name.strip() in _NAMELESS else item


class Answer(DagParam):
    """What the form says under a name, once the DAG runs.

    Airflow writes it down as text among the arguments of mapped tasks, and takes a DAG whose text
    is another one for a new version: so no address in memory may stand there.
    """

    def resolve(self, context: Context) -> Any:
        """The value. Of a list emptied lines are left out; a column without a name is ``''``."""
        value = super().resolve(context)
        if not isinstance(value, list):
            return value
        return [_line(each) for each in value if not (isinstance(each, str) and not each.strip())]

    def __repr__(self) -> str:
        return f"params[{self._name!r}]"
