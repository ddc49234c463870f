"""Options, each described once, in a field of a frozen dataclass.

A model is a subclass of :class:`Options` whose fields are made by :func:`option`. From the same
description :meth:`Options.read` reads a mapping, :mod:`mondrian_ops.job.schema` writes the
JSON Schema and the tables of the documentation, and :mod:`mondrian_ops.forms` the trigger form.

Values come from YAML, JSON, a Python dict, the trigger form or a rendered template. So a missing
key, ``None`` and an empty text all mean "not given", and a number may arrive as its text. Reading
raises JobError, which names the path of the key, the value and the remedy.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields, replace
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from mondrian_ops.errors import JobError, did_you_mean
from mondrian_ops.job import limits
from mondrian_ops.late_methods import dataclass

_SHOWN_CHARACTERS = 60
_LARGEST_WHOLE = 2**63 - 1

# A value that contains itself, or is huge, is cut before it is written out.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 2 * _SHOWN_CHARACTERS
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHOWN_CHARACTERS
_SHORT.maxlevel = 3


@dataclass(frozen=True, slots=True)
class Option:
    """An option: what its declaration says, and what the field and its annotation add.

    Declared are ``text``, what the option is for, in Markdown; ``title``, its label in the trigger
    form, if it is not the name; ``details`` and ``see``, what only the documentation adds;
    ``choices``, what each word means, in plain text; ``unset``, what holds where nothing is given;
    ``hint``, what an error adds; ``noun``, what a number or an item of a list is; ``minimum``,
    ``above`` and ``maximum`` of a number; ``whole_from``, from where on it is whole; ``limit``, the
    name of a limit on it or on the length of a list; ``form``, the section of the form, None to
    leave it out; ``flat``, whether the options of a section keep their names in the form;
    ``needs``, another option that has to be given with it; ``only_with``, other options and their
    words, without which it has no effect;
    ``always``, whether a description of the job has it even where it is the default; ``blank``,
    whether an empty text is a value; ``required``, which an option without a default is, too.

    The field adds ``name`` and ``default``; its annotation adds ``kind``, the type of a value or
    item (None: words only), ``words``, the literals that it may be, ``shape`` and ``nullable``.
    """

    text: str
    title: str = ""
    details: str = ""
    see: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    unset: str = ""
    hint: str = ""
    noun: str = ""
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    whole_from: float | None = None
    limit: str = ""
    examples: tuple[Any, ...] = ()
    form: str | None = ""
    flat: bool = False
    needs: str = ""
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    always: bool = False
    blank: bool = False
    numbers: bool = False  # a text that may be a number
    required: bool = False
    name: str = ""
    default: Any = None
    kind: type | None = None
    words: tuple[str, ...] = ()
    shape: Literal["one", "list", "mapping"] = "one"
    nullable: bool = False

    @property
    def model(self) -> type[Options] | None:
        """The model of a section, or of the items of a list; None for plain values."""
        return self.kind if self.kind is not None and issubclass(self.kind, Options) else None


def option(default: Any = MISSING, *, text: str, **described: Any) -> Any:
    """A field of a model, described; without a default it is required. See :class:`Option`."""
    metadata = {"option": Option(text, **described)}
    if isinstance(default, dict):
        return field(default_factory=dict, hash=False, metadata=metadata)
    return field(default=default, metadata=metadata)


SHARE: Mapping[str, Any] = {"noun": "a share", "minimum": 0, "maximum": 1}
"""What :func:`option` takes of a number from 0 to 1."""

ROWS_OR_SHARE: Mapping[str, Any] = {
    "noun": "a number of rows, or a share of them below 1",
    "minimum": 0,
    "whole_from": 1,
}
"""What :func:`option` takes of a limit that :func:`rows_of` reads."""


def rows_of(limit: float, rows: int) -> int:
    """The rows out of ``rows`` that a limit allows: a number or, below 1, a share of them."""
    return math.floor(limit * rows + 1e-9) if limit < 1 else int(limit)


_OPTIONS: dict[type[Options], Mapping[str, Option]] = {}


def options_of(model: type[Options]) -> Mapping[str, Option]:
    """The options of a model by name, in its order."""
    if model not in _OPTIONS:
        hints = get_type_hints(model)
        _OPTIONS[model] = {
            each.name: _completed(each, hints[each.name])
            for each in fields(model)  # type: ignore[arg-type]
            if "option" in each.metadata
        }
    return _OPTIONS[model]


def _completed(of: Field[Any], hint: Any) -> Option:
    """The option that a field declares, with what the field and its annotation say."""
    declared: Option = of.metadata["option"]
    default = of.default if of.default_factory is MISSING else of.default_factory()
    return replace(
        declared,
        name=of.name,
        title=declared.title or _title(of.name),
        required=declared.required or default is MISSING,
        default=None if default is MISSING else default,
        **_annotated(hint),
    )


def _title(name: str) -> str:
    return name if len(name) == 1 else name.replace("_", " ").capitalize()


def _annotated(hint: Any) -> dict[str, Any]:
    """What an annotation says: the type, its words, the shape, and whether it may be None."""
    described: dict[str, Any] = {}
    for part in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin = get_origin(part)
        if part is NoneType:
            described["nullable"] = True
        elif origin is Literal:
            described["words"] = get_args(part)
        elif origin is tuple:
            described |= {**_annotated(get_args(part)[0]), "shape": "list"}
        elif origin is Mapping:
            words = get_args(part)[1]
            described |= {"shape": "mapping", "kind": str}
            described["words"] = get_args(words) if get_origin(words) is Literal else ()
        else:
            described["kind"] = part
    return described


def flat_options(model: type[Options]) -> Mapping[str, tuple[str, Option]]:
    """The path and the option of each field of a form: ``spark_conf`` -> (``spark.conf``, …).

    Raises JobError where a section of a package would take the field of another option."""
    flat, added = dict[str, tuple[str, Option]](), model.added()
    for name, each in {**options_of(model), **added}.items():
        if each.model is None or each.shape != "one":
            flat[name] = (name, each)
            continue
        prefix = "" if each.flat else f"{name}_"
        for inner, of_section in options_of(each.model).items():
            if name in added:  # left empty, the section asks for nothing
                changed: dict[str, Any] = {"default": None, "required": False, "nullable": True}
                of_section = replace(of_section, **changed, form=each.form, unset=each.unset)
            in_form, path = prefix + inner, f"{name}.{inner}"
            if in_form in flat:
                problem = f"would be {in_form} in a form, which {flat[in_form][0]} is"
                raise wrong(path, f"{problem}; rename the entry point {name} of its package")
            flat[in_form] = (path, of_section)
    return flat


class Options:
    """Base of the models: frozen dataclasses whose fields are options.

    ``described`` says what a model is read from, for messages.
    """

    __slots__ = ()
    described: ClassVar[str] = "a mapping of options"

    @classmethod
    def read(cls, values: object, path: str = "", optional: Collection[str] = ()) -> Self:
        """The model that a mapping describes, or a text where the model has a short form.

        ``path`` is where the mapping stands in the job, ``optional`` names required options that
        may be missing here. Raises JobError.
        """
        if isinstance(values, str):
            values = cls.expanded(values, path)
        if not isinstance(values, Mapping):
            raise wrong(path or "job", f"must be {cls.described}, not {shown(values)}")
        options, given = options_of(cls), dict[str, Any]()
        if others := [key for key in values if key not in options]:
            added = cls.added()
            for key in others:
                if key not in added:
                    raise _unknown(cls, key, path, values[key])
            asked = [key for key in others if _is_asked(values[key])]
            sections = {key: _read(added[key], values[key], _joined(path, key)) for key in asked}
            given = cls.with_sections(sections)
        for name, each in options.items():
            where = _joined(path, name)
            value = _read(each, values.get(name), where)
            if value is not None:
                given[name] = value
            elif each.required and name not in optional:
                raise wrong(where, f"is required{_such_as(each)}")
            elif each.required and each.default is None:
                given[name] = None
        model = cls(**given).completed()
        model.check(path)
        _check_companions(model, path)
        return model

    def to_dict(self, complete: bool = False) -> dict[str, Any]:
        """The mapping that :meth:`read` reads back, made of JSON's types.

        It has what is not the default or ``always`` there; if ``complete``, all that is not None.
        """
        written = {}
        for name, each in options_of(type(self)).items():
            value = getattr(self, name)
            if value is not None if complete else each.always or value != each.default:
                written[name] = _plain(value)
        return written

    @classmethod
    def added(cls) -> Mapping[str, Option]:
        """The sections that installed packages add to the model, by name."""
        return {}

    @classmethod
    def with_sections(cls, sections: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the model that keep such sections, which were read."""
        return {}

    @classmethod
    def expanded(cls, text: str, path: str) -> object:
        """The mapping that a short form stands for; ``text`` itself where there are none."""
        return text

    def completed(self) -> Self:
        """The model with the values that others imply."""
        return self

    def check(self, path: str) -> None:
        """Raise JobError where the options, which are at ``path``, contradict each other."""


