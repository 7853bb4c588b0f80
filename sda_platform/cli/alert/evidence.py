"""`sda alert evidence`: an evidence bundle as a file, and what its verification found as text."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sda_platform.evidence.bundle import BundleWriter
from sda_platform.evidence.collecting import collect, facts_of
from sda_platform.evidence.errors import EvidenceError
from sda_platform.evidence.verification import Verified
from sda_platform.lake.lake import Lake
from sda_platform.registry import TABLES_BY_NAME
from sda_platform.settings import Settings
from sda_platform.signing_keys import fingerprint, private_key


def write_bundle(lake: Lake, settings: Settings, alert: str, out: Path, key: Path) -> Iterator[str]:
    """Write the evidence of ``alert`` to ``out``, whole or not at all; yields what a person should know of it.

    Raises EvidenceError, UnusableKey, UnknownAlert, UnknownMoment, VersionExpired, OSError.
    """
    for place in (settings.home, Path(settings.lake_uri), Path(settings.landing_uri)):
        if key.resolve().is_relative_to(place.resolve()):
            raise EvidenceError(f"{key}: keep the key outside of {place}: who can change the lake must not sign for it")
    signing = private_key(key)
    descriptor, partial = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            with BundleWriter(stream) as bundle:
                made = collect(lake, settings.landing_uri, TABLES_BY_NAME, alert, bundle)
                bundle.finish(signing, facts_of(made, time.time_ns()))
            stream.flush()
            os.fsync(stream.fileno())
        Path(partial).replace(out)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    yield f"written: {out}, alert {made.alert_id} revision {made.revision}"
    yield f"  {made.rows} rows, {made.manifests} manifests, {made.segments} segments"
    if made.absent_segments:
        yield f"  of {made.absent_segments} segments the bytes are not in the archive any more: only their hashes are"
    yield f"  signed by {fingerprint(signing.public_key())}"


def report_lines(found: Verified) -> Iterator[str]:
    """Write what was found, each on a line of its own, the verdict first and last: the texts are the bundle's."""
    lines = [
        found.verdict,
        found.alert,
        f"signed by {found.fingerprint}" if found.fingerprint else "not signed",
        *found.facts,
        *(f"problem: {problem}" for problem in found.problems),
        found.verdict,
    ]
    yield from (" ".join(line.split()) for line in lines)
