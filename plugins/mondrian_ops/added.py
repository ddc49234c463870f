"""What other packages add by entry points: the rules that all kinds of them have in common.

Every start imports this module, so it reads the list of entry points only when a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mondrian_ops.errors import MondrianOpsError
from mondrian_ops.late_methods import dataclass

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Group:
    """The entry points of one kind.

    Attributes:
        name: of their group.
        what: each is, such as "criterion".
        error: is raised for a package that is wrong.
        mark: is behind the name of an entry point in errors.
    """

    name: str
    what: str
    error: type[MondrianOpsError]
    mark: str = ""

    def names(self) -> list[str]:
        """The names of the entry points, sorted."""
        return sorted({each.name for each in self._all()})

    def entry(self, name: str) -> EntryPoint | None:
        """The entry point of a name; None if there is none.

        Raises the group's error where two packages give the name to different classes.
        """
        found = {each.value: each for each in self._all() if each.name == name}
        if len(found) > 1:
            raise self.error(
                f"{name}{self.mark}: two packages add a {self.what} of this name, "
                f"{' and '.join(sorted(found))}; remove one of the packages"
            )
        return next(iter(found.values()), None)

    def loaded(self, entry: EntryPoint, base: type[Any]) -> type[Any]:
        """The class of an entry point, a subclass of ``base``; raises the group's error."""
        subject = f"{entry.name}{self.mark}"
        try:
            kind = entry.load()
        except Exception as error:
            raise self.error(
                f"{subject}: the package that adds this {self.what} cannot be imported "
                f"({type(error).__name__} in {entry.value}); repair or remove it"
            ) from error
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise self.error(
                f"{subject}: {entry.value} is not a subclass of {base.__module__}.{base.__name__}; "
                f"correct the entry point of its package in {self.name}"
            )
        missing: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
        if missing:
            raise self.error(f"{subject}: {entry.value} lacks {', '.join(sorted(missing))}; add it")
        return kind

    def _all(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # slow, and seldom asked for

        return list(entry_points(group=self.name))
