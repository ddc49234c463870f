"""Measurements beside the figures that the design asks for. Nothing here asserts on time."""

import sys
from pathlib import Path

# A checkout is not installed: its package lies in the plugins folder, its Airflow in scripts, its
# Spark cluster among the tests.
_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "plugins"), str(_ROOT / "scripts"), str(_ROOT / "tests/support")]
