"""Numbers of things, for people."""


def counted(number: int, what: str) -> str:
    """Write a number of things: ``1 record``, ``26,834 records``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
