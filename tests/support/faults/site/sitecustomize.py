"""Imported by every Python that begins with this folder on its path: Airflow's of the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from faults.agent import watch

watch()
