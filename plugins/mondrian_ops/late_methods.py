"""Dataclasses whose methods are compiled when they are first called.

:func:`dataclasses.dataclass` writes ``__init__``, ``__repr__``, ``__eq__`` and three more as text
and compiles it: half a millisecond for each class, and a run imports more than a hundred, most of
which it never makes. :func:`dataclass` takes the place of it for frozen classes: their fields are
there at once, their methods at the first call. To a type checker it is the one of the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
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


_LATE = ("__init__", "__repr__", "__eq__", "__hash__")


@dataclasses.dataclass(frozen=True, slots=True)
class _Slotted:
    """Has the methods with which the library pickles a frozen class with slots."""


_PICKLING = {name: vars(_Slotted)[name] for name in ("__getstate__", "__setstate__")}


def _with_late_methods(cls: type, **options: Any) -> Any:
    """The frozen dataclass, each of whose methods is compiled when it is called."""
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
        compiled = _compiled(made, name)
        setattr(made, name, compiled)
        return compiled(self, *values, **named)

    method.__name__ = name
    return method


def _compiled(made: type, name: str) -> Callable[..., Any]:
    """The method that the library writes for a class of the same fields."""
    # Types are not looked at by these methods; the library parses those that are text.
    fields = [(each.name, object, _copied(each)) for each in dataclasses.fields(made)]
    namespace = {"__doc__": made.__doc__}
    if hasattr(made, "__post_init__"):
        namespace["__post_init__"] = None
    written: dict[str, Any] = {
        "init": name == "__init__",
        "repr": name == "__repr__",
        "eq": name in ("__eq__", "__hash__"),
    }
    twin = dataclasses.make_dataclass(
        made.__name__, fields, namespace=namespace, frozen=True, **written
    )
    method: Callable[..., Any] = vars(twin)[name]
    method.__qualname__ = f"{made.__qualname__}.{name}"  # errors name it
    return method


def _copied(field: dataclasses.Field[Any]) -> Any:
    """The field as it was declared: the library changes those that it takes."""
    kept = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    return dataclasses.field(**{name: getattr(field, name) for name in kept})


def _set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
