"""The three phases, the frontier and the inspection as Airflow operators.

They are thin: each checks the job, calls :mod:`mondrian_ops.pipeline` and returns a small summary.
They import nothing heavy until a task runs, so a DAG file that imports this module parses quickly.
"""

from __future__ import annotations

from mondrian_ops.operators.anonymize_fragment import AnonymizeFragmentOperator
from mondrian_ops.operators.clean_up import CleanUpOperator
from mondrian_ops.operators.frontier import (
    FrontierOperator,
    FrontierPointOperator,
    FrontierSampleOperator,
)
from mondrian_ops.operators.inspect import InspectOperator
from mondrian_ops.operators.partition import GatherFragmentsOperator, PartitionOperator
from mondrian_ops.operators.recoding import RecodeOperator, SpecializePartOperator
from mondrian_ops.operators.sweep import SweepOperator
from mondrian_ops.operators.wrap_up import WrapUpOperator

__all__ = [
    "AnonymizeFragmentOperator",
    "CleanUpOperator",
    "FrontierOperator",
    "FrontierPointOperator",
    "FrontierSampleOperator",
    "GatherFragmentsOperator",
    "InspectOperator",
    "PartitionOperator",
    "RecodeOperator",
    "SpecializePartOperator",
    "SweepOperator",
    "WrapUpOperator",
]
