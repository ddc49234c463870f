"""The fields of trigger forms, and what they say once a DAG runs."""

from __future__ import annotations

from typing import Any, get_args

from airflow.sdk import Param
from airflow.sdk.definitions.param import DagParam

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


class Answer(DagParam):
    """What the form says under a name, once the DAG runs.

    Airflow writes it down as text among the arguments of mapped tasks, and takes a DAG whose text
    is another one for a new version: so no address in memory may stand there.
    """

    def __repr__(self) -> str:
        return f"params[{self._name!r}]"
