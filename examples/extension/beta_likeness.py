"""β-likeness (Cao and Karras, Publishing Microdata with a Robust Privacy Guarantee, VLDB 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mondrian_ops.job.criterion import Counts, Criterion
from mondrian_ops.job.options import option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BetaLikeness(Criterion):
    """No value is much more frequent in a class than in all rows (definition 2).

    A value with the share p of all rows and q of a class has (q - p) / p at most β. A union of two
    classes that satisfy it satisfies it, too: its q lies between those of the classes.
    """

    title = "β-likeness"
    at_most = True

    beta: float = option(
        text="By how much, relative to its share of all rows, the share of a sensitive value in an "
        "equivalence class may be greater at most.",
        above=0,
        examples=(2,),
    )

    @property
    def level(self) -> float:
        return self.beta

    def holds(self, counts: Counts) -> NDArray[np.bool_]:
        """In whole numbers: q rows of n in a class, p of N in all, (qN - pn) at most β pn."""
        import numpy as np

        rows, of_all = counts.classes.sum(axis=1, keepdims=True), counts.whole.sum()
        expected = counts.whole * rows
        holds = counts.classes * of_all - expected <= self.beta * expected * (1 + 1e-12)
        return np.all(holds, axis=1)

    def measure(self, counts: Counts) -> NDArray[np.float64]:
        import numpy as np

        of_all = counts.whole / counts.whole.sum()
        of_class = counts.classes / counts.classes.sum(axis=1, keepdims=True)
        occurs = of_all > 0
        return np.max(of_class[:, occurs] / of_all[occurs], axis=1) - 1

    def says(self, column: str) -> str:
        return f"β-likeness of {column}, β = {self.beta:g}"

    def means(self, columns: str) -> str:
        return (
            f"no value of {columns} is more than {1 + self.beta:g} times as frequent in a class as "
            "in the whole release."
        )

    def covers(self, earlier: BetaLikeness) -> bool:
        """A smaller β promises more."""
        return self.beta <= earlier.beta
