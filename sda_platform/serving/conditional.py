"""Answers that caches may believe: the strong tag of each is of its exact bytes, and preconditions come last.

The tag of an answer from the catalogue is a hash of the view, of the request and of the format: equal tags are equal
bytes, and the answer need not be made to know that a client has it. Answers from the lake's tables have a hash of their
bytes, and the time at which these were first seen. The tag of a request is given with a success only, so a client that
has it would get no error now.
"""

import gzip
import hashlib
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from sda_platform.code_version import code_version
from sda_platform.serving.first_seen import FirstSeen
from sda_platform.serving.kept_answers import KeptAnswers
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.negotiation import best
from sda_platform.serving.requests import SNAPSHOT, in_thread, view_of
from sda_platform.serving.view import View

_TAG: Final = re.compile(r'(W/)?("[^"]*")')
_DIGITS: Final = 32
_LEAST_COMPRESSED: Final = 1_000
_LEVEL: Final = 1
_KEPT: Final = ("ETag", "Last-Modified", "Cache-Control", "Vary")
_OK: Final = 200
_LINK: Final = "Link"
_VARY: Final = "Accept, Accept-Encoding"
_OF_THIS_MOMENT: Final = {"Cache-Control": "no-store"}


class PreconditionFailed(Exception):
    """The client's precondition does not hold for what is served now."""


def of_view(
    request: Request, view: View, variant: str, make: Callable[[], Response], *, is_many: bool = True
) -> Response:
    """Return the answer that ``make`` gives from ``view`` in a format, ``variant``, under its tag; 304 where it is
    known.

    ``is_many``: it may be large; it is kept for the next request, and must not be asked for in the event loop.
    """
    tag = _tag(view.identity, variant, _address(request), _coding(request))
    names = _named(request, "if-none-match")
    if tag in names and not {"if-match", "if-unmodified-since"} & set(request.headers):
        return _not_modified(_validators(view, tag))

    def made() -> Response:
        return _compressed(request, make())

    kept: KeptAnswers = request.app.state.answers
    response = kept.answer(tag, made, view.identity, _asked(request)) if is_many else made()
    return _tagged(request, view, tag, response)


async def answered(request: Request, work: Callable[..., Response], *arguments: Any) -> Response:
    """Return what ``work`` answers with `of_view`: at once where that is kept, else from a thread.

    To hand an answer over from a thread costs more than to find it here. This waits for no thread: a view that is kept
    for further pages has one reader at a time, and is left to a thread.
    """
    answers: KeptAnswers = request.app.state.answers
    if SNAPSHOT not in request.query_params and answers.may_know(asked := _asked(request)):
        live: LiveCatalogue = request.app.state.live
        with view_of(request) as view:
            found = answers.known(view.identity, asked)
            if found and (_LINK not in found[1].headers or live.kept.renew(view.snapshot)):
                response = _tagged(request, view, *found)
                view.has_more = False  # the view of its pages is kept already
                return response
    return await in_thread(request, work, *arguments)


def _tagged(request: Request, view: View, tag: str, response: Response) -> Response:
    view.has_more = _LINK in response.headers
    if response.status_code == _OK:
        response.headers.update(_validators(view, tag))
    return _concluded(request, response)


def of_content(request: Request, response: Response) -> Response:
    """``response`` under the tag of its bytes; 304 where the client has them."""
    response.headers.update({"ETag": _content_tag(request, response), "Cache-Control": "no-cache"})
    return _concluded(request, _compressed(request, response))


def of_tables(request: Request, response: Response) -> Response:
    """``response`` from tables of the lake as `of_content`, with when its bytes were first answered."""
    seen: FirstSeen = request.app.state.first_seen
    now_s, tag = time.time(), _content_tag(request, response)
    changed_s = seen.since_s(f"{_address(request)} {_coding(request)}", tag, now_s)
    response.headers.update(_stated(tag, changed_s, now_s))
    return _concluded(request, _compressed(request, response))


