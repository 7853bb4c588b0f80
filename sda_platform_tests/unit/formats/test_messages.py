"""Messages as people send them: sound ones survive being written in either encoding, broken ones say what is wrong."""

import random
import re
from typing import Any

import ccsds_ndm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.conversion import converted
from sda_platform.formats.cutting import can_be_packed, pack_segment, split_records
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.reading import read_records
from sda_platform.formats.time_systems import to_utc_ns
from sda_platform_tests.support.messages import (
    MESSAGES,
    READERS,
    comparable,
    format_of,
    record_format,
    siblings,
    values_and_errors,
    write,
)
from sda_platform_tests.support.sample_inputs import SAMPLES

SOUND = [name for name in MESSAGES if not re.match(r"(OEM|OMM|TDM|CDM)-|spurious|ndm_", name)]
# An OMM in another frame or theory than SGP4's is a sound message that the platform cannot propagate.
NOT_SGP4 = {"OMMExample3.txt", "OMMExample3_utc.txt", "OMMExample5.txt"}


@pytest.mark.parametrize("name", [name for name in SOUND if name not in NOT_SGP4])
def test_a_sound_message_survives_being_written_in_either_encoding(name: str) -> None:
    known = format_of(MESSAGES[name])
    before, errors = values_and_errors(MESSAGES[name], known)
    assert errors == []
    for other in siblings(known):
        again, refused = values_and_errors(write(other, before), other)
        assert refused == []
        if known.name.startswith("cdm"):  # the writer uses the standard's units
            assert len(again) == len(before)
        else:
            assert comparable(again) == comparable(before)


@pytest.mark.parametrize(
    ("name", "sound", "reason"),
    [
        ("CDM-missing-TCA.txt", 0, "TCA of the message is missing"),
        ("CDM-missing-object2-state-vector.txt", 0, "X of OBJECT2 is missing"),
        ("CDM-wrong-key-word.txt", 0, "line 6: WRONG_KEYWORD is no keyword"),
        ("OEM-Issue839.txt", 2, "line 80: the epoch is not after that of the state before it"),
        ("OEM-covariance-number-format-error.txt", 1, "line 52: CY_Y is 'this-is-not-a-number', must be a number"),
        ("OEM-ephemeris-number-format-error.txt", 1, "line 44: Z is 'this-is-not-a-number', must be a number"),
        ("OEM-inconsistent-time-systems.txt", 1, "line 28: TIME_SYSTEM is TCG, that of the message's first segment"),
        ("OEM-keyword-within-covariance.txt", 2, "line 91: USER_DEFINED_TEST_KEY cannot be within a covariance"),
        ("OEM-keyword-within-ephemeris.txt", 1, "line 24: 3 values, a state has an epoch and 6 or 9 numbers"),
        ("OEM-too-few-covariance-columns.txt", 1, "line 55: row 5 of a covariance has 4 numbers, not 5"),
        ("OEM-too-large-covariance-dimension.txt", 2, "line 91: a covariance has 6 rows, this is row 7"),
        ("OEM-too-many-covariance-columns.txt", 1, "line 51: row 1 of a covariance has 6 numbers, not 1"),
        ("OEM-too-small-covariance-dimension.txt", 2, "line 83: the covariance has 4 rows, must have 6"),
        ("OEM-wrong-keyword.txt", 1, "line 19: WRONG_KEYWORD is no keyword of metadata"),
        ("OMM-number-format-error.txt", 0, "line 15: ARG_OF_PERICENTER is 'this-is-not-a-number'"),
        ("OMM-wrong-keyword.txt", 0, "line 9: WRONG_KEYWORD is no keyword of an OMM"),
        ("OMMExample3.txt", 0, "TIME_SYSTEM is 'MRT', only UTC can be used"),
        ("OMMExample3_utc.txt", 0, "REF_FRAME is 'TOD', only TEME can be used"),
        ("OMMExample5.txt", 0, "MEAN_ELEMENT_THEORY is 'SGP4-XP', only SGP4 can be used"),
        ("spurious-metadata.xml", 0, "line 8: the segment has 2 <metadata> sections"),
        ("TDM-data-inconsistent-line.txt", 5, "line 25: 3 values, must be an epoch and a number"),
        ("TDM-data-number-format-error.txt", 5, "line 26: RECEIVE_FREQ_1 is 'this-is-not-a-number'"),
        ("TDM-data-wrong-keyword.txt", 5, "line 26: WRONG_KEYWORD is no keyword of tracking data"),
        ("TDM-inconsistent-time-systems.txt", 8, "line 36: TIME_SYSTEM is TCG, that of the message's first segment"),
        ("TDM-issue963.txt", 5, "line 25: 3 values, must be an epoch and a number"),
        ("TDM-metadata-number-format-error.txt", 0, "line 17: TRANSMIT_DELAY_1 is 'this-is-not-a-number'"),
        ("TDM-metadata-timesystem-not-implemented.txt", 0, "TIME_SYSTEM is 'WRONG-TIME-SYSTEM', must be one of UTC"),
        ("TDM-metadata-wrong-keyword.txt", 0, "line 16: WRONG_KEYWORD is no keyword of metadata"),
        ("TDM-data-inconsistent-block.xml", 6, "line 31: an observation has an EPOCH and one measurement"),
        ("TDM-data-number-format-error.xml", 5, "line 47: RECEIVE_FREQ_1 is 'this-is-not-a-number'"),
        ("TDM-data-wrong-keyword.xml", 5, "line 47: WRONG_KEYWORD is no keyword of tracking data"),
        ("TDM-inconsistent-time-systems.xml", 8, "line 64: TIME_SYSTEM is TCG, that of the message's first segment"),
        ("TDM-metadata-number-format-error.xml", 0, "line 24: TRANSMIT_DELAY_1 is 'this-is-not-a-number'"),
        ("TDM-metadata-timesystem-not-implemented.xml", 0, "TIME_SYSTEM is 'WRONG-TIME-SYSTEM', must be one of UTC"),
        ("TDM-metadata-wrong-keyword.xml", 0, "line 23: WRONG_KEYWORD is no keyword of metadata"),
        ("TDM-missing-participants.xml", 0, "line 17: PARTICIPANT_1 of metadata is missing"),
        ("TDM-missing-timesystem.xml", 0, "TIME_SYSTEM of metadata is missing"),
    ],
)
def test_a_broken_message_is_refused_for_the_right_reason_and_its_neighbours_are_not(
    name: str, sound: int, reason: str
) -> None:
    values, errors = values_and_errors(MESSAGES[name], format_of(MESSAGES[name]))
    assert len(values) == sound
    assert any(reason in error for error in errors), errors


