"""Privacy criteria while cutting: what every equivalence class must satisfy.

One module per criterion, which cites its paper. `base` says what a criterion is, `privacy` which
ones a job asks for. `mondrian_ops.verify.criteria` measures each of them once more, on the release
as written, by code of its own.
"""

from mondrian_ops.cut.criteria.base import CutCriterion, Diversity
from mondrian_ops.cut.criteria.counted import CountedCriterion
from mondrian_ops.cut.criteria.distinct_diversity import DistinctDiversity
from mondrian_ops.cut.criteria.entropy_diversity import EntropyDiversity
from mondrian_ops.cut.criteria.k_anonymity import DistinctPersons, KAnonymity
from mondrian_ops.cut.criteria.privacy import Privacy
from mondrian_ops.cut.criteria.recursive_diversity import RecursiveDiversity
from mondrian_ops.cut.criteria.spread_diversity import SpreadDiversity
from mondrian_ops.cut.criteria.t_closeness import TCloseness

__all__ = [
    "CountedCriterion",
    "CutCriterion",
    "DistinctDiversity",
    "DistinctPersons",
    "Diversity",
    "EntropyDiversity",
    "KAnonymity",
    "Privacy",
    "RecursiveDiversity",
    "SpreadDiversity",
    "TCloseness",
]
