"""Profiles of Hypothesis: how many examples a property test gets.

pytest's ``--hypothesis-profile`` chooses the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings

PROFILES = {"fast": 0.1, "ci": 0.2, "soak": 20.0}
"""The factor of each profile: a test gets so many times the examples that it names, or 100."""


def register_profiles() -> None:
    """Register the profiles, and load ``fast``.

    ``fast``, of `make test`, and ``ci`` draw the same examples every time, so that a failure is due
    to the change that is tested.
    """
    for name, times in PROFILES.items():
        settings.register_profile(
            name, max_examples=round(100 * times), derandomize=name != "soak", deadline=None
        )
    settings.load_profile("fast")


def examples(number: int, **more: Any) -> Callable[[Any], Any]:
    """Give a property test ``number`` examples times the profile's factor, at least five."""
    times = PROFILES.get(settings.get_current_profile_name(), PROFILES["ci"])
    return settings(max_examples=max(5, round(number * times)), deadline=None, **more)
