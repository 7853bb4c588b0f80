"""F-corrupt: whatever is in a segment, each of its records becomes a row, good or dead, and nothing raises."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from sda_platform.catalog import decoding, edit_decoding, ephemeris_decoding, satellites
from sda_platform.catalog.tables import CATALOG_EDITS, ELEMENT_SETS, EPHEMERIDES, SATELLITE_RECORDS
from sda_platform.conjunction import acknowledgement_decoding, cdm_decoding
from sda_platform.conjunction.tables import ALERT_ACKNOWLEDGEMENTS, RECEIVED_CDMS
from sda_platform.formats.acknowledgements import AlertAcknowledgement, encode_acknowledgements
from sda_platform.formats.edits import Edit, encode_edits
from sda_platform.formats.element_set import element_set
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.game_days import GameDay, encode_game_days
from sda_platform.formats.ground_events import GroundEvent, encode_ground_events
from sda_platform.formats.membership_events import MembershipEvent, encode_membership_events
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.omm import encode_omm
from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.formats.registry import ZONES
from sda_platform.ground import command_states, game_day_rows
from sda_platform.ground import membership_states as membership
from sda_platform.ground.tables import GAME_DAYS, GROUND_EVENTS, MEMBERSHIP_OBSERVATIONS
from sda_platform.ingest import decoding as observation_decoding
from sda_platform.ingest import telemetry as telemetry_decoding
from sda_platform.ingest.tables import RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.lake.log_commits import Head
from sda_platform.lake.table import Table
from sda_platform.landing import intake
from sda_platform.landing.decoding import Decoder, decode_batch, one_by_one
from sda_platform.landing.zone import LandingZone
from sda_platform.metric_history import assets as metrics
from sda_platform.metric_history.tables import PIPELINE_METRICS
from sda_platform.registry import FEEDS
from sda_platform_tests.support.collectors import telemetry
from sda_platform_tests.support.messages import MESSAGES, convert
from sda_platform_tests.support.observations import isl_payload
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.sample_inputs import MAPPED, SAMPLES
from sda_platform_tests.support.sampling import number
from sda_platform_tests.support.segments import START_NS, catalogue_ids, catalogue_of, described, radar_segment

SEED = 20241101
READ_FORMATS = [(feed, name) for feeds in FEEDS.values() for feed in feeds for name in ZONES[feed]]
MUTANTS = number(170, 40)
RECORDS = 6
ODD_VALUES: tuple[Any, ...] = (
    *("", None, True, [], {}, -1, 0, 1e400, float("nan"), float("-inf"), 10**400, "9" * 5000),
    *("\ud800", "é\u0000", "x" * 70_000, {"a": {"b": [1]}}, "2024-13-45", "NaN", "1_000", "٣"),
)
OPTICAL = json.loads(encode_optical_record(OpticalRecord("o", START_NS, 1.0, 0.2, 1.0, "maui", START_NS + 5)))
OMM = {
    "NORAD_CAT_ID": 25544, "EPOCH": "2024-11-01T00:00:00", "MEAN_MOTION": 15.5, "ECCENTRICITY": 0.001,
    "INCLINATION": 51.6, "RA_OF_ASC_NODE": 1.0, "ARG_OF_PERICENTER": 2.0, "MEAN_ANOMALY": 3.0, "BSTAR": 1e-4,
}  # fmt: skip
LINE_1 = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753"
LINE_2 = "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667"
ELEMENTS = element_set(OMM)
EPHEMERIS = MESSAGES["test_cov.oem"].replace(b"1996-12-28T21:29:07.267", b"2019-09-09T00:00:00.0") + b"\n"
EPHEMERIS = EPHEMERIS.replace(b"2019-09-10T00:00", b"2019-09-09T00:01")
TRACK = MESSAGES["tdm_e22.kvn"] + b"\n"
TRACKING = TRACK + TRACK.replace(b"GSOC", b"DLR")
PARAMETERS = MESSAGES["opm_g4.kvn"].replace(b"8.740420", b"4.740420").replace(b"2021-028A", b"48808") + b"\n"
TABULATED = ("stk-ephemeris", "meme-ephemeris", "cpf", "sp3")
"""Formats whose files are one record each."""
SOUND = {
    "optical-jsonl": b"".join(json.dumps(OPTICAL).encode() + b"\n" for _ in range(RECORDS)),
    "radar-frames": radar_segment(RECORDS),
    "isl-frames": pack_records([isl_payload()] * RECORDS, [START_NS + 5] * RECORDS),
    "telemetry-frames": pack_records(telemetry(RECORDS), [START_NS + 5] * RECORDS),
    "satcat-csv": b"\n".join(
        [b"OBJECT_NAME,NORAD_CAT_ID,RCS", *(b"SAT,%d,1.5" % n for n in range(1, RECORDS + 1)), b""]
    ),
    "satcat-json": json.dumps([{"OBJECT_NAME": "SAT", "NORAD_CAT_ID": n} for n in range(1, RECORDS + 1)]).encode(),
    "omm-csv": catalogue_of(catalogue_ids()[:RECORDS]),
    "omm-json": json.dumps([OMM] * RECORDS).encode(),
    "omm-kvn": encode_omm([ELEMENTS] * RECORDS, "kvn"),
    "omm-xml": encode_omm([ELEMENTS] * RECORDS, "xml"),
    "tle": f"VANGUARD 1\n{LINE_1}\n{LINE_2}\n".encode() * RECORDS,
    "oem-kvn": EPHEMERIS * RECORDS,
    "oem-xml": convert(EPHEMERIS * RECORDS, "oem-kvn", "oem-xml"),
    "opm-kvn": PARAMETERS * RECORDS,
    "opm-xml": convert(PARAMETERS * RECORDS, "opm-kvn", "opm-xml"),
    **{name: SAMPLES[name] for name in TABULATED},
    "tdm-kvn": TRACKING,
    "tdm-xml": convert(TRACKING, "tdm-kvn", "tdm-xml"),
    "mapped-csv": SAMPLES["mapped-csv"] + MAPPED.partition(b"\n")[2] * 2,
    "cdm-kvn": messages_of([Told()] * RECORDS, "kvn"),
    "cdm-xml": messages_of([Told()] * RECORDS, "xml"),
    "cdm-json": convert(messages_of([Told()] * RECORDS, "kvn"), "cdm-kvn", "cdm-json"),
    "edits-jsonl": encode_edits(
        Edit(norad_id=5, attribute="name", value=f"name {n}", origin="north", lamport=n, vector={"north": n})
        for n in range(1, RECORDS + 1)
    ),
    "ground-events-jsonl": encode_ground_events(
        GroundEvent("atlantic", "issued", n, number=n, command_id=f"c{n}", kind="REPOINT")
        for n in range(1, RECORDS + 1)
    ),
    "membership-jsonl": encode_membership_events(
        MembershipEvent("radar-1", f"radar-{n}", "alive", START_NS + n, 1, n) for n in range(RECORDS)
    ),
    "acknowledgements-jsonl": encode_acknowledgements(
        AlertAcknowledgement("an alert", n, "ann", f"comment {n}", START_NS) for n in range(RECORDS)
    ),
    "metrics-jsonl": encode_metric_values(
        MetricValue("watchdog", "commits_total", "commits_total", {"table": f"t{n}"}, n / 2, START_NS)
        for n in range(RECORDS)
    ),
    "game-days-jsonl": encode_game_days(
        GameDay("link cut", START_NS + n, 1.5, 2.5, 20.0, 30.0) for n in range(RECORDS)
    ),
}
JSON_RECORDS = {
    "optical-jsonl": OPTICAL,
    "omm-json": OMM,
    "edits-jsonl": json.loads(SOUND["edits-jsonl"].splitlines()[0]) | {"editor": "ann"},
    "ground-events-jsonl": json.loads(SOUND["ground-events-jsonl"].splitlines()[0]),
    "membership-jsonl": json.loads(SOUND["membership-jsonl"].splitlines()[0]),
    "acknowledgements-jsonl": json.loads(SOUND["acknowledgements-jsonl"].splitlines()[0]),
    "metrics-jsonl": json.loads(SOUND["metrics-jsonl"].splitlines()[0]),
    "game-days-jsonl": json.loads(SOUND["game-days-jsonl"].splitlines()[0]),
}
BRONZE: dict[str, tuple[Table, Decoder]] = {
    "telemetry": (TELEMETRY_FRAMES, one_by_one(telemetry_decoding.decode)),
    "elements": (ELEMENT_SETS, one_by_one(decoding.decode)),
    "satellites": (SATELLITE_RECORDS, one_by_one(satellites.decode)),
    "acknowledgements": (ALERT_ACKNOWLEDGEMENTS, one_by_one(acknowledgement_decoding.decode)),
    "metrics": (PIPELINE_METRICS, one_by_one(metrics.decode)),
    "game_days": (GAME_DAYS, one_by_one(game_day_rows.decode)),
    "edits": (CATALOG_EDITS, one_by_one(edit_decoding.decoder({}))),
    "ground": (GROUND_EVENTS, one_by_one(command_states.decode)),
    "membership": (MEMBERSHIP_OBSERVATIONS, one_by_one(membership.decode)),
    "ephemerides": (EPHEMERIDES, one_by_one(ephemeris_decoding.decode)),
    "messages": (RECEIVED_CDMS, one_by_one(cdm_decoding.decode)),
}
Mutation = Callable[[random.Random, bytes, str], bytes]


def flipped_bits(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    mutant = bytearray(data)
    for _ in range(dice.choice([1, 1, 8, 64])):
        mutant[dice.randrange(len(mutant))] ^= 1 << dice.randrange(8)
    return bytes(mutant)


def odd_value(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    """One field with a value of another type, no number, an endless one, or one that no table can hold."""
    value = dice.choice(ODD_VALUES)
    if segment_format in JSON_RECORDS:
        fields: dict[str, Any] = dict(JSON_RECORDS[segment_format])
        fields[dice.choice(sorted(fields))] = value
        text = json.dumps(fields).encode()
        return b"[" + text + b"," + data[1:] if segment_format == "omm-json" else data + text + b"\n"
    at = dice.randrange(len(data))
    return data[:at] + str(value).encode("utf-8", "replace") + data[at + dice.randrange(20) :]


def deep_nesting(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    nested = (b"[" if dice.random() < 0.5 else b'{"a":') * dice.choice([50, 2_000, 100_000])
    return data + nested if dice.random() < 0.5 else nested + data


def duplicate_keys(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    return data.replace(b"{", b'{"obs_id": 5, "obs_id": "o", "EPOCH": 1, ', dice.choice([1, -1]))


def byte_order_mark_and_other_line_ends(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    mark = dice.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"", b"\x00"])
    return mark + data.replace(b"\n", dice.choice([b"\r\n", b"\r", b"\n\n", b"\x0b"]))


def wrong_schema(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    return SOUND[dice.choice(sorted(SOUND))] + dice.choice([b"", data])


def cut(dice: random.Random, data: bytes, segment_format: str) -> bytes:
    return data[: dice.randrange(len(data))]


MUTATIONS = (
    flipped_bits,
    odd_value,
    deep_nesting,
    duplicate_keys,
    byte_order_mark_and_other_line_ends,
    wrong_schema,
    cut,
)


@pytest.mark.parametrize(
    ("segment_format", "found", "replacement", "dead"),
    [
        ("edits-jsonl", b'"name 1"', b'"\\ud800"', 1),
        ("edits-jsonl", b'"editor": "", "lamport": 1,', b'"editor": "\\ud800", "lamport": 1,', 1),
        ("oem-kvn", b"CREATION_DATE = 2019", b"CREATION_DATE = 9999", RECORDS),
        ("oem-kvn", b"2019-09-09T00:01:00.0 3", b"9999-09-09T00:01:00.0 3", RECORDS),
        ("opm-kvn", b"\nEPOCH = 2021", b"\nEPOCH = 9999", RECORDS),
        ("tdm-kvn", b"= 2019-10-21T18:59:38.869008 ", b"= 9999-10-21T18:59:38.869008 ", 2),
    ],
)
def test_a_value_that_no_column_holds_makes_its_record_dead_and_stops_no_other(
    segment_format: str, found: bytes, replacement: bytes, dead: int
) -> None:
    data = SOUND[segment_format].replace(found, replacement)
    assert data != SOUND[segment_format]
    feed = next(feed for feed, name in READ_FORMATS if name == segment_format)
    _, decoder = BRONZE.get(feed, (RAW_RECORDS, observation_decoding.decode))
    kinds = decoder([(data, described(data, feed, segment_format=segment_format))])["error_kind"]
    assert (len(kinds), len(kinds) - kinds.null_count) == (RECORDS, dead)


@pytest.mark.parametrize(("feed", "segment_format"), READ_FORMATS)
def test_of_hundreds_of_mutants_every_record_is_a_row_and_none_stops_the_batch(
    tmp_path: Path, feed: str, segment_format: str
) -> None:
    dice = random.Random(f"{SEED} {segment_format}")
    zone, records = LandingZone(str(tmp_path), feed), 0
    count = MUTANTS // 5 if feed == "messages" else MUTANTS  # a probability is computed of each message
    mutants = {MUTATIONS[n % len(MUTATIONS)](dice, SOUND[segment_format], segment_format) for n in range(count)}
    for n, mutant in enumerate(sorted(mutants | {SOUND[segment_format]})):
        meta = described(mutant, feed, segment_format=segment_format)
        zone.seal(f"mutant-{n}", mutant, meta)
        records += meta.records
    taken = intake.take([zone], Head(), max_segments=10**6, max_bytes=10**10)
    assert [segment.defect for segment in taken] == [None] * len(taken)
    table, decoder = BRONZE.get(feed, (RAW_RECORDS, observation_decoding.decode))
    batch = decode_batch(table, taken, decoder)
    assert batch.rows.num_rows == records == batch.counts["valid"] + batch.counts["dead"]
    keys = batch.rows.group_by(["segment_sha256", "record_number"]).aggregate([([], "count_all")])
    assert keys.num_rows == records, "and each once"
    assert batch.counts["dead"] > count / 3
    sound = batch.rows.filter(pc.equal(batch.rows["segment_sha256"], hashlib.sha256(SOUND[segment_format]).hexdigest()))
    expected = 1 if segment_format in TABULATED else RECORDS
    assert sound["error_kind"].null_count == sound.num_rows == expected
