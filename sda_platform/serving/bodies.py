"""The body of a request that writes: its format by the media type, and its bytes within a bound."""

from collections.abc import Mapping

from starlette.requests import Request

from sda_platform.serving.puts import MOST_BYTES
from sda_platform.serving.requests import BadRequest


def media_type_of(request: Request, formats: Mapping[str, str]) -> str:
    """The format of ``formats`` that the request's Content-Type names. Raises BadRequest."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in formats:
        raise BadRequest(f"Content-Type is {media_type[:40]!r}, must be one of {', '.join(formats)}")
    return formats[media_type]


async def body_of(request: Request) -> bytes:
    """The body. Raises BadRequest where it is empty or too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise BadRequest(f"the body is larger than {MOST_BYTES:,} bytes; use `sda land` for large files")
        parts.append(part)
    if not size:
        raise BadRequest("the body is empty")
    return b"".join(parts)