def _is_asked(section: object) -> bool:
    """Whether something is given for a section; a form that is left empty gives empty options."""
    if isinstance(section, Mapping) and section:
        return any(map(_is_asked, section.values()))
    return section is not None and not (isinstance(section, str) and not section.strip())


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return value.to_dict(complete=True)
    if isinstance(value, tuple):
        return [each.to_dict() if isinstance(each, Options) else each for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def _check_companions(model: Options, path: str) -> None:
    """Refuse an option without the one that it needs, or that has no effect with the others."""
    options = options_of(type(model))
    for name, each in options.items():
        if getattr(model, name) == each.default:
            continue
        where = _joined(path, name)
        if each.needs and not getattr(model, each.needs):
            example = _such_as(options[each.needs])
            raise wrong(where, f"needs {each.needs}{example}, or remove {name}")
        for other, words in each.only_with.items():
            if (word := getattr(model, other)) not in words:
                raise wrong(
                    where,
                    f"applies only to {other}: {' or '.join(words)}, not {word}; change one of "
                    f"them, or remove {name}",
                )


def wrong(path: str, problem: str) -> JobError:
    """The error about the option at ``path``; ``problem`` says the value and the remedy."""
    return JobError(f"{path}: {problem}")


def expected(option: Option) -> str:
    """What a number may be: ``a whole number of at least 2``, ``a share from 0 to 1``."""
    noun = option.noun or ("a whole number" if option.kind is int else "a number")
    words = ", ".join(f"`{word}`" for word in option.words)
    either = "" if not words else " or " if len(option.words) == 1 else " or one of "
    return noun + _bounds(option) + either + words


def _bounds(option: Option) -> str:
    minimum, above, maximum = option.minimum, option.above, option.maximum
    if option.whole_from is not None:
        return ""  # the noun says it
    if minimum is not None:
        return f" of at least {minimum}" if maximum is None else f" from {minimum} to {maximum}"
    if above is not None:
        return f" above {above}" + ("" if maximum is None else f" and at most {maximum}")
    return ""


def _such_as(option: Option) -> str:
    if not option.examples:
        return ""
    example = option.examples[0]
    example = list(example) if option.shape == "list" else example
    return f"; set it, such as {option.name}: {example}"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown(model: type[Options], key: object, path: str, value: object) -> JobError:
    known, flat = {**options_of(model), **model.added()}, flat_options(model)
    if str(key) in flat:
        return wrong(_joined(path, str(key)), f"is not a top-level option; use {flat[str(key)][0]}")
    hint = did_you_mean(str(key), known) or f"; known here: {', '.join(known)}"
    if not path and isinstance(value, Mapping):
        hint += "; if it is the section of a package, install that here"
    return wrong(_joined(path, str(key)), f"unknown option{hint}")


def _read(option: Option, value: object, path: str) -> Any:
    """The value of an option; None where it was not given."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or (isinstance(value, str) and not value.strip() and not option.blank):
        return None
    if option.shape == "list":
        return _read_list(option, value, path)
    if option.shape == "mapping":
        return {
            name: _one_of(option, text, f"{path}.{name}") if option.words else text
            for name, text in _read_pairs(option, value, path)
        }
    return _read_one(option, value, path)


def _read_list(option: Option, value: object, path: str) -> tuple[Any, ...] | None:
    """A list; None where it is empty."""
    items = _items(value, path)
    if option.limit and len(items) > limits.limit(option.limit):
        met = f"lists {len(items):,} entries"
        raise wrong(path, limits.exceeded(option.limit, met, "list fewer"))
    return tuple(_read_one(option, item, f"{path}[{at}]") for at, item in enumerate(items)) or None


def _items(value: object, path: str) -> Sequence[object]:
    """The items of a list, or of a text that separates them by commas.

    A list may be an array, or an index or a series of pandas.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str):
        if value.strip()[:1] in ("[", "("):
            raise wrong(path, f"{shown(value)} is the text of a list; pass the list itself")
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return value
    raise wrong(path, f"must be a list, not {shown(value)}; write it as [a, b]")


