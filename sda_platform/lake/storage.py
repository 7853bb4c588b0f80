"""Where the files of the lake and of the landing zones are: the one way from an address to a path or a file system.

An address is a path of this machine or ``s3://bucket/prefix``. An object store must take conditional puts, because
commits exclude each other by them alone.
"""

import uuid
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pyarrow import fs
from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.object_store import ATTEMPTS, arrow_options, endpoint, fsspec_options, is_object_store

_PROBES = ".probes"


def location(uri: str) -> UPath:
    """Return the path at ``uri``."""
    path: UPath = UPath(uri, **fsspec_options(uri))
    if is_object_store(uri):
        path.fs.retries = 1  # its client below repeats already: a store that is slow would hold a run for an hour
    return path


def content_of(file: UPath) -> bytes:
    """Return the bytes of a small file: one request to an object store, where opening the file takes another.

    Raises FileNotFoundError.
    """
    return bytes(file.fs.cat_file(file.path))


def contents_of(files: Sequence[UPath]) -> list[bytes | None]:
    """Return `content_of` each; None for one that is not there. An object store is asked for all at the same time."""
    if not is_object_store(str(files[0])):
        return [_content_or_none(each) for each in files]
    found = files[0].fs.cat([each.path for each in files], on_error="return")
    contents = [found[each.path] for each in files]
    for each in contents:
        if isinstance(each, Exception) and not isinstance(each, FileNotFoundError):
            raise each
    return [each if isinstance(each, bytes) else None for each in contents]


def _content_or_none(file: UPath) -> bytes | None:
    try:
        return content_of(file)
    except FileNotFoundError:
        return None


def text_of(file: UPath) -> str:
    """Return the same as text, where bytes that are none show as replaced."""
    return content_of(file).decode(errors="replace")


def names_after(directory: UPath, name: str) -> Iterator[str]:
    """Names in a directory of an object store that sort after ``name``, in order; one request for each 1,000."""
    bucket, _, prefix = directory.path.partition("/")
    after = f"{prefix}/{name}"
    while after:
        page = directory.fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{prefix}/", StartAfter=after)
        keys = [each["Key"] for each in page.get("Contents", ())]
        yield from (key.rpartition("/")[2] for key in keys)
        after = keys[-1] if page["IsTruncated"] else ""


def entries_of(directory: UPath) -> tuple[list[str], list[str]]:
    """Names of the files and of the directories in one of an object store; a request for each 1,000.

    fsspec asks again, for the directory above, where it finds nothing.
    """
    bucket, _, prefix = directory.path.partition("/")
    files: list[str] = []
    directories: list[str] = []
    following: dict[str, str] = {}
    while True:
        page = directory.fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=f"{prefix}/", Delimiter="/", **following)
        files += [name for each in page.get("Contents", ()) if (name := each["Key"].rpartition("/")[2])]
        directories += [each["Prefix"].rstrip("/").rpartition("/")[2] for each in page.get("CommonPrefixes", ())]
        if not page["IsTruncated"]:
            return files, directories
        following = {"ContinuationToken": page["NextContinuationToken"]}


def arrow_directory(uri: str) -> fs.FileSystem:
    """Arrow's file system of the directory at ``uri``."""
    if is_object_store(uri):
        return fs.SubTreeFileSystem(uri.partition("://")[2], _arrow_store(endpoint()))
    root, path = fs.FileSystem.from_uri(uri)
    return fs.SubTreeFileSystem(path, root)


@lru_cache
def _arrow_store(_address: str | None) -> fs.FileSystem:
    """One client per process and address: each has a pool of connections."""
    return fs.S3FileSystem(**arrow_options(), retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS))


def require_conditional_put(uri: str) -> None:
    """Raise Misconfigured unless the object store at ``uri`` refuses a put of an object that exists.

    A path of this machine is left as it is. A store that ignores ``If-None-Match`` would let two commits of one version
    pass, and the second would replace the first.
    """
    if not is_object_store(uri):
        return
    probe = location(uri) / _PROBES / str(uuid.uuid4())
    try:
        durable.put_if_absent(probe, b"1")
        is_replaced = durable.put_if_absent(probe, b"2")
        probe.unlink()
    except Exception as error:  # of the network, of the credentials: each client has errors of its own
        raise Misconfigured(f"{uri}: the object store cannot be used: {error}") from error
    if is_replaced:
        raise Misconfigured(
            f"{uri}: the object store does not refuse a conditional put (If-None-Match) of an object that exists, so "
            "commits would overwrite each other; use a store that does"
        )
