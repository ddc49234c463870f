"""What the policies of an input ask of what is shown of it, and of the job that is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from mondrian_ops.job.policy import Policy, folded, required_roles
from mondrian_ops.late_methods import dataclass

K, L = 5, 2

RequiredRole: TypeAlias = Literal["identifier", "quasi_identifier", "sensitive", "left_out"]
_ROLES: tuple[RequiredRole, ...] = ("identifier", "quasi_identifier", "sensitive")


@dataclass(frozen=True)
class Floor:
    """The strictest of what the policies ask; without one, `K` people and `L` values."""

    policies: Sequence[Policy] = ()

    @property
    def k(self) -> int:
        """A value of fewer people is not shown; it is the ``k`` of the proposed job, too."""
        return max([K, *(policy.min_k or 0 for policy in self.policies)])

    @property
    def l(self) -> float:  # noqa: E743
        """The ``l`` of the proposed job."""
        return max([L, *(policy.min_l or 0 for policy in self.policies)])

    def role(self, column: str) -> RequiredRole | None:
        """The role that policies give a column; None if they leave it open.

        A column with two roles may be published as an identifier only.
        """
        found: set[str] = set()
        for policy in self.policies:
            roles = required_roles(policy, column).values()
            if policy.others == "drop" and not roles:
                return "left_out"
            found.update(roles)
        given = [role for role in _ROLES if role in found]
        return None if not given else given[0] if len(given) == 1 else "identifier"

    def is_entity_id(self, column: str) -> bool:
        """Whether a policy says that the column tells people apart."""
        names = [policy.entity_id for policy in self.policies if policy.entity_id is not None]
        return folded(column) in map(folded, names)
