"""Certificates for servers, each its own authority: a right one, another one, and an expired one."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest


def make_certificates(directory: Path, host: str = "localhost") -> None:
    """Write right, other and expired (.crt and .key) into ``directory``; skips the test without `cryptography`."""
    pytest.importorskip("cryptography", reason="the package cryptography makes the certificates")
    now = datetime.now(UTC)
    for name, until in (("right", 1), ("other", 1), ("expired", -1)):
        _certify(directory / name, host, now - timedelta(days=30), now + timedelta(days=until))


def _certify(path: Path, host: str, begin: datetime, end: datetime) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, path.name)])
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(host)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.with_suffix(".crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.with_suffix(".key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
