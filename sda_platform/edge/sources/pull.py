"""Pull clients of public catalogues: element sets and conjunction messages, within the rate limits of their operators.

CelesTrak: conditional requests (ETag, If-Modified-Since), two hours between two of them unless configured otherwise.
Space-Track: a session by login; user and password come from the environment. A request is sent once. After a failure
that may pass the next one comes five minutes later, or when the server asks for it (Retry-After, up to a day); after a
refusal (403) it comes after the interval. The sources of one host share its limit (`edge.host_limits`): their requests
are apart, and a pause that the server asks for holds for all of them. All of this survives restarts, so that a restart
repeats no request; one that was received and not landed is landed first. A URL may name the fleet and the days since
the last answer. An answer is landed in the format that it begins like. If it begins like none of its zone, such as a
page of the operator, it is refused before it lands. The source fails until the next answer.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import urlsplit

from upath import UPath

from sda_platform.edge.http_client import HttpAnswer, HttpBounds, HttpClient, HttpFailed, HttpRefused
from sda_platform.edge.sources.documents import UnexpectedContent, land_document
from sda_platform.edge.sources.source import Services, Source, SourceFailed, SourceMisconfigured
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform.lake import durable
from sda_platform.resilience import BreakerState
from sda_platform.units import DAY_S

Result = TypeVar("Result")

LEAST_INTERVAL_S: Final = 60.0
_HTTP_BOUNDS: Final = HttpBounds(attempts=1, total_s=120.0, longest_pause_s=86_400.0)
_AFTER_FAILURE_S: Final = 300.0
_AFTER_KILL_S: Final = 3_600.0
_AFTER_LOGIN_S: Final = 60.0
_LONGEST_TURN_S: Final = 30.0  # the pause between two requests to a host is shorter, one that the host asks for longer
_LOGIN_FAILED: Final = re.compile(rb'"Login"\s*:\s*"Failed"')
_FLEET: Final = "{fleet}"
_DAYS: Final = "{days}"
_FIRST_DAYS: Final = 7.0
_OVERLAP_DAYS: Final = 0.1
_MOST_NUMBERS: Final = 500  # a URL has some thousand characters
_VALIDATORS: Final = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}


@dataclass(frozen=True)
class Login:
    """A form that opens a session: where, its field names, and the variables that hold user and password."""

    path: str = "/ajaxauth/login"
    user_field: str = "identity"
    password_field: str = "password"  # noqa: S105 - the name of a field
    user_variable: str = "SPACETRACK_USER"
    password_variable: str = "SPACETRACK_PASSWORD"  # noqa: S105 - the name of a variable

    def form(self) -> dict[str, str]:
        """Return the filled form. Raises SourceMisconfigured, naming the variable that is not set."""
        missing = [name for name in (self.user_variable, self.password_variable) if not os.environ.get(name)]
        if missing:
            raise SourceMisconfigured(f"set {' and '.join(missing)} in the environment to log in")
        return {
            self.user_field: os.environ[self.user_variable],
            self.password_field: os.environ[self.password_variable],
        }


class LoginRefused(SourceMisconfigured):
    """The server does not know user and password."""


@dataclass(frozen=True)
class Pulled:
    """What became of a request: ``records`` that it brought, None: nothing new. ``wait_s``: it was not due for so
    long."""

    records: int | None = None
    wait_s: float = 0.0


class PullSource(Source):
    """Requests ``url`` every ``interval_s`` and lands what has changed in ``zone``."""

    kind = "pull"
    is_stateful = True

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        url: str,
        zone: str,
        segment_format: str,
        interval_s: float = 7_200.0,
        login: Login | None = None,
        bounds: HttpBounds = _HTTP_BOUNDS,
        rank: int | None = None,
    ) -> None:
        super().__init__(name, services, rank)
        self.zone = zone
        self._url, self._format, self._interval_s = url, segment_format, interval_s
        self._login, self._bounds = login, bounds
        self._host = urlsplit(url).hostname or ""
        self._client: HttpClient | None = None
        self._unlanded: dict[str, object] | None = None  # validators of a document that was fetched and not landed yet
        self._document = services.state_directory / f"{name}.document"
        self._state_path = UPath(services.state_directory / f"{name}.pull.json")

    @property
    def address(self) -> str:
        """See `Source.address`; without the query, which may be long."""
        return self._url.partition("?")[0]

    @property
    def breaker_state(self) -> BreakerState | None:
        """See `Source.breaker_state`."""
        return self._client.breaker_state if self._client else None

    async def run(self) -> None:
        """See `Source.run`. Raises SourceFailed, SourceMisconfigured."""
        async with self._connected() as client:
            while not self.stopping.is_set():
                left_s = self._left_s()
                if left_s > 0:
                    if self.failing_since_s is None:
                        self.works()
                    if await self.pause(min(left_s, 3600.0)):
                        return
                    continue
                try:
                    await self._next(client)
                    self.works()
                except HttpFailed as failure:
                    await self._put_off(failure)
                except UnexpectedContent as error:
                    self.errors["unexpected_content"] += 1
                    self.fails(error)
                    self.log.warning("document refused; requested again after the interval", reason=str(error))
                except HttpRefused as refusal:
                    self.errors["refused"] += 1
                    self.fails(refusal)
                    self.log.warning("request refused; repeated after the interval", reason=str(refusal))
                except OSError as error:  # of our disk: what was fetched is kept, so that the host is not asked again
                    if self._unlanded is None:
                        with suppress(OSError):
                            await self._put_off(HttpFailed(str(error)))
                    await self.retry_later(error)

    async def once(self) -> Pulled:
        """Request it once, if it is due; waits for the pause between two requests to its host.

        Raises HttpFailed, HttpRefused, UnexpectedContent, SourceFailed, SourceMisconfigured, OSError.
        """
        async with self._connected() as client:
            left_s = self._left_s(with_host=False)
            if left_s <= 0:
                left_s = self._left_s()
                if left_s <= _LONGEST_TURN_S:
                    await self.pause(left_s)
                    left_s = 0.0
            if left_s > 0:
                return Pulled(wait_s=left_s)
            try:
                return Pulled(await self._next(client))
            except HttpFailed as failure:
                await self._put_off(failure)
                raise

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[HttpClient]:
        self._client = client = HttpClient(self._bounds, internal=self.services.internal_names)
        held = self._held().get("unlanded")
        if self._unlanded is None and isinstance(held, dict) and self._document.exists():
            self._unlanded = held
        try:
            yield client
        finally:
            await client.close()

    async def _next(self, client: HttpClient) -> int | None:
        """Land what was fetched, or fetch it first; return its number of records, None: nothing new."""
        return await (self._pull(client) if self._unlanded is None else self._land())

    def _left_s(self, *, with_host: bool = True) -> float:
        """Return seconds until the next request may be sent, by the interval and by what the host allows."""
        if self._unlanded is not None:
            return 0.0
        now_s = time.time()
        host_s = self.services.hosts.wait_s(self._host, now_s) if with_host else 0.0
        return max(self._asked_s() + self._interval_s - now_s, host_s)

    async def _put_off(self, failure: HttpFailed) -> None:
        """Have the next request come after the usual pause, or after the longer one that the server asked for."""
        wait_s = max(min(_AFTER_FAILURE_S, self._interval_s), failure.retry_after_s)
        self.errors["failed_request"] += 1
        self.fails(failure)
        self.log.warning("request repeated later", in_s=wait_s, reason=self.detail)
        await self._hold({**self._held(), "asked_s": time.time() + wait_s - self._interval_s})
        if failure.retry_after_s:
            await self._in_thread(self.services.hosts.put_off, self._host, time.time(), failure.retry_after_s)

    async def _pull(self, client: HttpClient) -> int | None:
        held, url = self._held(), self._request_url()
        held.pop("unlanded", None)
        form = self._login.form() if self._login else None
        await self._in_thread(self.services.hosts.take, self._host, time.time(), 2 if form else 1)
        # Before the request: one that kills this process is not repeated at once.
        await self._hold({**held, "asked_s": time.time() + min(self._interval_s, _AFTER_KILL_S) - self._interval_s})
        if self._login is not None and form is not None:
            await self._log_in(client, self._login, form, held)
        headers = {_VALIDATORS[name]: str(held[name]) for name in _VALIDATORS if name in held}
        with self._document.open("wb") as file:
            answer = await client.get(url, headers=headers, sink=partial(self._write, file))
        if answer.status == HTTPStatus.NOT_MODIFIED:
            await self._hold({**held, "asked_s": time.time()})
            return None
        self._unlanded = _validators(answer)
        await self._hold({**held, "asked_s": time.time(), "unlanded": self._unlanded})
        return await self._land()

    async def _log_in(self, client: HttpClient, login: Login, form: dict[str, str], held: dict[str, object]) -> None:
        """Open a session. Raises LoginRefused: a right password may follow in a minute, and not after the interval."""
        parts = urlsplit(self._url)
        answer = await client.post(f"{parts.scheme}://{parts.netloc}{login.path}", form)
        if _LOGIN_FAILED.search(answer.content):
            await self._hold(held)
            await self._in_thread(self.services.hosts.put_off, self._host, time.time(), _AFTER_LOGIN_S)
            raise LoginRefused(
                f"{self._host} does not accept user and password: check {login.user_variable} and "
                f"{login.password_variable}; an attempt a minute is sent"
            )

    def _request_url(self) -> str:
        """Return what is requested now. Raises SourceFailed, SourceMisconfigured."""
        url = self._url
        if _DAYS in url:
            landed_s = float(str(self._held().get("landed_s", 0.0)))
            days = (time.time() - landed_s) / DAY_S + _OVERLAP_DAYS if landed_s else _FIRST_DAYS
            url = url.replace(_DAYS, f"{max(days, _OVERLAP_DAYS):.2f}")
        if _FLEET in url:
            try:
                numbers = [member.norad_id for member in protected_fleet(self.services.fleet.fleet_file)]
            except ListingError as error:
                raise SourceFailed(str(error)) from None
            if len(numbers) > _MOST_NUMBERS:
                raise SourceMisconfigured(
                    f"the fleet has {len(numbers)} satellites; a request names at most {_MOST_NUMBERS}"
                )
            url = url.replace(_FLEET, ",".join(map(str, numbers)))
        return url

    async def _land(self) -> int:
        """Land the document that was fetched. Raises OSError; it stays then."""
        try:
            records = await self._deliver(self._document)
        except UnexpectedContent:  # its validators are forgotten, so that the next answer is whole again
            self._unlanded = None
            await self._hold({"asked_s": time.time()})
            raise
        self.log.info("document landed", zone=self.zone, records=records)
        asked_s = self._asked_s()
        await self._hold({"asked_s": asked_s, "landed_s": asked_s, **(self._unlanded or {})})
        self._unlanded = None
        self._document.unlink()
        return records

    async def _deliver(self, document: Path) -> int:
        """Land ``document`` in the zone; returns its number of records. Raises OSError, UnexpectedContent."""
        return await land_document(self, document, zone=self.zone, segment_format=self._format)

    def _asked_s(self) -> float:
        return float(str(self._held().get("asked_s", 0.0)))

    def _held(self) -> dict[str, object]:
        if not self._state_path.exists():
            return {}
        try:
            return dict(json.loads(self._state_path.read_bytes()))
        except (TypeError, ValueError):
            return {}

    async def _hold(self, state: dict[str, object]) -> None:
        await self._in_thread(durable.write, self._state_path, json.dumps(state).encode())

    async def _write(self, file: BinaryIO, piece: bytes) -> None:
        await self._in_thread(file.write, piece)

    async def _in_thread(self, call: Callable[..., Result], *args: Any) -> Result:
        """Return what ``call`` returns, which waits for the disk."""
        return await asyncio.get_running_loop().run_in_executor(self.services.executor, call, *args)


def _validators(answer: HttpAnswer) -> dict[str, object]:
    return {name: answer.headers[name] for name in _VALIDATORS if name in answer.headers}
