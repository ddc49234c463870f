"""Dataclasses whose methods are compiled only where they are called often.

:func:`dataclasses.dataclass` writes ``__init__``, ``__repr__``, ``__eq__`` and three more as text
and compiles it: half a millisecond for each class, and a run imports more than a hundred, of most
of which it makes few objects or none. :func:`dataclass` takes the place of it for frozen classes:
their fields are there at once, their methods at the first call. To a type checker it is the one of
the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As :func:`dataclasses.dataclass`; late methods where no field is inherited."""
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        is_plain = options.keys() <= {"frozen", "slots", "kw_only"} and options.get("frozen")
        if not is_plain or any(map(dataclasses.is_dataclass, cls.__mro__)):
            return dataclasses.dataclass(cls, **options)
        return _with_late_methods(cls, **{**options, "frozen": False})


_OFTEN = 200
"""Objects of a class that take as long as compiling its ``__init__``, which makes them faster."""

_LATE = ("__init__", "__repr__", "__eq__", "__hash__")


@dataclasses.dataclass(frozen=True, slots=True)
class _Slotted:
    """Has the methods with which the library pickles a frozen class with slots."""


_PICKLING = {name: vars(_Slotted)[name] for name in ("__getstate__", "__setstate__")}


def _with_late_methods(cls: type, **options: Any) -> Any:
    """The frozen dataclass, each of whose methods is made when it is called."""
    kept = {name for name in _LATE if vars(cls).get(name) is not None}
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the library writes one, of `__init__`
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
    params = made.__dataclass_params__
    params.init = params.repr = params.eq = params.frozen = True
    for name in _LATE:
        if name not in kept:
            setattr(made, name, _late(made, name))
    made.__setattr__, made.__delattr__ = _set, _delete
    for name in _PICKLING if options.get("slots") else ():
        setattr(made, name, _PICKLING[name])
    return made


def _late(made: type, name: str) -> Callable[..., Any]:
    def method(self: Any, *values: Any, **named: Any) -> Any:
        used = _WRITTEN[name](made) if name in _WRITTEN else _by_library(made, name)
        return _set_method(made, name, used)(self, *values, **named)

    method.__name__ = name
    return method


def _set_method(made: type, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"  # errors name it
    setattr(made, name, method)
    return method


def _init(made: type) -> Callable[..., Any]:
    """Does as the library's method, which takes its place where it pays to compile it."""
    fields = dataclasses.fields(made)
    known = {each.name for each in fields if each.init}
    in_order = [each.name for each in fields if each.init and not each.kw_only]
    defaults, factories = {}, {}
    for each in fields:
        if each.default is not dataclasses.MISSING:
            defaults[each.name] = each.default
        elif each.default_factory is not dataclasses.MISSING:
            factories[each.name] = each.default_factory
    required, checks = known - {*defaults, *factories}, hasattr(made, "__post_init__")
    calls = iter(range(_OFTEN if len(known) == len(fields) else 0))

    def method(self: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(in_order, values, strict=False)) | named
        fits = len(given) == len(values) + len(named) and required <= given.keys() <= known
        if not fits or next(calls, None) is None:
            compiled = _set_method(made, "__init__", _by_library(made, "__init__"))
            compiled(self, *values, **named)
            return
        for name in defaults.keys() - given.keys():
            given[name] = defaults[name]
        for name in factories.keys() - given.keys():
            given[name] = factories[name]()
        for name, value in given.items():
            object.__setattr__(self, name, value)
        if checks:
            self.__post_init__()

    return method


def _eq(made: type) -> Callable[..., Any]:
    values = _values(each.name for each in dataclasses.fields(made) if each.compare)

    def method(self: Any, other: Any) -> Any:
        same = other.__class__ is self.__class__
        return values(self) == values(other) if same else NotImplemented

    return method


def _hash(made: type) -> Callable[..., Any]:
    fields = dataclasses.fields(made)
    hashed = [each.compare if each.hash is None else each.hash for each in fields]
    values = _values(each.name for each, is_hashed in zip(fields, hashed, strict=True) if is_hashed)
    return lambda self: hash(values(self))


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the tuple of an object's fields."""
    names = tuple(names)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


_WRITTEN = {"__init__": _init, "__eq__": _eq, "__hash__": _hash}


def _by_library(made: type, name: str) -> Callable[..., Any]:
    """The method that the library writes."""
    # Types are not looked at by these methods; the library parses those that are text.
    fields = [(each.name, object, _copied(each)) for each in dataclasses.fields(made)]
    namespace = {"__doc__": made.__doc__}
    if hasattr(made, "__post_init__"):
        namespace["__post_init__"] = None
    written: dict[str, Any] = {"init": name == "__init__", "repr": name == "__repr__", "eq": False}
    twin = dataclasses.make_dataclass(
        made.__name__, fields, namespace=namespace, frozen=True, **written
    )
    method: Callable[..., Any] = vars(twin)[name]
    return method


def _copied(field: dataclasses.Field[Any]) -> Any:
    """The field as it was declared: the library changes those that it takes."""
    kept = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    return dataclasses.field(**{name: getattr(field, name) for name in kept})


def _set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
