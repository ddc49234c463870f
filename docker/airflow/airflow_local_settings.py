"""The scheduler and the workers import once what every task needs: forked tasks start faster."""

import sys

if {"scheduler", "worker"} & set(sys.argv):
    import pandas  # noqa: F401

    from mondrian_ops import pipeline  # noqa: F401