def _read_pairs(option: Option, value: object, path: str) -> Iterator[tuple[str, str]]:
    """Names and their texts: a mapping, or a list of texts ``name=value``."""
    if isinstance(value, Mapping):
        for name, text in value.items():
            if text is not None:
                yield str(name), _scalar_text(text, f"{path}.{name}")
        return
    if not isinstance(value, Sequence):
        raise wrong(path, f"must be a mapping, not {shown(value)}; write it as {{NAME: VALUE}}")
    for at, item in enumerate(_items(value, path)):
        if isinstance(item, str) and not item.strip():
            continue
        name, equals, text = item.partition("=") if isinstance(item, str) else ("", "", "")
        if not (name.strip() and equals):
            raise wrong(f"{path}[{at}]", f"must be {option.noun}, name=value, not {shown(item)}")
        yield name.strip(), text.strip()


def _scalar_text(value: object, path: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) or as_number(value) is not None:
        return str(value)
    raise wrong(path, f"must be text, not {shown(value)}; put it in quotes")


def _read_one(option: Option, value: object, path: str) -> Any:
    """One value, or one item of a list."""
    if isinstance(value, str) and value in option.words:
        return value
    if option.kind is None:
        return _one_of(option, value, path)
    if option.model is not None:
        return option.model.read(value, path)
    if option.kind is str and (isinstance(value, str) or option.numbers):
        return _scalar_text(value, path)
    if option.kind is str:
        raise wrong(path, f"must be {option.noun or 'text'}, not {shown(value)}; put it in quotes")
    return _flag(value, path) if option.kind is bool else _number(option, value, path)


