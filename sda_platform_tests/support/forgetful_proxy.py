"""An HTTP proxy before an object store that forgets conditions: to its clients, a store without conditional puts."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

_CONDITION = "if-none-match"
_HOP_BY_HOP = ("connection", "transfer-encoding", "content-length")


@contextmanager
def forgetful_proxy(store: str) -> Iterator[str]:
    """The address of a proxy before ``store``, which must not check signatures: they cover the condition."""
    target = urlsplit(store).netloc

    class Forwarding(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: value for name, value in self.headers.items() if name.lower() != _CONDITION}
            upstream = HTTPConnection(target, timeout=30)
            upstream.request(self.command, self.path, body, kept)
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            # The answer to HEAD tells how long the object is, and does not have it.
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _forward  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forwarding)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
