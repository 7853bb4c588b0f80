"""Ephemerides over HTTP: an operator submits one, and fetches what the platform made of it.

Order of a submission: examine the whole file, seal and sync it in its landing zone, acknowledge. A file with a record
that cannot be used is refused as a whole, with the line and the reason of each. The same bytes are the same submission.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Protocol

from starlette.requests import Request
from starlette.responses import Response

from sda_platform.formats.segments import Sender
from sda_platform.serving.bodies import bodies_of, media_type_of
from sda_platform.serving.clients import REFUSED, Client, KnownClients, NotAllowed
from sda_platform.serving.conditional import of_this_moment
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.negotiation import best
from sda_platform.serving.puts import Refusal
from sda_platform.serving.rendering import NotAcceptable, json_rows
from sda_platform.serving.requests import NotFound, client_of, in_thread, quotas_of, sender_of, writer_of

EPHEMERIS_FORMATS: Final = {
    "application/x-ccsds-kvn": "oem-kvn",
    "text/plain": "oem-kvn",
    "application/xml": "oem-xml",
    "text/xml": "oem-xml",
}
"""The formats in which ephemerides may be submitted, by media type."""
RECEIVED, SCREENED, NOT_USED = "received", "screened", "not_used"
ID_DIGITS: Final = 24
_DIGITS: Final = range(12, 65)  # from what the names of landed segments have to a whole hash
_MESSAGES: Final = {"kvn": "application/x-ccsds-kvn", "xml": "application/xml"}
OF_CONJUNCTIONS: Final = ("conjunctions_using_it", "why_others_do_not")
"""Facts of an ephemeris that come from the conjunctions of its object."""
ANSWERS: Final = ("json", *_MESSAGES)
"""The formats in which a submission is answered."""


@dataclass(frozen=True)
class Submission:
    """What became of a submitted file: RECEIVED, SCREENED up to ``screened_until`` with its conjunctions, or NOT_USED.

    ``norad_ids`` are its objects, none before a run has read it. ``write`` gives the CDMs of the conjunctions in an
    encoding, "kvn" or "xml".
    """

    state: str
    norad_ids: Sequence[int]
    facts: Mapping[str, Any]
    conjunctions: Sequence[Mapping[str, Any]]
    write: Callable[[str], bytes]


class Submissions(Protocol):
    """Where submitted ephemerides go, and what is known of them."""

    def refusals(self, data: bytes, segment_format: str, live: LiveCatalogue) -> list[Refusal]:
        """List why ``data`` cannot be taken; an empty list: it can."""

    def objects(self, data: bytes, segment_format: str, live: LiveCatalogue) -> list[int | None]:
        """Return the catalogue numbers of the objects that ``data`` is about."""

    def take(self, data: bytes, segment_format: str, sender: Sender) -> tuple[str, bool]:
        """Make a file durable, and return its id, and whether it is new."""

    def find(self, submission_id: str) -> Submission | None:
        """Find what became of a submission; None where there is none of this id."""


async def put_ephemerides(request: Request) -> Response:
    """Take ephemerides; they are durable when the answer comes."""
    client = writer_of(request)
    segment_format = media_type_of(request, EPHEMERIS_FORMATS)
    async with bodies_of(request).received(request) as body:
        return await _taken(request, client, body, segment_format)


async def _taken(request: Request, client: Client, body: bytes, segment_format: str) -> Response:
    live, submissions = request.app.state.live, _submissions(request)
    sender = sender_of(request, client)
    if client.norad_ids is not None:
        numbers = await in_thread(request, submissions.objects, body, segment_format, live)
        client.require(numbers)
        # A designator may name another object when a run decodes the file.
        sender = replace(sender, norad_ids=tuple({each: None for each in numbers if each is not None}))
    refused = await in_thread(request, submissions.refusals, body, segment_format, live)
    if refused:
        quotas_of(request).spend(client.name, bytes=len(body), **{REFUSED: len(refused)})
        reasons = "; ".join(each.reason for each in refused)
        return _json({"error": reasons, "refused": [asdict(each) for each in refused]}, 422)
    quotas_of(request).spend(client.name, bytes=len(body), records=1)
    submission_id, is_new = await in_thread(request, submissions.take, body, segment_format, sender)
    where = f"/ephemerides/{submission_id}"
    return _json({"id": submission_id, "status": where, "is_new": is_new}, 201 if is_new else 200, Location=where)


async def submission(request: Request) -> Response:
    """Return the state of a submission and its conjunctions; the CDMs of these in KVN or XML."""
    return await in_thread(request, _submission, request)


def _submission(request: Request) -> Response:
    client = client_of(request)
    submission_id = request.path_params["submission_id"]
    encoding = _encoding(request)
    is_id = len(submission_id) in _DIGITS and set(submission_id) <= set("0123456789abcdef")
    found = _submissions(request).find(submission_id) if is_id else None
    if found is None:
        raise NotFound(f"no ephemeris was submitted or landed with the id {submission_id[:40]!r}")
    client.require(found.norad_ids)
    withheld = _why_withheld(request, client)
    if withheld and encoding:
        raise NotAllowed(withheld)
    is_over = found.state != RECEIVED
    if encoding:
        headers = {"X-State": found.state} | ({} if is_over else {"Retry-After": "10"})
        answer = Response(found.write(encoding), 200 if is_over else 202, headers, _MESSAGES[encoding])
        return of_this_moment(request, answer)
    facts = {"id": submission_id, "state": found.state, **found.facts, "conjunctions": list(found.conjunctions)}
    if withheld:
        del facts["conjunctions"]
        facts["withheld"] = withheld
        for ephemeris in facts.get("ephemerides", ()):
            for name in OF_CONJUNCTIONS:
                ephemeris.pop(name, None)
    return of_this_moment(request, Response(json_rows([facts])[1:-1], 200, media_type="application/json"))


def _why_withheld(request: Request, client: Client) -> str:
    """Return why a client may not read the conjunctions of its ephemerides, which rest on what others brought."""
    clients: KnownClients = request.app.state.clients
    try:
        if clients.reading.needs_login:
            client.require_all_read()
    except NotAllowed as refusal:
        return str(refusal)
    return ""


def _encoding(request: Request) -> str | None:
    """Return the encoding of CDMs that is asked for; None: JSON."""
    name = request.query_params.get("format")
    if name is None:
        media_type = best(request.headers.get("accept"), ("application/json", *_MESSAGES.values()))
        return next((each for each, written in _MESSAGES.items() if written == media_type), None)
    if name not in ANSWERS:
        raise NotAcceptable(f"format is {name[:40]!r}, must be json, kvn or xml")
    return None if name == "json" else name


def _submissions(request: Request) -> Submissions:
    submissions: Submissions = request.app.state.submissions
    return submissions


def _json(facts: Mapping[str, Any], status: int, **headers: str) -> Response:
    return Response(json.dumps(facts), status, headers, "application/json")
