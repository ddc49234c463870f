"""From the task of a fragment to the kernel: few calls, each of which does something."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from pathlib import Path
from types import CodeType

import pytest

from mondrian_ops import pipeline, stores
from mondrian_ops.cut.native import mondrian
from mondrian_ops.operators import AnonymizeFragmentOperator
from mondrian_ops.operators.base import work_of
from task_contexts import task_context

MOST_CALLS = 7
CONTEXT = task_context()


@pytest.fixture
def task(tmp_path, monkeypatch):
    """The task of the one fragment of a small dataset."""
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_INPUTS", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__MONDRIAN_OPS__ALLOWED_OUTPUTS", str(tmp_path))
    (tmp_path / "in.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(20)))
    job = {
        "input": str(tmp_path / "in.csv"),
        "output": str(tmp_path / "out"),
        "k": 2,
        "quasi_identifiers": ["age"],
    }
    work = work_of(pipeline.load_job(job), CONTEXT)
    (fragment,) = pipeline.partition(pipeline.load_job(job), work=work)
    yield AnonymizeFragmentOperator(task_id="t", job=job, fragment=fragment.to_dict())
    stores.use_policy(None)


def test_a_fragment_reaches_the_kernel_in_seven_calls(task, monkeypatch):
    stacks, kernel = [], mondrian._classes

    def called(*arguments):
        stacks.append(callers(until=AnonymizeFragmentOperator.execute.__wrapped__.__code__))
        return kernel(*arguments)

    monkeypatch.setattr(mondrian, "_classes", called)
    task.execute(CONTEXT)
    (codes,) = stacks
    assert len(codes) + 1 <= MOST_CALLS, " → ".join(code.co_qualname for code in codes)
    assert [code.co_qualname for code in codes if only_forwards(code)] == []


def callers(until: CodeType) -> list[CodeType]:
    """The package's functions that are being called, the innermost first, below ``until``."""
    package = str(Path(pipeline.__file__).parents[1])
    found, frame = [], sys._getframe(2)
    while frame.f_code is not until:
        if frame.f_code.co_filename.startswith(package):
            found.append(frame.f_code)
        frame = frame.f_back
    return found


def only_forwards(code: CodeType) -> bool:
    """Whether a function does nothing but call another one."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    is_documented = ast.get_docstring(function) is not None
    (first, *more) = function.body[is_documented:]
    return not more and isinstance(getattr(first, "value", None), ast.Call | ast.Yield)
