"""What waits for a person, the sensors and the schedule, as pages over a small lake."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from sda_platform.catalog.tables import CATALOG_CONFLICTS, CONCURRENT, HELD_ELEMENT_SETS
from sda_platform.conjunction.acknowledging import act
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.readers import ConsoleReader
from sda_platform.console.routes import console_routes
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.acknowledgements import ASSIGN
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.notification import channel_state
from sda_platform.notification.channel_state import ChannelState
from sda_platform.notification.due import FollowedAlert
from sda_platform.notification.message import PeopleMessage
from sda_platform.observability.vitals.faults import Fault, Side, red
from sda_platform.observability.vitals.history import VitalHistory, store
from sda_platform.recovery.review import review
from sda_platform.settings import Settings
from sda_platform.tasking.tables import PASS_SCHEDULE, PASS_WINDOWS
from sda_platform.units import MINUTE_NS
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.delta_tables import commit, row
from sda_platform_tests.support.encounters import TCA_NS, assessed
from sda_platform_tests.support.hostile import HOSTILE
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.served_ui import served
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client

HTML = {"accept": "text/html"}
RULES = """
[channels.desk]
url_variable = "DESK"
[[rules]]
name = "nobody looks"
channels = ["desk"]
unacknowledged_for = "30min"
"""
NAMES = {"an-event": "red", "second": "yellow", "third": "yellow"}


def alert(event_id: str, level: str, **facts: Any) -> dict[str, Any]:
    return {"event_id": event_id, "sequence": 2, "op": "insert", "risk": level, "status": "open", "norad_id_1": 25544,
            "norad_id_2": 5, "tca_time_ns": TCA_NS, "as_of_ns": START_NS, "miss_distance_km": 0.3,
            "object_name_1": "ISS", "object_name_2": HOSTILE["script"], **facts}  # fmt: skip


def booking(number: int, start_min: float | None, **facts: Any) -> dict[str, Any]:
    is_booked = start_min is not None
    start_ns = after(60 * start_min) if start_min is not None else None
    known = {"request_id": f"r{number}", "sequence": 1, "op": "insert", "norad_id": number, "reason": "conjunction",
             "priority_class": 0, "owner": "NASA", "deadline_time_ns": after(8 * 3600),
             "status": "scheduled" if is_booked else "unserved", "source_id": "radar-5" if is_booked else None,
             "unserved_reason": None if is_booked else "no_window", "unserved_detail": None, "pass_id": None,
             "start_time_ns": start_ns, "end_time_ns": start_ns and start_ns + 2 * MINUTE_NS,
             "max_elevation_deg": 41.0, "azimuth_start_deg": 10.0, "azimuth_end_deg": 20.0}  # fmt: skip
    return row(PASS_SCHEDULE, **{**known, **facts})


def desk_lake(home: Path) -> Lake:
    """Three alerts, two sensors of which one is silent and biased, a schedule, an edit made apart, a dead letter."""
    lake = small_catalogue(home, [5, 25544])
    commit(lake, CONJUNCTION_ASSESSMENTS, [assessed(0, event_id=each) for each in NAMES])
    commit(lake, CONJUNCTION_ALERTS, [row(CONJUNCTION_ALERTS, **alert(*each)) for each in NAMES.items()])
    seen = [("radar-5", 60 * minute) for minute in (1, 2, 3, 300)] + [("radar-7", 3600.0), ("isl-25544", 10.0)]
    commit(
        lake,
        OBSERVATIONS,
        [
            row(OBSERVATIONS, observation_id=f"o{number}", source_kind=source.partition("-")[0], source_id=source,
                sensor_time_ns=after(-seconds), received_time_ns=after(-seconds), azimuth_rad=1.0, elevation_rad=0.7)
            for number, (source, seconds) in enumerate(seen)
        ],
    )  # fmt: skip
    heard = {"heard/radar-5": after(-60), "heard/radar-7": after(-3600), "heard/isl-25544": after(-10)}
    commit(lake, FUSED_TRACKS, [], watermarks=heard)
    biases = [
        row(TIME_TAG_BIASES, source_id="radar-7", term_start_ns=after(-hours * 3600), offset_s=0.012 / hours,
            sigma_s=0.001, residual_rms=1.4, readings=200, is_applied=True, bound_s=0.1)
        for hours in (2, 1)
    ]  # fmt: skip
    commit(lake, TIME_TAG_BIASES, biases)
    commit(lake, TRACKS, [row(TRACKS, norad_id=25544, last_seen_ns=after(-90), state="confirmed", windows=7,
                              position_sigma_m=12.0)])  # fmt: skip
    commit(lake, PASS_SCHEDULE, [booking(25544, 20), booking(5, None), booking(11, 40, source_id="radar-7")])
    commit(lake, PASS_WINDOWS, [row(PASS_WINDOWS, pass_id="p", sequence=1, op="insert", norad_id=25544,
                                    source_id="radar-5", aos_time_ns=after(600), los_time_ns=after(900))])  # fmt: skip
    commit(lake, CATALOG_CONFLICTS, [row(CATALOG_CONFLICTS, norad_id=5, attribute="name", outcome=CONCURRENT,
                                         value="VANGUARD", claimant="ann", origin="site-a")])  # fmt: skip
    commit(lake, HELD_ELEMENT_SETS, [row(HELD_ELEMENT_SETS, norad_id=25544, epoch_time_ns=after(60), outcome="held",
                                         reason="unsettled", segment_sha256="ef" * 32, times_usual=None,
                                         held_since_ns=after(0), in_track_km=None)])  # fmt: skip
    commit(lake, DEAD_LETTERS, [row(DEAD_LETTERS, stage="raw_records", error_kind="bad_length", error="cut at 12",
                                    source_id="radar-7", feed="radar", received_time_ns=after(-60))])  # fmt: skip
    review(lake, CONJUNCTION_ALERTS)  # messages to people are of verified commits alone
    return lake


@contextmanager
def desk(home: Path, reader: ConsoleReader = ConsoleReader(may_act=True)) -> Iterator[tuple[Client, ConsoleContext]]:  # noqa: B008 - frozen
    lake, settings = desk_lake(home), Settings(home=home)
    overviews = Overviews(lake, settings.landing_uri)
    context = ConsoleContext(lake, settings, overviews, lambda: True, lambda: "http://dagster", lambda _: reader)
    with Client(Starlette(routes=console_routes(context))) as client:
        yield client, context


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Pages that no test changes."""
    with desk(tmp_path_factory.mktemp("desk")) as (client, _):
        yield client


