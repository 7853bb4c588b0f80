"""A command that repeats a step survives errors that pass, and states each once."""

from collections.abc import Iterator

import pytest
from deltalake.exceptions import DeltaError

from sda_platform.cli.loops import surviving, until_interrupted


def run(outcomes: list[Exception | None]) -> None:
    """Repeat a step with these outcomes, then interrupt it."""
    left: Iterator[Exception | None] = iter([*outcomes, KeyboardInterrupt()])  # type: ignore[list-item]

    def step() -> None:
        outcome = next(left)
        if outcome is not None:
            raise outcome

    until_interrupted(surviving(step, "issue commands"), 1.0, wait=lambda _seconds: None)


def test_an_error_that_passes_is_stated_once_and_so_is_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    full = [OSError(28, "No space left", "/lake/[red]x\x1b[2J")] * 3
    run([None, *full, DeltaError("the log is away"), None, None])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3, shown
    assert "No space left" in shown[0] and "[red]x" in shown[0] and "\x1b" not in shown[0]
    assert "the log is away" in shown[1]
    assert shown[2] == "can issue commands again"


def test_a_mistake_of_the_program_ends_it() -> None:
    with pytest.raises(TypeError):
        run([TypeError("a bug")])
