"""Every requirement id in the name of a test is explained in sda_platform_tests/requirements.md."""

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
EXPLAINED = (TESTS / "requirements.md").read_text()
_NAME = re.compile(r"def (test_\w+)")
_TRACK = re.compile(r"D[LP][1-6]$")
_ID = re.compile(r"(E|D|A|V|O|CP|F|I|Q|G)\d{1,3}$")
# Criteria of published capstones: page manager, B+ tree, LSM tree, write-ahead log, merge, clocks; then replicated
# telemetry, consensus, failover, gossip, pass windows, leases, ground commands, and snapshots.
_CRITERION = re.compile(r"(PM|BT|LS|WL|CM|CS|RT|OR|GF|TG|PW|ML|GC|MV)(\d{1,2})$")


def ids_in(name: str) -> Iterator[str]:
    """The ids at the end of a test's name: ``…_spec_46_53`` names two, ``…__DP3_F7_I17`` names DP3-F7 and DP3-I17."""
    for numbers in re.findall(r"_spec((?:_\d+)+)", name):
        yield from (f"spec_{number}" for number in numbers.strip("_").split("_"))
    track = ""
    for part in name.partition("__")[2].split("_"):
        if _TRACK.match(part):
            track = f"{part}-"
        elif found := _CRITERION.match(part):
            yield f"{found[1]}-{found[2]}"
        elif _ID.match(part):
            is_own = part.startswith(("E", "D", "A", "V", "O", "CP")) and not (
                track and (part[0] == "O" or track[1] == "L")
            )
            yield part.replace("CP", "CP-") if is_own else track + part


def explained(requirement: str) -> bool:
    number = re.fullmatch(r"CP-(\d+)", requirement)
    return f"**{requirement}**" in EXPLAINED or bool(number and 1 <= int(number[1]) <= 40)


def test_every_id_in_a_tests_name_is_explained() -> None:
    names = {name for path in TESTS.rglob("test_*.py") for name in _NAME.findall(path.read_text())}
    used = {requirement for name in names for requirement in ids_in(name)}
    assert len(used) > 60, "the search itself must find ids"
    assert sorted(requirement for requirement in used if not explained(requirement)) == []
