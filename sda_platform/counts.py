"""Numbers of things, for people."""


def counted(number: int, what: str, several: str = "") -> str:
    """Write a number of things: ``1 record``, ``26,834 records``. ``several`` is the plural where it has no mere s."""
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"
