"""Ed25519 keys of evidence bundles and of sites: PEM files that stay outside of what they vouch for."""

import hashlib
import os
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from sda_platform.private_home import ExposedFile, private_content

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_MOST_PEM_BYTES = 10_000


class UnusableKey(ValueError):
    """A key cannot be read or made; the text names the file and the reason."""


def make_key(path: Path) -> tuple[Path, str]:
    """Make a private key at ``path``, which must not exist, and its public key beside it (``.pub``).

    Returns the path of the public key, and its fingerprint. Raises UnusableKey, OSError.
    """
    key, public = Ed25519PrivateKey.generate(), path.with_name(path.name + ".pub")
    private_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for file, mode, pem in ((path, 0o600, private_pem), (public, 0o644, public_pem(key.public_key()).encode())):
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
                stream.write(pem)
        except FileExistsError:
            raise UnusableKey(f"{file}: there is a file already, and no key is replaced") from None
    return public, fingerprint(key.public_key())


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key that no other user may read. Raises UnusableKey, OSError."""
    try:
        pem = private_content(path)
    except ExposedFile:
        raise UnusableKey(
            f"{path}: other users may read this key; take it from them with chmod 600, or make a new one"
        ) from None
    try:
        found = load_pem_private_key(_bounded(path, pem), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey(f"{path}: no private key in PEM without a password: {error}") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise UnusableKey(f"{path}: this key is not of Ed25519; `sda alert evidence-key` makes one")
    return found


def trusted_fingerprint(text: str) -> str:
    """Return the fingerprint that ``text`` is, or that of the public key in the PEM file ``text``.

    Raises UnusableKey, OSError.
    """
    if _FINGERPRINT.fullmatch(text.lower()):
        return text.lower()
    path = Path(text)
    if not path.exists():
        raise UnusableKey(f"{text}: neither a fingerprint (64 hexadecimal digits) nor a file")
    return fingerprint(public_key(_bounded(path, path.read_bytes()), text))


def public_key(pem: bytes, name: str) -> Ed25519PublicKey:
    """Read a public key; ``name`` is what an UnusableKey calls its place."""
    try:
        found = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey(f"{name}: no public key in PEM: {error}") from None
    if not isinstance(found, Ed25519PublicKey):
        raise UnusableKey(f"{name}: this key is not of Ed25519")
    return found


def public_pem(key: Ed25519PublicKey) -> str:
    """Return a public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the key's 32 bytes, hexadecimal."""
    return hashlib.sha256(raw_key(key)).hexdigest()


def raw_key(key: Ed25519PublicKey) -> bytes:
    """Return the 32 bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def is_signed_by(key: Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    """Return whether ``signature`` is that of ``text`` by ``key``."""
    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _bounded(path: Path, pem: bytes) -> bytes:
    if len(pem) > _MOST_PEM_BYTES:
        raise UnusableKey(f"{path}: too long for a key")
    return pem
