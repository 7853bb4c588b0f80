"""A service that hands out the credentials of an object store for a short time, as the agent of a cluster does.

Clients find it by the variables of EKS Pod Identity, which the SDKs of all four clients know.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

_TOKEN = "token-of-the-pod"
_VALID_S = 3.0
"""Each client then renews them before each use."""


class CredentialService:
    """Where it answers, and what it hands out now: ``key`` and ``secret``."""

    def __init__(self, key: str, secret: str, token_file: Path) -> None:
        self.key, self.secret, self._token_file = key, secret, token_file
        token_file.write_text(_TOKEN)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a process that gets its credentials here."""
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{self.server.server_port}/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self._token_file),
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_pod = self.headers.get("Authorization") == _TOKEN
                until = datetime.now(UTC) + timedelta(seconds=_VALID_S)
                facts = {
                    "AccessKeyId": service.key,
                    "SecretAccessKey": service.secret,
                    "Token": "",
                    "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
                body = json.dumps(facts if is_pod else {"message": "no pod"}).encode()
                self.send_response(200 if is_pod else 403)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        return Handler


@contextmanager
def credential_service(key: str, secret: str, token_file: Path) -> Iterator[CredentialService]:
    """A service that runs meanwhile, and hands out these credentials first."""
    service = CredentialService(key, secret, token_file)
    Thread(target=service.server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        service.server.shutdown()
        service.server.server_close()
