"""Who asks for a page of the console, and whether that person may act on alerts."""

from dataclasses import dataclass
from typing import Final

from sda_platform.http_gate import BASIC_CHALLENGE

LOG_IN: Final = {"WWW-Authenticate": BASIC_CHALLENGE}


@dataclass(frozen=True)
class ConsoleReader:
    """Who sends a request. ``name``: of a user who has logged in, else empty.

    ``may_act``: whether this reader acknowledges, assigns and comments, and sees contacts of operators. ``has_login``:
    whether there are users who may log in.
    """

    name: str = ""
    may_act: bool = False
    has_login: bool = False
