"""The file of an evidence bundle: a ZIP whose signed table of contents has the SHA-256 of every other member.

Reading trusts nothing: names are few known forms, none may come twice, sizes are bounded by what the contents say, and
nothing is ever unpacked to a file. The signature is judged first: of what another than a trusted key signed, nothing
else is read.
"""

import base64
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sda_platform.bounded_zip import open_zip
from sda_platform.evidence.errors import EvidenceError
from sda_platform.signing_keys import fingerprint, is_signed_by, public_key, public_pem

CONTENTS, SIGNATURE = "contents.json", "signature.json"
FORMAT, FORMAT_VERSION = "sda-evidence", 1
_NAMES = re.compile(
    r"contents\.json|signature\.json|decision\.json|segments\.json|rows/[a-z_]{1,64}\.json|manifests/[a-z_]{1,64}\.jsonl"
    r"|segments/[0-9a-f]{64}"
)
_TIME = (1980, 1, 1, 0, 0, 0)
_MOST_MEMBERS, _MOST_BYTES = 100_000, 16 * 2**30
_MOST_DIRECTORY_BYTES = _MOST_CONTENTS_BYTES = 16 * 2**20
_MOST_SIGNATURE_BYTES, _MOST_JSON_BYTES, _MOST_MEMBER_BYTES = 10_000, 64 * 2**20, 512 * 2**20
_CHUNK_BYTES = 2**20
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError, KeyError)


@dataclass
class BundleWriter:
    """A new bundle that is written to ``stream`` until the writer's block ends; `finish` signs it."""

    stream: IO[bytes]
    members: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._archive = zipfile.ZipFile(self.stream, "w")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_of: object) -> None:
        self._archive.close()

    def add(self, name: str, content: bytes) -> None:
        """Add a member."""
        self.members[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        self._write(name, content)

    def add_json(self, name: str, value: Any) -> None:
        """Add a member of JSON."""
        self.add(name, canonical(value))

    def finish(self, key: Ed25519PrivateKey, facts: Mapping[str, Any]) -> None:
        """Add the contents, with ``facts``, and their signature by ``key``."""
        contents = canonical({"format": FORMAT, "version": FORMAT_VERSION, **facts, "members": self.members})
        self._write(CONTENTS, contents)
        signature = base64.b64encode(key.sign(contents)).decode()
        signed = {"algorithm": "Ed25519", "public_key": public_pem(key.public_key()), "signature": signature}
        self._write(SIGNATURE, canonical(signed))

    def _write(self, name: str, content: bytes) -> None:
        self._archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)