def test_every_broken_message_of_the_fixtures_has_its_reason() -> None:
    broken = {name for name in MESSAGES if name not in SOUND} - {"ndm_g22.xml", "TDM-external-doctype.xml"}
    broken -= {"OMM-empty-object-id.txt", "OMM-empty-object-id.xml", "OMM-with-units.xml"}
    (mark,) = test_a_broken_message_is_refused_for_the_right_reason_and_its_neighbours_are_not.pytestmark  # type: ignore[attr-defined]
    assert broken <= {case[0] for case in mark.args[1]}


@pytest.mark.parametrize("name", ["OMM-empty-object-id.txt", "OMM-empty-object-id.xml", "OMM-with-units.xml"])
def test_an_empty_value_is_an_absent_one_and_units_are_read(name: str) -> None:
    (element,), errors = values_and_errors(MESSAGES[name], format_of(MESSAGES[name]))
    assert errors == []
    assert (element.international_designator is None) == ("empty" in name)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_record_sound_or_broken_can_go_back_alone_and_with_its_neighbours__DP5_I22(name: str) -> None:
    for known in READERS:
        if known.begins and known.begins.search(MESSAGES[name]):
            payloads = [record.payload for record in known.framing.split(MESSAGES[name])]
            assert all(can_be_packed(payload, known.name) for payload in payloads)
            packed = pack_segment(payloads, [0] * len(payloads), known.name)
            assert [record.payload for record in known.framing.split(packed)] == payloads


@pytest.mark.parametrize("tag", ["tdm", "oem", "opm", "omm", "cdm"])
def test_a_document_with_an_external_type_or_entities_is_not_read(tag: str) -> None:
    known = record_format(f"{tag}-xml")
    hostile = (
        b'<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + f"<{tag}><segment>&a;</segment></{tag}>".encode()
    )
    for data in (MESSAGES["TDM-external-doctype.xml"], hostile):
        values, errors = values_and_errors(data, known)
        assert values == []
        assert errors


def test_a_file_of_several_kinds_of_message_gives_each_kind_its_own_and_refuses_the_others() -> None:
    for kind in ("oem", "opm", "omm"):
        values, errors = values_and_errors(MESSAGES["ndm_g22.xml"], record_format(f"{kind}-xml"))
        assert len(values) == 1
        assert all(f"is no <{kind}> element" in error for error in errors)


@pytest.mark.parametrize("name", ["oem_g11.kvn", "opm_g4.kvn", "omm_g8.kvn", "tdm_e22.kvn", "tdm_e9.kvn"])
@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_an_independent_reader_accepts_what_is_written_A6(name: str, encoding: str) -> None:
    known = format_of(MESSAGES[name])
    other = record_format(f"{known.name.partition('-')[0]}-{encoding}")
    written = write(other, values_and_errors(MESSAGES[name], known)[0]).decode()
    assert type(ccsds_ndm.from_str(written)).__name__ == known.name.partition("-")[0].capitalize()


numbers = st.floats(-1e6, 1e6)


