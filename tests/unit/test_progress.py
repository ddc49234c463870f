"""What is shown of a run while it lasts."""

from __future__ import annotations

import io

from mondrian_ops import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[str]:
    """What was written, without the seconds."""
    return [line.partition(" s  ")[2] for line in stream.getvalue().splitlines()]


def test_without_a_terminal_a_phase_has_a_line_when_it_starts_and_when_it_ends():
    stream = io.StringIO()
    with progress.display(stream) as shown:
        for done in range(1001):
            shown("wrap_up", done, 1000)
        shown("wrap_up", 1000, 1000)  # shown already
        shown("publish", 1, 1)
    assert lines(stream) == [
        "wrap up: 0 of 1,000",
        "wrap up: 1,000 of 1,000",
        "publish: 1 of 1",
    ]


def test_a_phase_that_takes_long_has_lines_between(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    shown = progress.display(stream)
    for done in range(5):
        shown("anonymize", done, 100)
        now[0] += progress._WRITE_EVERY_S / 2
    assert lines(stream) == [f"anonymize: {done} of 100" for done in (0, 2, 4)]


def test_a_terminal_has_bars_that_are_gone_in_the_end():
    stream = Terminal()
    with progress.display(stream) as shown:
        shown("wrap_up", 1, 2)
        shown("wrap_up", 2, 2)
    assert stream.getvalue().rstrip("\n").endswith("\x1b[2K")


def test_quiet_is_quiet_on_a_terminal_too():
    stream = Terminal()
    with progress.display(stream, quiet=True) as shown:
        shown("wrap_up", 1, 2)
        shown.stop()
    assert stream.getvalue() == ""
