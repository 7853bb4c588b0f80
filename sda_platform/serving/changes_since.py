"""Bulk answers of what changed alone: of the sets in force those that may differ from what a client has.

A client sends the cursor of its last answer, and puts what it gets over what it has. A cursor has commit sequences: of
the catalogue, of the held sets and of the satellite catalogue. What it cannot express is refused with 410: the client
takes the whole list then. More may come than has changed: objects with waiting sets come each time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.logins import reader_of
from sda_platform.serving.record import StoredElements
from sda_platform.serving.requests import AS_OF, BadRequest
from sda_platform.serving.view import View

SINCE: Final = "since"
CURSOR: Final = "X-Cursor"
"""Header with the cursor of an answer."""
PATTERN: Final = r"[0-9]{1,18}\.[0-9]{1,18}\.[0-9]{1,18}\.[0-9a-f]{0,16}"
_IDENTITY_DIGITS: Final = 16
_GONE: Final = "what changed since is not known any more: take the whole list, without `since`"


@dataclass(frozen=True)
class ChangeCursor:
    """What a client has: the sequences up to which it has seen the tables, and by which edits sets have numbers."""

    catalogue: int
    holds: int
    satellites: int
    identities: str

    @classmethod
    def of(cls, view: View) -> "ChangeCursor | None":
        """Return the cursor of a view; None: it is not of all that is there now."""
        if view.binding is None or not view.is_whole:
            return None
        identities = view.binding.identities[:_IDENTITY_DIGITS]
        return cls(view.binding.sequence, view.binding.holds_sequence, view.satellites.sequence, identities)

    def __str__(self) -> str:
        return f"{self.catalogue}.{self.holds}.{self.satellites}.{self.identities}"


def cursor_headers(view: View) -> dict[str, str]:
    """Return the header with the cursor of an answer, where there is one."""
    cursor = ChangeCursor.of(view)
    return {} if cursor is None else {CURSOR: str(cursor)}


def may_have_changed(request: Request, view: View) -> Callable[[StoredElements], Any]:
    """Return the condition of sets in force that may differ from what the client has; without `since` each may.

    Raises BadRequest, NotKept, and what `reader_of` does: a reader of some sources sees other sets in force.
    """
    given = {name.lower(): value for name, value in request.query_params.items()}
    if SINCE not in given:
        return lambda _: True
    if AS_OF in given:
        raise BadRequest(f"{SINCE} is of now: it cannot be asked with {AS_OF}")
    reader_of(request, of_every_source=True)
    if not re.fullmatch(PATTERN, given[SINCE]):
        raise BadRequest(f"{SINCE} is {given[SINCE][:40]!r}, must be the {CURSOR} of an answer")
    catalogue, holds, satellites, identities = given[SINCE].split(".")
    known, now = ChangeCursor(int(catalogue), int(holds), int(satellites), identities), ChangeCursor.of(view)
    is_ahead = now is not None and (
        known.catalogue > now.catalogue or known.holds > now.holds or known.satellites > now.satellites
    )
    if now is None or is_ahead or known.identities != now.identities:
        raise NotKept(_GONE)
    live: LiveCatalogue = request.app.state.live
    # A waiting set was served until it was held; a fact may decide whether a group has an object.
    numbers_of = {
        *view.waiting_objects(),
        *live.source.held_between(known.holds, now.holds),
        *view.satellites.changed_since(known.satellites),
    }
    return lambda each: each.commit_sequence > known.catalogue or each.norad_id in numbers_of
