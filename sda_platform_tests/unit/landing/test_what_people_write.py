"""What a person writes is refused, or each reader knows it: no command says that it is made, and no row has it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sda_platform.catalog.editing import known_edits, make_edit
from sda_platform.catalog.sites import EditingSite
from sda_platform.conjunction.acknowledging import UnusableAction, act, known_actions
from sda_platform.formats.edits import BadEdit
from sda_platform.ground.commands import BadId
from sda_platform.ground.current_fleet import current_fleet
from sda_platform.ground.log import CommandLog
from sda_platform.ground.reporting import change_registry
from sda_platform.ground.tables import MEMBERSHIP_FEED
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.delta_tables import lake_at

REFUSED = (UnusableAction, BadEdit, BadId, Misconfigured)
TEXTS = (
    "plain", "äöü", "a\tb", "a\nb", "a\rb", "a\r\nb", "a\x00b", "a\x1b[31mb", "a\x7fb", "a\x85b", "a\u200eb",
    "a\u202eb", "a\u2028b", "a\ufeffb", "a\ud800b", "<b>", "=1+1", "x" * 100,
)  # fmt: skip


def comment(lake: Lake, landing: str, text: str) -> bool:
    act(lake, landing, alert_id="e1", revision=0, by="ann", comment=text)
    return [each["comment"] for each in known_actions(lake, landing).get("e1", [])] == [text]


def assign(lake: Lake, landing: str, text: str) -> bool:
    act(lake, landing, alert_id="e1", revision=0, by="ann", action="assign", assigned_to=text)
    return [each["assigned_to"] for each in known_actions(lake, landing).get("e1", [])] == [text]


def edit(attribute: str) -> Callable[[Lake, str, str], bool]:
    def made(lake: Lake, landing: str, text: str) -> bool:
        make_edit(lake, landing, norad_id=5, attribute=attribute, value=text, site=EditingSite("local"), editor="ann")
        return [each.value for each in known_edits(lake, landing, {})] == [text]

    return made


def editor(lake: Lake, landing: str, text: str) -> bool:
    make_edit(lake, landing, norad_id=5, attribute="name", value="X", site=EditingSite("local"), editor=text)
    return [each.editor for each in known_edits(lake, landing, {})] == [text]


def command(lake: Lake, landing: str, text: str) -> bool:
    CommandLog(lake, landing, "north").issue("SAFE_MODE", expires_in_s=60, command_id=text)
    return [each["command_id"] for each in CommandLog(lake, landing, "north").new_events()] == [text]


def member(lake: Lake, landing: str, text: str) -> bool:
    change_registry(LandingZone(landing, MEMBERSHIP_FEED), lake.clock.now_ns(), "ann", [text], admits=True)
    return [each["member"] for each in current_fleet(lake, landing)] == [text]


WRITERS: dict[str, Callable[[Lake, str, str], bool]] = {
    "comment": comment,
    "assign": assign,
    "name": edit("name"),
    "remark": edit("remark"),
    "editor": editor,
    "command": command,
    "member": member,
}


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_person_writes_is_refused_or_known_to_readers(writer: str, text: str, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    try:
        is_known = WRITERS[writer](lake_at(tmp_path / "lake"), str(landing), text)
    except REFUSED as refusal:
        assert text not in ("plain", "äöü")
        assert len(str(refusal)) > 15
        assert not [each for each in landing.rglob("*") if each.is_file()]
    else:
        assert is_known
