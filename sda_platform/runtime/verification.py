"""`sda lake verify`, and the verification at every start of the platform: is the lake complete and undamaged?

    python -m sda_platform.runtime.verification

is run by the supervisor before anything may write. It repairs the damage of a power loss, records its repairs, and ends
with exit code 1 if rows are lost.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.lake import durable
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.retention import RETENTION
from sda_platform.lake.storage import location, require_conditional_put
from sda_platform.observability.red_tables import review_unverified
from sda_platform.recovery import rebuilding, repair_record
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import RepairFinding, recover
from sda_platform.registry import TABLES, landing_zones
from sda_platform.replay.shadow import remove_left_shadows
from sda_platform.runtime import platform_home
from sda_platform.settings import Settings


def verify(
    settings: Settings, depth: Depth, *, repair: bool, accepted: frozenset[str] = frozenset()
) -> list[RepairFinding]:
    """Examine every table, repair it with ``repair``, and record the result in the home.

    Full depth also finds archived segments whose rows no table has. ``accepted`` is as `recover` takes it. For a repair
    the caller must ensure that no platform runs here.
    """
    began = time.perf_counter()
    lake = Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)
    zones = landing_zones(settings.landing_uri)
    findings = recover(lake, TABLES, zones, depth=depth, repair=repair, accepted=accepted)
    repair_record.write(settings.home, findings, seconds=time.perf_counter() - began)
    return findings


def rebuild(settings: Settings, name: str, accepted: frozenset[str]) -> list[str]:
    """Set the table ``name`` aside with all that was made from it, and put back what it took; what was done, in words.

    ``all`` are all tables but those that landing zones fill. The caller must ensure that no platform runs here. Raises
    Misconfigured for an unknown name, `NotRebuildable`.
    """
    lake = Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)
    if name == "all":
        return rebuilding.rebuild_derived(lake, TABLES)
    table = next((table for table in TABLES if table.name == name), None)
    if table is None:
        raise Misconfigured(f"there is no table {name!r}; `sda status` lists them")
    return rebuilding.rebuild(lake, TABLES, table, landing_zones(settings.landing_uri), accepted=accepted)


def lines(findings: Sequence[RepairFinding]) -> Iterator[str]:
    """Describe the verification: sound tables in one line, each other table with findings and repairs."""
    sound = [f for f in findings if f.outcome == "sound"]
    commits, files = (sum(getattr(f.examination, n) for f in findings) for n in ("commits_read", "files_seen"))
    yield f"{len(sound)} of {len(findings)} tables are sound ({commits:,} commits and {files:,} files read)"
    for finding in findings:
        if finding.outcome == "sound":
            continue
        yield f"{finding.examination.table}: {finding.outcome}: {'; '.join(finding.problems)}"
        yield from (f"  {step}" for step in finding.repaired)
        if finding.refused:
            yield f"  {finding.refused}"


def last_verification(home: Path) -> str:
    """Describe the last verification of the lake and its result; one line for `sda status`."""
    record = repair_record.read(home)
    if not record:
        return "not verified yet (`sda lake verify`)"
    unsound = [f"{name} {table['outcome']}" for name, table in record["tables"].items() if table["outcome"] != "sound"]
    outcome = ", ".join(unsound) or f"{len(record['tables'])} tables sound"
    return f"verified {record['verified_utc']} in {record['seconds']:.2f} s: {outcome}"


def main() -> int:
    """Verify and repair the lake of the environment's settings; 1 if no run may use it.

    A lake in an object store is not damaged by a power loss, and other platforms may write to it: it is only examined.
    Commits without a verdict are verified. A red table does not prevent the start, because only its consumers stop.
    """
    settings = Settings()
    try:
        RETENTION.require_covers(platform_home.longest_run_h())
        for uri in (settings.lake_uri, settings.landing_uri):
            require_conditional_put(uri)
    except Misconfigured as error:
        sys.stdout.write(f"{error}\n")
        return 1
    if left := remove_left_shadows(settings.lake_uri):
        sys.stdout.write(f"removed what killed processes left: {', '.join(left)}\n")
    is_ours = durable.is_synced_by_hand(location(settings.lake_uri))
    findings = verify(settings, Depth.PRESENCE if is_ours else Depth.NEWEST, repair=is_ours)
    for line in lines(findings):
        sys.stdout.write(line + "\n")
    if any(finding.outcome == "damaged" for finding in findings):
        return 1
    for line in review_unverified(Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