def _one_of(option: Option, value: object, path: str) -> object:
    """The value, if it is one of the option's words."""
    if value in option.words:
        return value
    hint = did_you_mean(value, option.words) if isinstance(value, str) else ""
    raise wrong(path, f"{shown(value)} is not one of {', '.join(option.words)}{hint}")


def _flag(value: object, path: str) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    if isinstance(value, bool):
        return value
    raise wrong(path, f"must be true or false, not {shown(value)}")


def _number(option: Option, value: object, path: str) -> int | float:
    number = as_number(value)
    if number is None and option.whole_from is not None:
        number = percent_of(value)
    if number is None or not _fits(option, number):
        remedy = option.hint or (f"leave it out for {option.unset}" if option.unset else "")
        raise wrong(
            path,
            f"must be {expected(option)}, not {shown(value)}" + (f"; {remedy}" if remedy else ""),
        )
    if option.limit and option.shape == "one" and number > limits.limit(option.limit):
        raise wrong(path, limits.exceeded(option.limit, f"asks for {number:,}", "ask for fewer"))
    return int(number) if _is_whole(option, number) else number


def percent_of(value: object) -> float | None:
    """The share that a text such as ``1 %`` says."""
    text = value.strip() if isinstance(value, str) else ""
    number = as_number(text[:-1]) if text.endswith("%") else None
    return number / 100 if number is not None and 0 <= number < 100 else None


def _fits(option: Option, number: float) -> bool:
    return (
        (option.minimum is None or number >= option.minimum)
        and (option.above is None or number > option.above)
        and (option.maximum is None or number <= option.maximum)
        and (not _is_whole(option, number) or number == int(number))
    )


def _is_whole(option: Option, number: float) -> bool:
    """Whether a number of this size has to be whole."""
    return option.kind is int or (option.whole_from is not None and number >= option.whole_from)


def shown(value: object) -> str:
    """A value for an error message, cut to a readable length."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # a number of more digits than Python writes
        text = "a huge number"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def as_number(value: object) -> int | float | None:
    """The finite number that ``value`` is or spells, whole ones within 64 bits.

    None for anything else, booleans included.
    """
    if isinstance(value, str):
        value = _spelled_number(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) <= _LARGEST_WHOLE else None
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return None


def _spelled_number(text: str) -> int | float | None:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None