def shown(client: Client, path: str) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


def part(text: str, title: str) -> str:
    """The section of this title."""
    return next(each for each in text.split("<section")[1:] if f"<h2>{title}</h2>" in each)


def listed(text: str, title: str) -> list[str]:
    return re.findall(r'<tr id="c-([\w-]+)">', part(text, title))


def test_alerts_wait_until_somebody_acknowledges_their_newest_revision(tmp_path: Path) -> None:
    with desk(tmp_path) as (client, context):
        landing = context.settings.landing_uri
        assert listed(shown(client, "/waiting"), "To acknowledge") == ["an-event", "second", "third"]
        act(context.lake, landing, alert_id="an-event", revision=2, by="ann")
        act(context.lake, landing, alert_id="second", revision=1, by="ann")
        act(context.lake, landing, alert_id="third", revision=2, by="ann", action=ASSIGN, assigned_to="Bob")
        text = shown(client, "/waiting?person=bob")
        assert listed(text, "To acknowledge") == ["second", "third"], "one was revised since, one is only assigned"
        assert listed(text, "Assigned to bob") == ["third"]
        assert listed(shown(client, "/waiting?person=ann"), "To acknowledge") == ["second", "third"]
        assert "no alert is assigned to ann" in shown(client, "/waiting?person=ann")


def test_who_has_logged_in_need_not_say_who_that_is(tmp_path: Path) -> None:
    with desk(tmp_path, ConsoleReader("bob", may_act=True, has_login=True)) as (client, context):
        act(context.lake, context.settings.landing_uri, alert_id="third", revision=2, by="ann", action=ASSIGN,
            assigned_to="bob")  # fmt: skip
        text = shown(client, "/waiting?person=ann")
        assert listed(text, "Assigned to bob") == ["third"] and 'name="person"' not in text


