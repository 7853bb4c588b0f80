"""A gRPC server that executes no statement and reports success, for tests without a JVM."""

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from pyspark.sql.connect.proto import (
    ConfigRequest,
    ConfigResponse,
    ExecutePlanRequest,
    ExecutePlanResponse,
    ReleaseSessionRequest,
    ReleaseSessionResponse,
)

_SERVICE = "/spark.connect.SparkConnectService/"


class StandInEngine(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Speaks Spark Connect; ``received`` has the plans that it was to execute."""

    def __init__(self) -> None:
        self.received: list[ExecutePlanRequest] = []

    def service(self, details: Any) -> Any:
        """The handler of a call."""
        if details.method == f"{_SERVICE}ReleaseSession":
            return grpc.unary_unary_rpc_method_handler(
                lambda request, _: ReleaseSessionResponse(session_id=request.session_id),
                ReleaseSessionRequest.FromString,
                ReleaseSessionResponse.SerializeToString,
            )
        if details.method == f"{_SERVICE}Config":
            return grpc.unary_unary_rpc_method_handler(
                lambda request, _: ConfigResponse(session_id=request.session_id),
                ConfigRequest.FromString,
                ConfigResponse.SerializeToString,
            )
        if details.method != f"{_SERVICE}ExecutePlan":
            return None
        return grpc.unary_stream_rpc_method_handler(
            self._execute, ExecutePlanRequest.FromString, ExecutePlanResponse.SerializeToString
        )

    def _execute(self, request: ExecutePlanRequest, _context: Any) -> Iterator[ExecutePlanResponse]:
        self.received.append(request)
        yield ExecutePlanResponse(session_id=request.session_id)


@contextmanager
def serving(handler: grpc.GenericRpcHandler, certificate: Path | None = None) -> Iterator[int]:
    """Serve ``handler``, with TLS where there is a ``certificate``, whose key has the same name; gives the port."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((handler,))
    if certificate is None:
        port = int(server.add_insecure_port("127.0.0.1:0"))
    else:
        pair = certificate.with_suffix(".key").read_bytes(), certificate.read_bytes()
        port = int(server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair])))
    server.start()
    yield port
    server.stop(None).wait()