class Bundle:
    """The bundle in a file, opened for reading. ``problems`` are those of the container: nothing of it is hidden.

    ``signer``: the fingerprint of the key that signed it; empty: it is not signed. ``is_read``: whether the contents
    are known, because the key ``trusted`` signed them, or none is named.
    """

    def __init__(self, path: Path, trusted: str | None = None) -> None:
        """Raise EvidenceError where the file is no ZIP or has no contents that can be read, OSError."""
        if path.stat().st_size > _MOST_BYTES:
            raise EvidenceError(f"{path}: more than {_MOST_BYTES:,} bytes")
        try:
            self._file = path.open("rb")
            self._archive = open_zip(self._file, _MOST_DIRECTORY_BYTES)
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise EvidenceError(f"{path}: no evidence bundle: {error}") from None
        self.problems: list[str] = []
        self._found: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist()[: _MOST_MEMBERS + 1]:
            self._take(info)
        if len(self._archive.infolist()) > _MOST_MEMBERS:
            raise EvidenceError(f"{path}: more than {_MOST_MEMBERS:,} members")
        self._contents = self._content(CONTENTS, _MOST_CONTENTS_BYTES)
        if self._contents is None:
            raise EvidenceError(f"{path}: no evidence bundle: {'; '.join(self.problems)}")
        self.signer = self._signer()
        self.facts: dict[str, Any] = {}
        self.members: dict[str, tuple[str, int]] = {}
        self.is_read = trusted in (None, self.signer)
        if self.is_read:
            self._read(path, self._contents)
        elif self.signer:
            self.problems.append(f"signed by another key, {self.signer}, than the trusted one")

    def _read(self, path: Path, contents: bytes) -> None:
        try:
            self.facts = json.loads(contents)
            self.members = {
                str(name): (str(each["sha256"]), int(each["bytes"])) for name, each in self.facts["members"].items()
            }
            known = (self.facts["format"], self.facts["version"])
        except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise EvidenceError(f"{path}: {CONTENTS} cannot be read: {error!r}") from None
        if known != (FORMAT, FORMAT_VERSION):
            raise EvidenceError(f"{path}: {CONTENTS} is of the format {known}, this version reads {FORMAT} 1")
        sizes = [size for _, size in self.members.values()]
        if min(sizes, default=0) < 0 or sum(sizes) > _MOST_BYTES:
            raise EvidenceError(
                f"{path}: {CONTENTS} names members of less than none or more than {_MOST_BYTES:,} bytes"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_of: object) -> None:
        self._archive.close()
        self._file.close()

    def _signer(self) -> str:
        """Return the fingerprint of the key that signed the contents; empty, and a problem more, where none did."""
        content = self._content(SIGNATURE, _MOST_SIGNATURE_BYTES)
        try:
            signed = json.loads(content or b"")
            key = public_key(signed["public_key"].encode(), SIGNATURE)
            is_sound = is_signed_by(key, base64.b64decode(signed["signature"], validate=True), self._contents or b"")
            is_sound &= content == canonical({**signed, "public_key": public_pem(key)})
            is_sound &= set(signed) == {"algorithm", "public_key", "signature"} and signed["algorithm"] == "Ed25519"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self.problems.append(f"{SIGNATURE} cannot be read: {error}")
            return ""
        if not is_sound:
            self.problems.append(f"{CONTENTS} or {SIGNATURE} was changed: the signature is not that of the contents")
            return ""
        return fingerprint(key)

    def check(self) -> None:
        """Add to the problems each member that was changed, added or is missing."""
        for name in sorted(self.members.keys() - self._found.keys()):
            self.problems.append(f"{name} is missing")
        for name in sorted(self._found.keys() - self.members.keys() - {CONTENTS, SIGNATURE}):
            self.problems.append(f"{name} was added: the contents do not name it")
        for name in sorted(self.members.keys() & self._found.keys()):
            sha256, size = self.members[name]
            if self._sha256(name, size) != sha256:
                self.problems.append(f"{name} was changed: its bytes are not those that the contents name")

    def json(self, name: str) -> Any:
        """Read a member of JSON. Raises EvidenceError."""
        try:
            return json.loads(self.text(name, _MOST_JSON_BYTES))
        except (ValueError, RecursionError) as error:
            raise EvidenceError(f"{name} cannot be read: {error}") from None

    def text(self, name: str, most_bytes: int = _MOST_MEMBER_BYTES) -> bytes:
        """Read a member whole. Raises EvidenceError."""
        content = self._content(name, min(self.members.get(name, ("", 0))[1], most_bytes))
        if content is None:
            raise EvidenceError(self.problems.pop())
        return content

    def names(self, directory: str) -> list[str]:
        """Return the members below ``directory``."""
        return sorted(name for name in self.members if name.startswith(f"{directory}/"))

    def _take(self, info: zipfile.ZipInfo) -> None:
        if not _NAMES.fullmatch(info.filename):
            self.problems.append(f"{info.filename[:100]!r} was added: a bundle has no such member")
        elif info.filename in self._found:
            self.problems.append(f"{info.filename} is there twice")
        else:
            self._found[info.filename] = info

    def _content(self, name: str, most: int) -> bytes | None:
        """Read at most ``most`` bytes; None, and a problem more, where there are more, or none that can be read."""
        chunks: list[bytes] = []
        try:
            for chunk in self._chunks(name, most):
                chunks.append(chunk)
        except _DAMAGE as error:
            self.problems.append(f"{name} is missing" if name not in self._found else f"{name} was changed: {error}")
            return None
        return b"".join(chunks)

    def _sha256(self, name: str, size: int) -> str:
        found = hashlib.sha256()
        try:
            for chunk in self._chunks(name, size):
                found.update(chunk)
        except _DAMAGE:
            return ""
        return found.hexdigest()

    def _chunks(self, name: str, most: int) -> Iterator[bytes]:
        info, read = self._found[name], 0
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("compressed in another way")
        with self._archive.open(info) as stream:
            while chunk := stream.read(min(_CHUNK_BYTES, most - read + 1)):
                read += len(chunk)
                if read > most:
                    raise ValueError("longer than the contents say")
                yield chunk


def canonical(value: Any) -> bytes:
    """Return JSON of which equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False).encode() + b"\n"
