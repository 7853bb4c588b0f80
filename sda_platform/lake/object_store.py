"""How each library reaches the S3 object store that holds a lake or landing zones: ``s3://bucket/prefix``.

Four clients read or write there: fsspec's s3fs (landing zones, log files), delta-rs (logs), Arrow (data files) and
Spark's ``s3a``. All take the standard variables of AWS: region and address from the environment, credentials from the
default providers of each SDK. A commit is a conditional put (``If-None-Match: *``), so of two writers one wins.
Stdlib only: the supervisor uses it.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

_SCHEME = "s3://"
_CONNECT_S, _REQUEST_S = 5, 30
ATTEMPTS = 3
"""How often each client makes a request before it reports that it failed; the platform repeats the run."""
_CLIENT_ERRORS = frozenset(
    {
        "botocore.exceptions.ConnectionError",
        "botocore.exceptions.HTTPClientError",
        "aiohttp.client_exceptions.ClientError",
    }
)
# An answer to HEAD has no body that names the error, so Arrow tells its status only.
_FAILURE_WORDS = re.compile(
    r"Generic S3 error|AWS Error (NETWORK_CONNECTION|SLOW_DOWN|INTERNAL_FAILURE|SERVICE_UNAVAILABLE|REQUEST_TIMEOUT)"
    r"|AWS Error \w+ \(HTTP status (429|5\d\d)\)"
)


def is_object_store(uri: str) -> bool:
    """Return whether ``uri`` names a place in an S3 object store."""
    return uri.startswith(_SCHEME)


def endpoint(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the address of a store that is not AWS's own, as ``http://host:port``."""
    values = os.environ if environment is None else environment
    return values.get("AWS_ENDPOINT_URL_S3") or values.get("AWS_ENDPOINT_URL")


def region(environment: Mapping[str, str] | None = None) -> str:
    """Return the region of the bucket."""
    values = os.environ if environment is None else environment
    return values.get("AWS_REGION") or values.get("AWS_DEFAULT_REGION") or "us-east-1"


def fsspec_options(uri: str) -> dict[str, Any]:
    """Options of fsspec's file system for ``uri``.

    Listings are not cached: other processes seal and consume segments. A put of more than one part is not conditional,
    therefore segments, of 64 MiB at most, go in one part. An object is read in one part too: a read in several asks for
    its size first.
    """
    if not is_object_store(uri):
        return {}
    network = {"connect_timeout": _CONNECT_S, "read_timeout": _REQUEST_S, "retries": {"max_attempts": ATTEMPTS}}
    return {
        "use_listings_cache": False,
        "max_concurrency": 1,
        "endpoint_url": endpoint(),
        "client_kwargs": {"region_name": region()},
        "config_kwargs": network,
    }


def delta_options(uri: str) -> dict[str, str] | None:
    """Storage options of delta-rs for ``uri``; None for a path."""
    if not is_object_store(uri):
        return None
    options = {
        "aws_region": region(),
        "aws_conditional_put": "etag",
        "timeout": f"{_REQUEST_S}s",
        "connect_timeout": f"{_CONNECT_S}s",
        "max_retries": str(ATTEMPTS),
        "retry_timeout": f"{_REQUEST_S}s",
    }
    address = endpoint()
    if address:
        options |= {"aws_endpoint": address, "aws_allow_http": str(address.startswith("http://")).lower()}
    return options


def arrow_options() -> dict[str, Any]:
    """Arguments of Arrow's S3 file system."""
    options: dict[str, Any] = {"region": region(), "connect_timeout": _CONNECT_S, "request_timeout": _REQUEST_S}
    address = endpoint()
    if address:
        scheme, _, host = address.partition("://")
        options |= {"scheme": scheme, "endpoint_override": host.rstrip("/")}
    return options


def is_failure(error: BaseException) -> bool:
    """Return whether an object store, or the network before it, failed a request of s3fs, delta-rs or Arrow.

    Their clients have no common error. s3fs lets those of its HTTP client pass, the other two have words of their own.
    """
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    return bool(kinds & _CLIENT_ERRORS) or bool(_FAILURE_WORDS.search(str(error)))


def spark_options(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of Spark for ``s3://`` addresses.

    The log store is the platform's own (`spark.compiled_jars`): Delta's excludes only writers of the same process.
    """
    s3a = "spark.hadoop.fs.s3a"
    conf = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        "spark.delta.logStore.s3.impl": "sda.platform.ConditionalPutLogStore",
        f"{s3a}.create.conditional.enabled": "true",
        f"{s3a}.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        f"{s3a}.endpoint.region": region(environment),
        f"{s3a}.connection.establish.timeout": f"{_CONNECT_S}s",
        f"{s3a}.connection.timeout": f"{_REQUEST_S}s",
        # One layer repeats: the SDK below would repeat each attempt, and throttling has a limit of its own (20).
        f"{s3a}.attempts.maximum": "0",
        f"{s3a}.retry.limit": str(ATTEMPTS),
        f"{s3a}.retry.throttle.limit": str(ATTEMPTS),
    }
    address = endpoint(environment)
    if address:
        conf |= {
            f"{s3a}.endpoint": address,
            f"{s3a}.path.style.access": "true",
            f"{s3a}.connection.ssl.enabled": str(address.startswith("https://")).lower(),
        }
    return conf
