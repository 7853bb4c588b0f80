"""An HTTP service as the subscriber; its side of the contract is in docs/reference/webhook.md.

Every attempt first queries the receipts of its batch and sends the batch only if there are none. So a lost answer, also
of a killed process, is never guessed.

A delivery is repeated a few times within its run, and then by later runs. The query for the held mark is not repeated:
it comes first in each run, so an unreachable service costs a run one request.
"""

import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from sda_platform import failpoints
from sda_platform.delivery.subscriber import (
    AlertEntry,
    EntriesMark,
    Outcome,
    Subscriber,
    SubscriberAway,
    SubscriberUnavailable,
)
from sda_platform.delivery.webhook_messages import Entries, HeldMark, WebhookAnswer
from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import UNSIGNED, SigningKeys
from sda_platform.refused_values import refusal_text
from sda_platform.resilience import RetryPolicy, retry_after_s

_REFUSES_CONTENT = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)

_Message = TypeVar("_Message", bound=BaseModel)
_Answered = TypeVar("_Answered")


@dataclass(frozen=True)
class DeliveryRetries(RetryPolicy):
    """How long one delivery is tried, seconds; a run occupies its pool meanwhile."""

    attempts: int = 4
    first_pause_s: float = 0.2
    longest_pause_s: float = 3.0
    answer_within_s: float = 5.0


@cache
def _tls() -> ssl.SSLContext:
    """Return the certificates that are trusted; loading them takes longer than most answers, so a process does
    it once.
    """
    return httpx.create_ssl_context()


class WebhookSubscriber(Subscriber):
    """The service below ``url``; a user, a password or a query in it are sent, and never shown.

    ``keys`` sign each request: a POST with its batch id, a GET with method, path and its own query.
    """

    idempotency: ClassVar[str] = (
        "the Idempotency-Key is the batch id; each attempt queries the receipts before it sends"
    )

    def __init__(
        self,
        url: str,
        *,
        keys: SigningKeys = UNSIGNED,
        retries: DeliveryRetries = DeliveryRetries(),
        sleep: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        parsed = httpx.URL(url)
        self._auth = (parsed.username, parsed.password) if parsed.userinfo else None
        self._base = parsed.copy_with(userinfo=b"")
        self.name = str(self._base.copy_with(query=None, fragment=None))
        self._keys, self._retries, self._sleep, self._now_s = keys, retries, sleep, now_s

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """See `Subscriber.apply`; a batch whose content is refused goes entry by entry, so that only one is refused."""
        with self._client() as client:
            answer = self._settle(client, batch_id, entries)
            if answer is None and len(entries) > 1:
                return [self._apply_alone(client, batch_id, entry) for entry in entries]
        return self._outcomes(answer, entries)

    def mark(self, prefix: str = "") -> EntriesMark:
        """See `Subscriber.mark`."""
        return self._read("mark", prefix, HeldMark).mark()

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """See `Subscriber.held`."""
        return [entry.entry() for entry in self._read("alerts", prefix, Entries).entries]

    def _apply_alone(self, client: httpx.Client, batch_id: str, entry: AlertEntry) -> Outcome:
        key = f"{batch_id}/{':'.join(map(str, entry.key))}"
        return self._outcomes(self._settle(client, key, [entry]), [entry])[0]

    def _settle(self, client: httpx.Client, batch_id: str, entries: Sequence[AlertEntry]) -> WebhookAnswer | None:
        """Return the answer to a batch, given earlier or now; None when its content is refused."""
        return self._patiently(lambda: self._first_answer(client, batch_id) or self._send(client, batch_id, entries))

    def _first_answer(self, client: httpx.Client, batch_id: str) -> WebhookAnswer | None:
        response = self._request(client, "GET", f"batches/{quote(batch_id, safe='')}")
        return None if response.status_code == HTTPStatus.NOT_FOUND else self._parsed(response, WebhookAnswer)

    def _send(self, client: httpx.Client, batch_id: str, entries: Sequence[AlertEntry]) -> WebhookAnswer | None:
        response = self._request(
            client,
            "POST",
            "batches",
            content=Entries.of(entries).model_dump_json(),
            headers={"Idempotency-Key": batch_id, "Content-Type": "application/json"},
        )
        failpoints.hit("delivery.committed")
        if response.status_code in _REFUSES_CONTENT:
            return None
        if response.status_code == HTTPStatus.CONFLICT:  # it was sent twice, and the other one came first
            return self._first_answer(client, batch_id) or self._parsed(response, WebhookAnswer)
        return self._parsed(response, WebhookAnswer)

    def _read(self, path: str, prefix: str, kind: type[_Message]) -> _Message:
        with self._client() as client:
            return self._parsed(self._request(client, "GET", path, {"prefix": prefix}), kind)

    def _client(self) -> httpx.Client:
        """A client of this call only: runs are forked, and processes must not share a connection."""
        return httpx.Client(auth=self._auth, timeout=self._retries.answer_within_s, verify=_tls())

    def _patiently(self, attempt: Callable[[], _Answered]) -> _Answered:
        return self._retries.call(attempt, seed=f"{self.name}{time.time_ns()}", sleep=self._sleep)

    def _request(
        self, client: httpx.Client, method: str, path: str, query: dict[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        """One request. Raises SubscriberAway for what passes by itself."""
        url = self._base.copy_with(raw_path=b"").join(f"{self._base.path.rstrip('/')}/{path}")
        request = client.build_request(method, url.copy_merge_params({**self._base.params, **(query or {})}), **options)
        message_id = request.headers.get("Idempotency-Key") or f"{method} {httpx.URL(path, params=query or {})}"
        try:
            request.headers.update(self._keys.headers(message_id, request.content, self._now_s()))
            response = client.send(request)
        except Misconfigured as error:  # a file of keys that is being replaced
            raise SubscriberUnavailable(f"{self.name}: {error}") from error
        except httpx.TransportError as error:
            raise SubscriberAway(f"{self.name}: {type(error).__name__}: {error}") from error
        passes = response.status_code in _PASSING or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        if passes:
            failure = SubscriberAway(f"{self.name}: {method} {path} answered {response.status_code}")
            failure.retry_after_s = retry_after_s(
                response.headers.get("Retry-After"), now=datetime.now(UTC), cap_s=self._retries.longest_pause_s
            )
            raise failure
        return response

    def _parsed(self, response: httpx.Response, kind: type[_Message]) -> _Message:
        """Return the message in an answer that the contract foresees. Raises SubscriberUnavailable for any other.

        A login, a page or an error of a proxy before the receiver looks like one, and ends when the proxy is mended.
        """
        request = f"{self.name}: {response.request.method} {response.request.url.path}"
        if not response.is_success:
            raise SubscriberUnavailable(f"{request} answered {response.status_code}: {response.text[:200]}")
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise SubscriberUnavailable(f"{request} answered outside the contract: {refusal_text(error)}") from error

    def _outcomes(self, answer: WebhookAnswer | None, entries: Sequence[AlertEntry]) -> list[Outcome]:
        if answer is None:
            return ["refused"] * len(entries)
        outcomes = answer.by_key()
        missing = [entry for entry in entries if entry.key not in outcomes]
        if missing:
            raise SubscriberUnavailable(f"{self.name} answered a batch without a receipt for {missing[0].key}")
        return [outcomes[entry.key] for entry in entries]
