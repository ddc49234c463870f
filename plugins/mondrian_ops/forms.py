"""The trigger form of a job: its fields, and the job that their values describe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param
from airflow.sdk.definitions.param import DagParam

from mondrian_ops.job.job import Job
from mondrian_ops.job.options import Option, flat_options
from mondrian_ops.job.schema import TYPES, limits_of, sentences

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

_NAMELESS = ("''", '""')
_CODE = re.compile(r"`([^`]+)`")

__all__ = ["Answer", "columns", "job_answers", "job_form"]


def job_form(*names: str, **defaults: Any) -> dict[str, Param]:
    """The fields of a trigger form for a job: those named, or all that belong in a form.

    ``defaults`` replace the job's own defaults. An option of a section has a flat name, such as
    ``spark_conf`` for ``spark.conf``.
    """
    return {
        name: _field(option, defaults.get(name, option.default))
        for name, (_path, option) in flat_options(Job).items()
        if (name in names if names else option.form is not None)
    }


def job_answers(dag: DAG, names: Iterable[str]) -> dict[str, Any]:
    """The job that the fields ``names`` of a DAG's form describe; each run has its own values."""
    job: dict[str, Any] = {}
    for name in names:
        section, _, key = flat_options(Job)[name][0].rpartition(".")
        (job.setdefault(section, {}) if section else job)[key] = Answer(dag, name)
    return job


def columns(default: Iterable[str], text: str, **schema: Any) -> Param:
    """A field that holds a list of texts, one per line."""
    schema = {"type": "array", "items": {"type": "string"}, **schema}
    return _param(list(default), text, **schema)


def _param(default: Any, text: str, **schema: Any) -> Param:
    """A field with its description, bold in place of code: Airflow's boxes hide the line above."""
    return Param(default, description_md=_CODE.sub(_bold, text), **schema)


def _bold(code: re.Match[str]) -> str:
    """Code in bold; the name of an option is its title, as the form shows it."""
    name, colon, value = code[1].partition(":")
    _path, option = flat_options(Job).get(name, ("", None))
    return f"**{option.title if option else name}{colon}{value}**"


def _field(option: Option, default: Any) -> Param:
    schema: dict[str, Any] = {"title": option.title}
    if option.form:
        schema["section"] = option.form
    if option.shape != "one":
        # Airflow lets a list be emptied only if it may be null.
        schema |= {"minItems": 1} if option.required else {"type": ["null", "array"]}
        return columns(default, f"{option.text} {_lines(option)}", **schema)
    if option.kind is None:
        meanings = {word: f"{word}: {text}" for word, text in option.choices.items()}
        empty = [None] if option.nullable else []
        kinds = ["null", "string"] if option.nullable else "string"
        schema |= {"enum": [*empty, *option.words], "values_display": meanings}
        return _param(default, option.text, type=kinds, **schema)
    return _value_field(option, default, schema)


def _value_field(option: Option, default: Any, schema: dict[str, Any]) -> Param:
    """A field for a text, a number or a flag; its description says what an empty one means."""
    kind: str | list[str] = TYPES[option.kind]
    text = sentences(option)
    if option.words:  # such as `auto`: an empty field means it
        kind = ["null", TYPES[option.kind]]
        default = None if default in option.words else default
        text = f"{option.text} Empty: {'; '.join(option.choices.values())}."
    elif option.nullable and not option.required:
        kind = ["null", TYPES[option.kind]]
        text += f" Empty: {option.unset}." if option.unset else ""
    elif option.kind is str:
        schema["minLength"] = 1
    schema |= limits_of(option)
    return _param(default, text, type=kind, **schema)


def _lines(option: Option) -> str:
    """How to write the lines of a list."""
    if not option.examples:
        return "One per line."
    example = option.examples[0]
    if isinstance(example, Mapping):
        example = [f"{name}={value}" for name, value in example.items()]
    return f"One per line, such as {', '.join(f'`{line}`' for line in example)}."


class Answer(DagParam):
    """The value of a form's field in a DAG run.

    Airflow stores the arguments of mapped tasks as text; a stable ``repr`` keeps it from recording
    a new version of the DAG.
    """

    def resolve(self, context: Context) -> Any:
        """The value; a list loses its empty lines, and the line ``''`` means an empty name."""
        value = super().resolve(context)
        if not isinstance(value, list):
            return value
        return [_line(line) for line in value if not (isinstance(line, str) and not line.strip())]

    def __repr__(self) -> str:
        return f"params[{self._name!r}]"


def _line(line: Any) -> Any:
    """A line of a list; two quotes as its column stand for the empty name."""
    if not isinstance(line, str):
        return line
    name, equals, how = line.partition("=")
    return equals + how if name.strip() in _NAMELESS else line