def _content_tag(request: Request, response: Response) -> str:
    content = hashlib.sha256(response.body).hexdigest()
    return _tag(content, response.media_type or "", _coding(request))


def of_this_moment(request: Request, response: Response) -> Response:
    """``response``, which no cache may keep: it is another one at each time."""
    response.headers.update(_OF_THIS_MOMENT)
    return _compressed(request, response)


def _validators(view: View, tag: str) -> dict[str, str]:
    return _stated(tag, view.changed_s, view.taken_s)


def _stated(tag: str, changed_s: float, now_s: float) -> dict[str, str]:
    # The second after the change: at no time of it, or later, was the state before it served. It is not stated before.
    after_s = int(changed_s) + 1
    stated = {"Last-Modified": format_datetime(datetime.fromtimestamp(after_s, UTC), usegmt=True)}
    return {"ETag": tag, "Cache-Control": "no-cache", **(stated if after_s <= now_s else {})}


def _concluded(request: Request, response: Response) -> Response:
    if response.status_code != _OK:
        response.headers.update(_OF_THIS_MOMENT)
        return response
    _require(request, response)
    return _not_modified(dict(response.headers)) if _is_known(request, response) else response


def _require(request: Request, response: Response) -> None:
    """Raise PreconditionFailed where If-Match or If-Unmodified-Since does not hold."""
    if "if-match" in request.headers:
        names = _named(request, "if-match", is_strong=True)
        if not (names == {"*"} or response.headers["ETag"] in names):
            raise PreconditionFailed("If-Match names no tag of what is served now")
    elif (since := _date(request, "if-unmodified-since")) and (changed := _changed(response)) and changed > since:
        raise PreconditionFailed("it was changed after If-Unmodified-Since")


def _is_known(request: Request, response: Response) -> bool:
    if "if-none-match" in request.headers:
        names = _named(request, "if-none-match")
        return names == {"*"} or response.headers["ETag"] in names
    since = _date(request, "if-modified-since")
    return since is not None and (changed := _changed(response)) is not None and changed <= since


def _changed(response: Response) -> datetime | None:
    stated = response.headers.get("Last-Modified")
    return parsedate_to_datetime(stated) if stated else None


def _not_modified(headers: dict[str, str]) -> Response:
    kept = {name.lower() for name in _KEPT}
    headers = {name.lower(): value for name, value in headers.items() if name.lower() in kept}
    return Response(status_code=304, headers={"vary": _VARY, **headers})


def _named(request: Request, name: str, *, is_strong: bool = False) -> set[str]:
    """Return the tags that a header names; `*` for any. A strong comparison passes over weak ones."""
    text = ",".join(request.headers.getlist(name)).strip()
    if text == "*":
        return {"*"}
    return {tag for weak, tag in _TAG.findall(text) if not (weak and is_strong)}


def _date(request: Request, name: str) -> datetime | None:
    if name not in request.headers:
        return None
    try:
        found = parsedate_to_datetime(request.headers[name])
    except (ValueError, OverflowError):
        return None  # what is no date is no condition
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _asked(request: Request) -> tuple[str, str, str]:
    """Return what of a request decides the answer from a view: equal ones have equal tags."""
    return _address(request), request.headers.get("accept", ""), _coding(request)


def _address(request: Request) -> str:
    return f"{request.scope['path']}?{request.scope['query_string'].decode('latin-1')}"


def _coding(request: Request) -> str:
    accepted = request.headers.get("accept-encoding")
    return (best(accepted, ("gzip", "identity")) if accepted else None) or "identity"


def _compressed(request: Request, response: Response) -> Response:
    response.headers["Vary"] = _VARY
    if _coding(request) == "gzip" and len(response.body) >= _LEAST_COMPRESSED:
        response.body = gzip.compress(bytes(response.body), _LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
    return response


def _tag(*parts: str) -> str:
    # Another version of the code may write the same rows as other bytes.
    content = "\0".join((code_version(), *parts))
    return f'"{hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]}"'
