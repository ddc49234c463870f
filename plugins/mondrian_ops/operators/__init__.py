"""The three phases and the frontier as Airflow operators, and what they need around them.

They are thin: check the job, call :mod:`mondrian_ops.pipeline`, return a small summary. Nothing
heavy is imported until a task runs, so a DAG file that imports this module parses quickly.
"""

from __future__ import annotations

from mondrian_ops.operators.anonymize_fragment import AnonymizeFragmentOperator
from mondrian_ops.operators.clean_up import CleanUpOperator
from mondrian_ops.operators.frontier import (
    FrontierOperator,
    FrontierPointOperator,
    FrontierSampleOperator,
)
from mondrian_ops.operators.gather_fragments import GatherFragmentsOperator
from mondrian_ops.operators.partition import PartitionOperator
from mondrian_ops.operators.recode import RecodeOperator
from mondrian_ops.operators.specialize_part import SpecializePartOperator
from mondrian_ops.operators.wrap_up import WrapUpOperator

__all__ = [
    "AnonymizeFragmentOperator",
    "CleanUpOperator",
    "FrontierOperator",
    "FrontierPointOperator",
    "FrontierSampleOperator",
    "GatherFragmentsOperator",
    "PartitionOperator",
    "RecodeOperator",
    "SpecializePartOperator",
    "WrapUpOperator",
]
