"""How many examples a property gets: few for who waits, many for who looks for what nobody planned.

pytest's ``--hypothesis-profile`` names the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings

__all__ = ["PROFILES", "examples", "register_profiles"]

PROFILES = {"fast": 0.2, "ci": 0.5, "soak": 20.0}
"""By name, how many times as many examples as a test asks for."""


def register_profiles() -> None:
    """Make the profiles known to Hypothesis, and ``fast`` the one that holds.

    The same examples every time, but for ``soak``: a run that fails says something about the change
    that it tests.
    """
    for name in PROFILES:
        settings.register_profile(name, derandomize=name != "soak", deadline=None)
    settings.load_profile("fast")


def examples(number: int) -> Callable[[Any], Any]:
    """Give a property ``number`` examples, times what the profile says; five at least."""
    times = PROFILES.get(settings.get_current_profile_name(), PROFILES["fast"])
    return settings(max_examples=max(5, round(number * times)), deadline=None)
