"""HTTP upload: ``POST /land/<zone>?name=<file name>`` is answered once the file is durable in its landing zone.

    201 landed, with the number of records and the segments · 200 these bytes were landed before
    400 refused, with the reason · 401 no or a wrong token · 404 no such zone · 411, 413 without a length, or too long
    408 slower than 64 KiB/s for half a minute and more
    429 with Retry-After: the source has used its quota of a minute
    503 with Retry-After: too many uploads at once, shutting down, or the disk refuses

The body is written to a file of its own while it arrives, so that memory does not grow with it.
"""

import asyncio
import errno
import hmac
import re
import tempfile
from collections.abc import Collection
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from upath import UPath

from sda_platform.edge.address import Address
from sda_platform.edge.http_server import HttpServer
from sda_platform.edge.sources.source import Services, Source
from sda_platform.formats.registry import PARTNER_ZONES, ZONES
from sda_platform.landing.lander import PARTNER_SEGMENT_BYTES, Lander, ProgressUnreadable
from sda_platform.landing.partner_files import FileChanging, PartnerFileError
from sda_platform.resilience import OverQuota

TEMPORARY: Final = "upload-"
"""How the names of folders begin in which uploads arrive; a killed collector leaves them behind."""
_LATER: Final = {"Retry-After": "2"}
_NAME_LENGTH: Final = 128
_PIECE_BYTES: Final = 2**20
_LEAST_BYTES_PER_S: Final = 64 * 2**10
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


class UploadSource(Source):
    """Listens at ``bind``; ``token`` is required of clients, empty only on loopback."""

    kind, zone = "upload", "any"

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        bind: Address,
        hosts: Collection[str] = (),
        token: str = "",
        max_bytes: int = 2**30,
        at_once: int = 4,
        body_s: float = 30.0,
        zones: Collection[str] = PARTNER_ZONES,
        rank: int | None = None,
    ) -> None:
        super().__init__(name, services, rank)
        self._bind, self._hosts, self._token, self._max_bytes = bind, hosts, token, max_bytes
        self._at_once, self._body_s, self._zones = at_once, body_s, zones
        self._running = 0
        self._server: HttpServer | None = None

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return self._server.address if self._server else ""

    async def run(self) -> None:
        """See `Source.run`."""
        app = Starlette(routes=[Route("/land/{zone}", self._receive, methods=["POST"])])
        async with HttpServer(app, self._bind, hosts=self._hosts) as self._server:
            self.works()
            self.log.info("listening", address=self.address)
            await self.stopping.wait()

    async def _receive(self, request: Request) -> Response:
        refusal = self._refusal(request)
        if refusal is not None:
            self.errors[f"http_{refusal.status_code}"] += 1
            return refusal
        self._running += 1
        try:
            size = int(request.headers["Content-Length"])
            self.services.bounds.check_room(UPath(self.services.state_directory), size)
            with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=self.services.state_directory) as folder:
                return await self._land(request, Path(folder))
        except OSError as error:  # of the disk, not of the file, which may be sent again
            self.errors["not_stored"] += 1
            self.log.error("upload not stored", reason=str(error))
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"cannot be stored now: {error.strerror}", _LATER)
        finally:
            self._running -= 1

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is not read at all."""
        sent = request.headers.get("Authorization", "").encode("latin-1")
        if self._token and not hmac.compare_digest(sent, f"Bearer {self._token}".encode()):
            return _answer(HTTPStatus.UNAUTHORIZED, "a token is needed: Authorization: Bearer <token>")
        if request.path_params["zone"] not in self._zones:
            return _answer(HTTPStatus.NOT_FOUND, f"the zones of this source are {', '.join(sorted(self._zones))}")
        length = request.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return _answer(HTTPStatus.LENGTH_REQUIRED, "send the length of the file")
        if int(length) > self._max_bytes:
            return _answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {self._max_bytes:,} bytes are taken at once")
        try:
            self.require_quota()
        except OverQuota as error:
            return _answer(HTTPStatus.TOO_MANY_REQUESTS, str(error), {"Retry-After": str(ceil(error.wait_s))})
        if self._running >= self._at_once or self.stopping.is_set():
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, "too busy", _LATER)
        return None

    async def _land(self, request: Request, folder: Path) -> Response:
        name = _UNSAFE.sub("_", request.query_params.get("name", ""))[-_NAME_LENGTH:].lstrip(".") or "upload"
        zone, path = request.path_params["zone"], folder / name
        try:
            # A place is held while a body arrives: one that trickles in would hold it for ever.
            async with asyncio.timeout(self._body_s + int(request.headers["Content-Length"]) / _LEAST_BYTES_PER_S):
                await self._save(request, path)
        except (TimeoutError, ClientDisconnect) as error:
            self.errors["slow" if isinstance(error, TimeoutError) else "torn"] += 1
            return _answer(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time; nothing was landed")
        peer = str(Address(*request.client)) if request.client else None
        services, chosen = self.services, request.query_params.get("format") or _only_format(path, zone)
        lander = Lander(
            services.landing_root,
            services.clock,
            bounds=services.bounds,
            segment_max_bytes=PARTNER_SEGMENT_BYTES,
            sender=self.sender(peer),
            mappings=services.mappings,
        )
        try:
            landed = await services.files.run(lander.land, path, feed=zone, segment_format=chosen)
        except (FileChanging, ProgressUnreadable) as error:
            raise OSError(errno.EIO, str(error).replace(f"{folder}/", "")) from None
        except PartnerFileError as refusal:
            self.count_refused()
            return _answer(HTTPStatus.BAD_REQUEST, str(refusal).replace(f"{folder}/", ""))
        self.count_landed(landed.sealed_records, landed.bytes)
        facts = {"zone": landed.zone, "records": landed.records, "segments": list(landed.segments)}
        return JSONResponse(facts, HTTPStatus.CREATED if landed.segments else HTTPStatus.OK)

    async def _save(self, request: Request, path: Path) -> None:
        """Write the body, a piece of it at a time and in a thread: a disk may take its time."""
        loop, pieces, size = asyncio.get_running_loop(), list[bytes](), 0
        with path.open("wb") as file:
            async for chunk in request.stream():
                pieces.append(chunk)
                size += len(chunk)
                if size >= _PIECE_BYTES:
                    await loop.run_in_executor(self.services.executor, file.writelines, pieces)
                    pieces, size = [], 0
            await loop.run_in_executor(self.services.executor, file.writelines, pieces)


def _only_format(path: Path, zone: str) -> str | None:
    """Return the format of a zone that carries only one, if the file's name does not determine it."""
    formats = ZONES[zone]
    return formats[0] if len(formats) == 1 and not path.suffix else None


def _answer(status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)