@st.composite
def ephemerides(draw: st.DrawFn) -> EphemerisSegment:
    states, covariances = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    start_ns = draw(st.integers(0, 4 * 10**18))
    steps = draw(st.lists(st.integers(1, 10**12), min_size=states, max_size=states))
    width = draw(st.sampled_from([6, 9]))
    texts = {"OBJECT_NAME": "A B", "OBJECT_ID": "1998-067A", "CENTER_NAME": "EARTH", "REF_FRAME": "EME2000"}
    texts |= {"TIME_SYSTEM": "UTC", "START_TIME": "2024-01-01T00:00:00", "STOP_TIME": "2024-01-02T00:00:00"}
    frames = draw(st.lists(st.sampled_from(["EME2000", "RTN"]), min_size=covariances, max_size=covariances))
    drawn = draw(
        st.lists(numbers, min_size=states * width + covariances * 21, max_size=states * width + covariances * 21)
    )
    return EphemerisSegment(
        "3.0",
        (KeywordEntry("CREATION_DATE", "2024-01-01T00:00:00"), KeywordEntry("ORIGINATOR", "US")),
        tuple(KeywordEntry(keyword, value) for keyword, value in texts.items()),
        tuple(draw(st.lists(st.sampled_from(["a", "b = c", "META_STOP"]), max_size=2))),
        np.cumsum([start_ns, *steps[1:]]),
        np.array(drawn[: states * width]).reshape(states, width),
        start_ns + np.arange(covariances, dtype=np.int64),
        np.array(drawn[states * width :]).reshape(covariances, 21),
        tuple(frames),
    )


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
@given(st.lists(ephemerides(), min_size=1, max_size=3))
def test_any_ephemeris_survives_being_written_with_every_digit(encoding: str, before: list[EphemerisSegment]) -> None:
    known = record_format(f"oem-{encoding}")
    again, errors = values_and_errors(write(known, before), known)
    assert errors == []
    assert comparable(again) == comparable(before)


def mutated(dice: random.Random, data: bytes) -> bytes:
    """The message with some bytes changed, some lines lost, repeated or exchanged."""
    lines = data.split(b"\n")
    for _ in range(dice.randrange(4)):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        lines[at : at + dice.randrange(3)] = [lines[other]] * dice.randrange(3)
        lines = lines or [b""]
    mutant = bytearray(b"\n".join(lines))
    for _ in range(dice.choice([0, 1, 8])):
        if mutant:
            mutant[dice.randrange(len(mutant))] = dice.randrange(256)
    return bytes(mutant)


@pytest.mark.parametrize("known", READERS, ids=lambda known: known.name)
def test_a_reader_raises_nothing_but_its_declared_error_for_any_bytes(known: RecordFormat) -> None:
    dice = random.Random(f"20241101 {known.name}")
    of_kind = [data for data in MESSAGES.values() if known.begins and known.begins.search(data)]
    good = 0
    for n in range(400):
        data = mutated(dice, dice.choice(of_kind or [b"a,b\n1,2\n", b"[{}]"]))
        for record in known.framing.split(data):
            try:
                value: Any = known.read(record)
            except RecordError as error:
                assert error.text
                continue
            good += 1
            if n % 10 == 0:
                try:
                    write(known, [value])
                except ValueError as error:
                    assert "XML" in str(error)
    assert good or not of_kind


def test_time_systems_are_converted_to_utc_over_leap_seconds() -> None:
    """Unix times of 2016-12-31T23:59:59 and 2017-01-01T00:00:00 UTC, between which a leap second was added."""
    utc_ns = np.array([1_483_228_799, 1_483_228_800], np.int64) * 10**9
    ahead_s = {"TAI": (36, 37), "GPS": (17, 18), "TT": (68.184, 69.184), "UTC": (0, 0)}
    for system, offsets in ahead_s.items():
        shown = utc_ns + np.array([round(offset * 1e9) for offset in offsets])
        np.testing.assert_array_equal(to_utc_ns(shown, system), utc_ns)
    with pytest.raises(RecordError, match="TIME_SYSTEM is 'TDB', only UTC, TAI, TT, TDT, GPS can be used"):
        to_utc_ns(utc_ns, "TDB")


def test_a_covariance_without_a_frame_is_in_that_of_the_states_in_kvn_as_in_xml__41() -> None:
    """The first matrix alone names its frame; 502.0-B-3, chapter 5."""
    matrix = "\n".join(" ".join(["0"] * row + ["1e-6"]) for row in range(6))
    later = "".join(f"EPOCH = 2024-05-03T00:0{minute}:00\n{matrix}\n" for minute in (1, 2))
    text = SAMPLES["oem-kvn"].decode()
    start = text.index("COVARIANCE_START")
    block = f"COVARIANCE_START\nEPOCH = 2024-05-03T00:00:00\nCOV_REF_FRAME = RTN\n{matrix}\n{later}COVARIANCE_STOP\n"
    kvn = (text[:start] + block).encode()
    xml = converted(kvn, "oem-kvn", "oem-xml").data
    bare = re.sub(rb"<COV_REF_FRAME>EME2000</COV_REF_FRAME>", b"", xml)
    frames = [
        read_records(list(split_records(data, name)), name, "ephemerides")[0][0].covariance_frames
        for data, name in ((kvn, "oem-kvn"), (xml, "oem-xml"), (bare, "oem-xml"))
    ]
    assert frames == [("RTN", "", ""), ("RTN", "EME2000", "EME2000"), ("RTN", "", "")]
