"""Numbers of things, for people."""

from sda_platform.counts import counted


def test_one_thing_has_no_plural() -> None:
    assert [counted(n, "dead letter") for n in (0, 1, 26834)] == [
        "0 dead letters",
        "1 dead letter",
        "26,834 dead letters",
    ]