def test_escalations_are_listed_until_an_acknowledgement_and_a_channel_that_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "notify.toml").write_text(RULES)
    followed = {
        "an-event": FollowedAlert("red", after(-2400), 2, sent_sequence=2, sent_level="red"),
        "second": FollowedAlert("yellow", after(-600), 2),
    }
    waits = PeopleMessage("key", "title", "body")
    state = ChannelState({"nobody looks": followed}, pending=waits, pending_since_s=1.0, problem="refused")
    channel_state.store(tmp_path, "desk", state)
    with desk(tmp_path) as (client, context):
        text = part(shown(client, "/waiting"), "Escalations")
        assert re.findall(r"conjunctions/([\w-]+)", text) == ["an-event", "second"]
        assert "sent" in text and "not yet" in text and "in 20 min" in text and "passed 10 min ago" in text
        assert "people are not notified" in part(shown(client, "/waiting"), "Decisions on data")
        act(context.lake, context.settings.landing_uri, alert_id="second", revision=2, by="ann")
        text = part(shown(client, "/waiting"), "Escalations")
        assert re.findall(r"conjunctions/([\w-]+)", text) == ["an-event"]


def test_the_first_lines_state_the_faults_of_the_platform(tmp_path: Path) -> None:
    found = [red(f"vital_{n}", [Fault("runs", Side.PLATFORM, f"fault {n}")]) for n in range(5)]
    with desk(tmp_path) as (client, _):
        assert "fault" not in shown(client, "/")
        store(tmp_path, VitalHistory().after(found, 1.0))
        for path in ("/", "/waiting"):
            text = shown(client, path)
            assert "running, 5 faults" in text and "Fault: vital_0 (platform): fault 0" in text, path
            assert "2 more faults" in text, path


def test_a_red_vital_says_what_to_do(tmp_path: Path) -> None:
    found = red("tables_are_sound", [Fault("observations", Side.PLATFORM, "observations is damaged")])
    with desk(tmp_path) as (client, _):
        store(tmp_path, VitalHistory().after([found], 1.0))
        text = part(shown(client, "/waiting"), "Decisions on data")
    assert "vital tables_are_sound (platform)" in text and "red tables (docs/how-to/operate.md#red-tables)." in text


def test_decisions_on_data_name_what_to_do(pages: Client) -> None:
    text = part(shown(pages, "/waiting"), "Decisions on data")
    for words in ("sda catalog resolve 5 name VALUE", "name: VANGUARD", "1 dead letter bad_length",
                  "Mostly from radar-7", "sda lake reprocess --kind bad_length", "newer element set of",
                  "sda catalog release efefefefefef:"):  # fmt: skip
        assert words in text, words


def test_a_newer_set_that_is_held_is_shown_with_its_object_and_conjunctions__44(pages: Client) -> None:
    for path in ("/objects/25544", "/conjunctions/an-event"):
        assert "newer sets, held" in shown(pages, path), path


def test_the_sensors_that_are_silent_come_first_with_what_each_observed(pages: Client) -> None:
    text = shown(pages, "/sensors")
    names = re.findall(r'href="sensors/([\w-]+)"', text)
    assert names[:3] == ["radar-7", "isl-25544", "radar-5"] and "1 silent" in text
    assert "silent for 1.0 h" in text and "+12.0 ± 1.0, corrected" in text
    assert "never reported" in text, "a listed sensor that sent nothing"
    assert re.findall(r'href="sensors/([\w-]+)"', shown(pages, "/sensors?text=isl-")) == ["isl-25544"]
    assert "http://dagster/assets/observations" in text


def test_the_page_of_a_sensor_has_silence_coverage_bias_residuals_and_what_was_refused(pages: Client) -> None:
    text = shown(pages, "/sensors/radar-5")
    gaps = part(text, "Observations of the last day")
    assert "2024-10-31T19:00:00Z" in gaps and "2024-10-31T23:57:00Z" in gaps and "5.0 h" in gaps
    assert "in 20 min" in part(text, "Next observations") and "objects in view" in part(text, "Coverage ahead")
    text = shown(pages, "/sensors/radar-7")
    assert "1.40 sigmas" in text and "cut at 12" in part(text, "Refused records of the last day")
    assert ">now<" in part(text, "Observations of the last day"), "it is silent since its last observation"
    for path in ("radar-5/times", "radar-5/sky", "radar-7/biases"):
        assert pages.get(f"/sensors/{path}.svg").text.startswith("<svg")


