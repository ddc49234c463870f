"""What is written from the models of a job: the JSON Schema, and the tables of the documentation.

The schema says how a job is to be written, so that an editor completes and checks it. ``Job`` takes
more: numbers as texts, and null for what is not given. It also refuses more: options that do not go
together, and a missing input or output, which a DAG or ``--set`` may still give to a job file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mondrian_ops.job.job import Job
from mondrian_ops.job.options import Option, Options, expected, options_of

TYPES: Mapping[type | None, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
}
"""Types of options as JSON Schema names them."""


def job_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7, which editors know) of a job file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Job of mondrian_ops",
        "description": "One anonymization of a data set.",
        **_model_schema(Job),
    }


def _model_schema(model: type[Options]) -> dict[str, Any]:
    options = {**options_of(model), **model.added()}
    return {
        "type": "object",
        "properties": {name: _option_schema(each) for name, each in options.items()},
        "required": [name for name, each in options.items() if each.required and not each.nullable],
        "additionalProperties": False,
    }


def _option_schema(option: Option) -> dict[str, Any]:
    text = f"{sentences(option)} {option.details}".strip()
    description = text + _choices(option, "\n- ")
    schema = {"title": option.title, "description": description}
    return schema | _values_schema(option) | _examples(option)


def _values_schema(option: Option) -> dict[str, Any]:
    """The type of an option, and its default."""
    item = _item_schema(option)
    if option.shape == "list":
        fewest = {"minItems": 1} if option.required else {}
        return {"type": ["array", "string"], "items": item, **fewest}
    if option.shape == "mapping":
        texts: dict[str, Any] = {"type": ["string", "number", "boolean"]}
        if option.words:
            texts = {"enum": list(option.words)}
        listed = {"type": "string", "pattern": "="}
        return {"type": ["object", "array"], "additionalProperties": texts, "items": listed}
    if option.default is not None and option.model is None:
        item["default"] = option.default
    return item


def _item_schema(option: Option) -> dict[str, Any]:
    """One value, or one item of a list."""
    if option.model is not None:
        schema = _model_schema(option.model)
        return {"anyOf": [{"type": "string"}, schema]} if option.shape == "list" else schema
    words: dict[str, Any] = {"enum": list(option.words)}
    if option.kind is None:
        return words
    kind = TYPES[option.kind]
    schema = {"type": [kind, "number"] if option.numbers else kind, **limits_of(option)}
    if option.required and option.kind is str and not option.blank:
        schema["minLength"] = 1
    if option.whole_from is not None:
        whole = {"type": "integer", "minimum": option.whole_from}
        percent = {"type": "string", "pattern": "^[0-9.]+ *%$"}
        return {"anyOf": [{**schema, "exclusiveMaximum": option.whole_from}, whole, percent]}
    return {"anyOf": [schema, words]} if option.words else schema


def limits_of(option: Option) -> dict[str, float]:
    """The limits of a number, as JSON Schema names them."""
    limits = {
        "minimum": option.minimum,
        "exclusiveMinimum": option.above,
        "maximum": option.maximum,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def _examples(option: Option) -> dict[str, Any]:
    examples = [list(each) if isinstance(each, tuple) else each for each in option.examples]
    return {"examples": examples} if examples else {}


def sentences(option: Option) -> str:
    """What an option is for, and which numbers it takes."""
    if not limits_of(option):
        return option.text
    limits = expected(option)
    if option.shape == "list":
        return f"{option.text} Each is {limits}."
    return f"{option.text} {limits[0].upper()}{limits[1:]}."


def _choices(option: Option, before: str) -> str:
    """What each word of an option means, each on a line that begins with ``before``."""
    return "".join(f"{before}`{word}`: {text}." for word, text in option.choices.items())


def option_table(model: type[Options]) -> str:
    """The table of a model's options in Markdown: key, default and meaning."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for name, each in options_of(model).items():
        see = f"See {each.see}." if each.see else ""
        meaning = " ".join(filter(None, (sentences(each), each.details, see)))
        meaning += _choices(each, "<br>")
        lines.append(f"| `{name}` | {_default(each)} | {meaning.replace('|', '&#124;')} |")
    return "\n".join(lines)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    if option.model is not None and option.default is not None:
        return f"[below](#{option.name})"
    if option.default in (None, ()) or isinstance(option.default, Mapping):
        return option.unset or "none"
    default = option.default
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"
