"""Measurements beside the figures that the design asks for. Nothing here asserts on time."""

import sys
from pathlib import Path

# A checkout is not installed: its package lies in the plugins folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))
