"""The trigger form of a job: its fields, and what a task is told that they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param
from airflow.sdk.definitions.param import DagParam

from mondrian_ops.core.job import Job
from mondrian_ops.core.job_schema import TYPES, limits_of, sentences
from mondrian_ops.core.options import Option, flat_options

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

_NAMELESS = ("''", '""')

__all__ = ["Answer", "columns", "job_answers", "job_form"]


def job_form(*names: str, **defaults: Any) -> dict[str, Param]:
    """The fields of a trigger form for a job: those of ``names``, else all that fit into a form.

    ``defaults`` are those of the form where they are not the job's. The options of sections have
    names of their own, such as ``spark_conf``.
    """
    return {
        name: _field(option, defaults.get(name, option.default))
        for name, (_path, option) in flat_options(Job).items()
        if (name in names if names else option.form is not None)
    }


def job_answers(dag: DAG, names: Iterable[str]) -> dict[str, Any]:
    """The job that the fields ``names`` of a DAG's form describe, once the DAG runs."""
    job: dict[str, Any] = {}
    for name in names:
        section, _, key = flat_options(Job)[name][0].rpartition(".")
        (job.setdefault(section, {}) if section else job)[key] = Answer(dag, name)
    return job


def columns(default: Iterable[str], text: str, **schema: Any) -> Param:
    """A list of texts, one a line in the form."""
    return Param(
        list(default), type="array", items={"type": "string"}, description_md=text, **schema
    )


def _field(option: Option, default: Any) -> Param:
    schema: dict[str, Any] = {"title": option.title}
    if option.form:
        schema["section"] = option.form
    if option.shape != "one":
        fewest = {"minItems": 1} if option.required else {}
        return columns(default, f"{option.text} {_lines(option)}", **schema, **fewest)
    if option.kind is None:
        meanings = {word: f"{word}: {text}" for word, text in option.choices.items()}
        schema |= {"enum": list(option.words), "values_display": meanings}
        return Param(default, type="string", description_md=option.text, **schema)
    return _value_field(option, default, schema)


def _value_field(option: Option, default: Any, schema: dict[str, Any]) -> Param:
    """A text, a number or a flag; of one that may be left empty the form says what then holds."""
    kind: str | list[str] = TYPES[option.kind]
    text = sentences(option)
    if option.words:  # such as `auto`, which the empty field stands for
        kind = ["null", TYPES[option.kind]]
        default = None if default in option.words else default
        text = f"{option.text} Empty: {'; '.join(option.choices.values())}."
    elif option.nullable and not option.required:
        kind = ["null", TYPES[option.kind]]
        text += f" Empty: {option.unset}." if option.unset else ""
    elif option.kind is str:
        schema["minLength"] = 1
    schema |= limits_of(option)
    return Param(default, type=kind, description_md=text, **schema)


def _lines(option: Option) -> str:
    """How the lines of a list are written."""
    if not option.examples:
        return "One per line."
    example = option.examples[0]
    if isinstance(example, Mapping):
        example = [f"{name}={value}" for name, value in example.items()]
    return f"One per line, such as {', '.join(f'`{line}`' for line in example)}."


class Answer(DagParam):
    """What the form says under a name, once the DAG runs.

    Airflow writes it down as text among the arguments of mapped tasks, and a DAG whose text changed
    is a new version of it: so the text has no address in memory.
    """

    def resolve(self, context: Context) -> Any:
        """The value. Of a list emptied lines are left out; a column without a name is ``''``."""
        value = super().resolve(context)
        if not isinstance(value, list):
            return value
        return [_line(each) for each in value if not (isinstance(each, str) and not each.strip())]

    def __repr__(self) -> str:
        return f"params[{self._name!r}]"


def _line(item: Any) -> Any:
    """A line of a list, in which two quotes stand for the empty name."""
    if not isinstance(item, str):
        return item
    name, equals, how = item.partition("=")
    return equals + how if name.strip() in _NAMELESS else item
