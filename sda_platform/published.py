"""Where a running service answers: a small file in the home, for commands, checks and the supervisor.

The supervisor's own file (`platform.json`) also says whether the platform stops.
"""

import json
import os
import ssl
from pathlib import Path
from typing import Any, Final

from sda_platform.whole_files import replace_content

COLLECTOR: Final = "collector"
CATALOGUE: Final = "catalogue"
PLATFORM: Final = "platform"
ADDRESS_FILES: Final = tuple(f"{service}.json" for service in (COLLECTOR, CATALOGUE, PLATFORM))
"""The files. In a backup from somebody else they name addresses of theirs, to which tokens would be sent."""


def publish(home: Path, service: str, address: str, certificate: str = "") -> None:
    """Write that ``service`` of ``home``, which is this process, answers at ``address`` (host:port).

    ``certificate``: the file of its certificate, where it answers by TLS.
    """
    content = {"address": address, "pid": os.getpid(), "certificate": certificate}
    replace_content(home / f"{service}.json", json.dumps(content))


def withdraw(home: Path, service: str) -> None:
    """Remove what this process published; the address of another process stays."""
    if _content(home, service).get("pid") == os.getpid():
        (home / f"{service}.json").unlink(missing_ok=True)


def published(home: Path, service: str) -> str | None:
    """Where ``service`` of ``home`` answers; None where none runs."""
    address = _content(home, service).get("address")
    return None if address is None else str(address)


def url_of(home: Path, service: str) -> str | None:
    """Return the address of ``service`` of ``home`` as a URL; None where none runs."""
    address, scheme = published(home, service), "https" if _content(home, service).get("certificate") else "http"
    return None if address is None else f"{scheme}://{address}"


def trust_of(home: Path, service: str) -> ssl.SSLContext | None:
    """Return what accepts the very certificate of a service, by whatever name it is reached; None: it has no TLS.

    Raises OSError where the certificate cannot be read.
    """
    certificate = _content(home, service).get("certificate")
    if not certificate:
        return None
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False  # a service of this home is asked by its address
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def is_stopping(home: Path) -> bool:
    """Return whether the platform of ``home`` ends its processes now; what a killed supervisor left counts for
    nothing.
    """
    found = _content(home, PLATFORM)
    return bool(found.get("is_stopping")) and Path(f"/proc/{found.get('pid')}").exists()


def _content(home: Path, service: str) -> dict[str, Any]:
    """Return what the file holds; nothing where it is absent or damaged."""
    try:
        found = json.loads((home / f"{service}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