def test_a_sensor_that_the_list_lacks_says_that_no_fit_uses_it_and_where_to_add_it(tmp_path: Path) -> None:
    lake, settings = small_catalogue(tmp_path, [5]), Settings(home=tmp_path)
    commit(lake, FUSED_TRACKS, [], watermarks={"heard/radar-31": after(-1), "heard/optical-orbit": after(-1)})
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), lambda: False, lambda: None)
    with Client(Starlette(routes=console_routes(context))) as client:
        listed = shown(client, "/sensors")
        assert listed.count("not in the list of sensors") == 1
        assert re.findall(r'href="sensors/([\w-]+)"', listed)[0] == "radar-31", "what waits for a person comes first"
        assert f"add it to {tmp_path}/sensors.csv" in shown(client, "/sensors/radar-31")


def test_a_list_that_cannot_be_used_is_a_page_with_the_reason_and_what_to_do(tmp_path: Path) -> None:
    with desk(tmp_path) as (client, _):
        (tmp_path / "sensors.csv").write_text("kind,id\nradar,1,2\n")
        for path in ("/sensors", "/sensors/radar-7"):
            answer = client.get(path, headers=HTML)
            assert answer.status_code == 500
            assert "<h1>A list cannot be used</h1>" in answer.text and "sensors.csv" in answer.text
            assert "Mend the file" in answer.text


def test_the_schedule_names_what_no_sensor_serves_and_why(pages: Client) -> None:
    text = shown(pages, "/schedule")
    assert "class 0: 2 of 3" in text
    assert "objects/5" in part(text, "Not served") and "no window" in part(text, "Not served")
    assert re.findall(r'href="sensors/([\w-]+)"', part(text, "Observations")) == ["radar-5", "radar-7"]
    assert re.findall(r'href="sensors/([\w-]+)"', shown(pages, "/schedule?sensor=radar-7")) == ["radar-7"]
    assert re.findall(r'href="sensors/([\w-]+)"', shown(pages, "/schedule?object=ISS")) == ["radar-5"]
    assert pages.get("/schedule/sensors.svg").text.startswith("<svg")


def test_a_page_of_an_object_says_when_it_was_and_will_be_observed(pages: Client) -> None:
    for path in ("/objects/25544", "/conjunctions/an-event"):
        text = shown(pages, path)
        assert "confirmed, 7 windows, 1 sigma 12 m" in text and "in 20 min, by radar-5" in text, path
    assert "no window" in shown(pages, "/objects/5")


def test_a_platform_without_sensors_has_the_same_pages(tmp_path: Path) -> None:
    lake, settings = small_catalogue(tmp_path, [5]), Settings(home=tmp_path)
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), lambda: False, lambda: None)
    with Client(Starlette(routes=console_routes(context))) as client:
        assert "0 to acknowledge, 0 assigned, 0 escalations, 0 decisions on data" in shown(client, "/waiting")
        assert "No observation is requested" in shown(client, "/schedule")
        assert "never reported" in shown(client, "/sensors") and "none" in shown(client, "/sensors/radar-5")
        assert client.get("/sensors/radar-5/times.svg").text.startswith("<svg")


@pytest.mark.parametrize("path", ["/sensors/nope", "/sensors/radar-5/other.svg", "/sensors/%3Cb%3E"])
def test_what_there_is_not_is_not_found(pages: Client, path: str) -> None:
    assert pages.get(path, headers=HTML).status_code == 404


def test_a_browser_shows_every_page_narrow_and_wide_light_and_dark_without_a_barrier(tmp_path: Path) -> None:
    with ExitStack() as held:
        _, context = held.enter_context(desk(tmp_path))
        port = held.enter_context(served(Starlette(routes=console_routes(context))))
        page = held.enter_context(opened(f"http://127.0.0.1:{port}", (1600, 900)))
        for path in ("/", "/conjunctions/an-event", "/objects/25544", "/objects?text=ISS", "/waiting", "/sensors",
                     "/sensors/radar-7", "/schedule"):  # fmt: skip
            page.prefer(1600, "light")
            page.goto(path)
            page.sees("radar-7" if "/sensors" in path else "ISS")
            assert page.barriers() == [], path
            page.prefer(320, "dark")
            assert page.run("() => document.documentElement.scrollWidth") == 320, path
            assert page.barriers() == [], path
            assert page.dialogs == 0 and page.elsewhere == []
        page.run("() => document.body.append(document.createElement('img'))")
        assert [each.partition(":")[0] for each in page.barriers()] == ["image-alt"], "it can fail"
