"""Sources that read files: folders and uploads."""

from pathlib import Path
from typing import Any

import httpx

from sda_platform.edge.collector import Collector
from sda_platform_tests.support.http_sources import TLE

SETS = ("\n".join(TLE) + "\n").encode()


def folder(path: Path) -> dict[str, dict[str, Any]]:
    return {"partners": {"kind": "folder", "path": str(path), "interval_s": 0.005, "settle_s": 0.0}}


UPLOAD: dict[str, dict[str, Any]] = {"upload": {"kind": "upload", "bind": "127.0.0.1:0", "max_bytes": 100_000}}


async def post(collector: Collector, path: str, content: bytes = SETS, **options: Any) -> httpx.Response:
    source = collector.supervised["upload"].source
    async with httpx.AsyncClient(timeout=10) as client:
        return await client.post(f"http://{source.address}{path}", content=content, **options)
