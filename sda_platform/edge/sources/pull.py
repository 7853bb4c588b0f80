"""Pull clients of public catalogues: element sets and conjunction messages, within the rate limits of their operators.

CelesTrak: conditional requests (ETag, If-Modified-Since), two hours between two of them unless configured otherwise.
Space-Track: a session by login; user and password come from the environment. A request is sent once. After a failure
that may pass the next one comes five minutes later, or when the server asks for it (Retry-After, up to a day); after a
refusal (403) it comes after the interval. The sources of one host share its limit (`edge.host_limits`): their requests
are apart, and a pause that the server asks for holds for all of them. All of this survives restarts, so that a restart
repeats no request. An answer is landed in the format that it begins like. If it begins like none of its zone, such as a
page of the operator, it is refused before it lands. The source fails until the next answer.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from upath import UPath

from sda_platform.edge.http_client import HttpAnswer, HttpBounds, HttpClient, HttpFailed, HttpRefused
from sda_platform.edge.sources.documents import UnexpectedContent, land_document
from sda_platform.edge.sources.source import Services, Source, SourceMisconfigured
from sda_platform.lake import durable
from sda_platform.resilience import BreakerState

LEAST_INTERVAL_S: Final = 60.0
_HTTP_BOUNDS: Final = HttpBounds(attempts=1, total_s=120.0, longest_pause_s=86_400.0)
_AFTER_FAILURE_S: Final = 300.0
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
        """See `Source.run`. Raises SourceMisconfigured."""
        self._client = client = HttpClient(self._bounds, internal=self.services.internal_names)
        try:
            while not self.stopping.is_set():
                left_s = 0.0 if self._unlanded is not None else self._left_s()
                if left_s > 0:
                    if self.failing_since_s is None:
                        self.works()
                    if await self.pause(min(left_s, 3600.0)):
                        return
                    continue
                try:
                    await (self._pull(client) if self._unlanded is None else self._land())
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
        finally:
            await client.close()

    def _left_s(self) -> float:
        """Return seconds until the next request may be sent."""
        now_s = time.time()
        return max(self._asked_s() + self._interval_s - now_s, self.services.hosts.wait_s(self._host, now_s))

    async def _put_off(self, failure: HttpFailed) -> None:
        """Have the next request come after the usual pause, or after the longer one that the server asked for."""
        wait_s = max(min(_AFTER_FAILURE_S, self._interval_s), failure.retry_after_s)
        self.errors["failed_request"] += 1
        self.fails(failure)
        self.log.warning("request repeated later", in_s=wait_s, reason=self.detail)
        await self._hold({**self._held(), "asked_s": time.time() + wait_s - self._interval_s})
        if failure.retry_after_s:
            await self._in_thread(self.services.hosts.put_off, self._host, time.time(), failure.retry_after_s)

    async def _pull(self, client: HttpClient) -> None:
        held = self._held()
        await self._in_thread(self.services.hosts.take, self._host, time.time(), 2 if self._login else 1)
        # Before the request: one that kills this process is not repeated at once.
        await self._hold({**held, "asked_s": time.time()})
        if self._login is not None:
            parts = urlsplit(self._url)
            await client.post(f"{parts.scheme}://{parts.netloc}{self._login.path}", self._login.form())
        headers = {_VALIDATORS[name]: str(held[name]) for name in _VALIDATORS if name in held}
        with self._document.open("wb") as file:
            answer = await client.get(self._url, headers=headers, sink=partial(self._in_thread, file.write))
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self._unlanded = _validators(answer)
            await self._land()

    async def _land(self) -> None:
        """Land the document that was fetched. Raises OSError; it stays then."""
        try:
            records = await land_document(self, self._document, zone=self.zone, segment_format=self._format)
        except UnexpectedContent:  # its validators are forgotten, so that the next answer is whole again
            self._unlanded = None
            await self._hold({"asked_s": time.time()})
            raise
        self.log.info("document landed", zone=self.zone, records=records)
        await self._hold({"asked_s": time.time(), **(self._unlanded or {})})
        self._unlanded = None
        self._document.unlink()

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

    async def _in_thread(self, write: Callable[..., object], *args: object) -> None:
        """Call ``write``, which waits for the disk."""
        await asyncio.get_running_loop().run_in_executor(self.services.executor, write, *args)


def _validators(answer: HttpAnswer) -> dict[str, object]:
    return {name: answer.headers[name] for name in _VALIDATORS if name in answer.headers}
