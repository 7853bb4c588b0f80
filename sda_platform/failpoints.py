"""Failpoints: named places in the code where a test kills, stops or fails the process that hits them.

A failpoint is a call of `hit` with its name and, where several tables pass it, the table. The platform arms none:
a hit is one comparison, unless a test called `watch` in this process.
"""

from collections.abc import Callable


class InjectedFault(Exception):
    """What a test raises at a failpoint in place of a fault."""


def hit(point: str, table: str = "") -> None:
    """Call the function that a test set for ``point`` (of ``table``); do nothing while none is set."""
    if _on_hit is not None:
        _on_hit(f"{point}:{table}" if table else point)


def watch(on_hit: Callable[[str], None] | None) -> None:
    """Call ``on_hit`` with every failpoint of this process (``point:table``)."""
    global _on_hit
    _on_hit = on_hit


_on_hit: Callable[[str], None] | None = None
