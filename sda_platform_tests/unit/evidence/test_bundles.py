"""An evidence bundle is verified without the lake; whatever was changed since it was signed is named."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.alert.evidence import report_lines
from sda_platform.cli.main import main
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.evidence.bundle import CONTENTS, SIGNATURE, BundleWriter, canonical
from sda_platform.evidence.errors import EvidenceError
from sda_platform.evidence.verification import Verified, verify
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS, lower_triangles
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.levels import risk_level
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.signing_keys import UnusableKey, fingerprint, make_key, private_key, trusted_fingerprint
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.segments import after, catalogue_of, described, land, radar_segment
from sda_platform_tests.unit.history.lakes import EVENT, OTHER_EVENT, add, approach

FIT = "2b1f4a5e-0000-5000-8000-000000000001"
LATER_FIT = "2b1f4a5e-0000-5000-8000-000000000002"
Members = dict[str, bytes]


def consumed(lake: Lake, landing: Path, feed: str, name: str, data: bytes) -> SegmentRef:
    """A segment that was sealed and archived."""
    ref = SegmentRef(feed, name, described(data, feed).sha256, len(data), 2)
    zone = LandingZone(str(landing), feed)
    assert land(zone, name, data)
    zone.acknowledge([ref])
    return ref


def of(segment: SegmentRef, record: int = 0) -> dict[str, Any]:
    return {
        "segment_sha256": segment.sha256, "segment_name": segment.name, "record_number": record,
        "received_time_ns": after(1),
    }  # fmt: skip


def assessed(radius_km: float = 0.02) -> dict[str, Any]:
    """A head-on pass at 300 m with sigmas of 200 m, and the Pc that its states and covariances give."""
    one = np.array([[7000.0, 0.0, 0.0, 0.0, 7.5, 0.0]])
    other = np.array([[7000.1, 0.0, 0.28, 0.0, -5.0, 5.6]])
    covariance = np.diag([0.04, 0.04, 0.04, 1e-8, 1e-8, 1e-8])[None]
    best = best_probabilities(
        Encounters(one[:, :3], one[:, 3:], covariance, other[:, :3], other[:, 3:], covariance, np.array([radius_km]))
    )
    plane, risk = best.two_dimensional, str(risk_level(best.probability_for_risk)[0])
    return {
        "collision_probability": float(best.probability[0]), "probability_method": best.method[0], "risk": risk,
        "maximum_probability": float(plane.maximum_probability[0]),
        "mahalanobis_distance": float(plane.mahalanobis_distance[0]),
        "miss_distance_km": float(np.linalg.norm(other[0, :3] - one[0, :3])), "relative_speed_km_s": 13.7,
        "tca_time_ns": after(3600), "hard_body_radius_m": 1000 * radius_km, "track_id_1": FIT,
        "object_name_1": "ISS", "object_name_2": "HST",
        "state_1": one[0].tolist(), "state_2": other[0].tolist(),
        "covariance_1": lower_triangles(covariance)[0].tolist(),
        "covariance_2": lower_triangles(covariance)[0].tolist(),
    }  # fmt: skip


def told(lake: Lake, sequence: int, facts: dict[str, Any]) -> None:
    """Candidate, assessment and alert of one revision."""
    pair = approach(EVENT, sequence, tca_time_ns=facts["tca_time_ns"])
    add(lake, CONJUNCTION_CANDIDATES, {**pair, "miss_distance_km": 0.3})
    add(lake, CONJUNCTION_ASSESSMENTS, {**pair, **facts})
    stated = {"stated_probability": None}
    add(lake, CONJUNCTION_ALERTS, {**pair, **facts, **stated, **rounded({**facts, **stated})})


@dataclass
class World:
    home: Path
    key: Path
    fingerprint: str
    bundle: Path

    def run(self, *arguments: str, home: Path | None = None) -> Result:
        return CliRunner().invoke(main, ["--home", str(home or self.home), "alert", *arguments])

    @property
    def members(self) -> Members:
        with zipfile.ZipFile(self.bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A home with an alert of two revisions, tracks that changed between; and a bundle of the first."""
    root = tmp_path_factory.mktemp("evidence")
    home = root / "home"
    lake, landing = lake_at(home / "lake"), home / "landing"
    sets = consumed(lake, landing, "elements", "sets", catalogue_of([25544, 20580]))
    frames = consumed(lake, landing, "radar", "frames", radar_segment(2))
    other = consumed(lake, landing, "radar", "of-others", radar_segment(3, first_track=50))
    add(lake, RAW_RECORDS, {**of(other), "feed": "radar"}, segments=[other])
    landed = [{"norad_id": number, "epoch_time_ns": after(-60), **of(sets, n)} for n, number in enumerate((7, 8))]
    add(lake, ELEMENT_SETS, *landed, segments=[sets])
    add(lake, ORBITAL_CATALOG, *landed)
    add(lake, RAW_RECORDS, *({**of(frames, n), "feed": "radar"} for n in (0, 1)), segments=[frames])
    observed = {"sensor_time_ns": after(20)}
    add(lake, OBSERVATIONS, *({**observed, **of(frames, n), "observation_id": f"o-{n}"} for n in (0, 1)))
    fit = {"norad_id": 7, "window_start_ns": after(0), "observation_ids": ["o-0", "o-1"], "op": "insert"}
    fit["epoch_time_ns"] = after(30)
    add(lake, FUSED_TRACKS, {**fit, "fit_id": FIT, "sequence": 0})
    add(lake, TRACKS, {"norad_id": 7, "epoch_time_ns": after(30), "track_id": FIT})
    told(lake, 0, assessed())
    add(lake, FUSED_TRACKS, {**fit, "epoch_time_ns": after(60), "fit_id": LATER_FIT, "sequence": 0})
    add(lake, TRACKS, {"norad_id": 7, "epoch_time_ns": after(60), "track_id": LATER_FIT})
    told(lake, 1, assessed(0.001))
    message = consumed(lake, landing, "messages", "theirs", b"a message that nobody reads here\n")
    stated = {"norad_id_1": None, "norad_id_2": 99_999, "tca_time_ns": after(3600), "object_name_1": "SAT-1"}
    add(lake, RECEIVED_CDMS, {**stated, "object_name_2": None, **of(message)}, segments=[message])
    others = {"rule": "stated_by_other", "risk": "red", "collision_probability": None}
    add(lake, CONJUNCTION_ALERTS, {**approach(OTHER_EVENT), **stated, **others})
    key, bundle = root / "keys" / "signing.pem", root / "bundle.zip"
    key.parent.mkdir()
    _, made = make_key(key)
    world = World(home, key, made, bundle)
    written = world.run("evidence", f"{EVENT[:8]}@0", "--out", str(bundle), "--key", str(key))
    assert written.exit_code == 0, written.output
    return world


def packed(members: Members, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def signed(members: Members, path: Path, key: Path) -> Path:
    """As a holder of the key would write what was changed."""
    facts = json.loads(members[CONTENTS])
    with path.open("wb") as stream, BundleWriter(stream) as bundle:
        for name, content in members.items():
            if name not in (CONTENTS, SIGNATURE):
                bundle.add(name, content)
        bundle.finish(private_key(key), {name: facts[name] for name in ("alert_id", "revision", "made_by")})
    return path


def test_a_bundle_is_verified_where_there_is_no_lake_and_no_home(world: World, tmp_path: Path) -> None:
    found = world.run("verify-evidence", str(world.bundle), "--key", world.fingerprint, home=tmp_path / "none")
    assert found.exit_code == 0, found.output
    assert "verified: signed by the trusted key" in found.output
    pc = assessed()["collision_probability"]
    assert f"probability of collision recomputed: {pc:.9e} (FOSTER-1992), assessed {pc:.9e}" in found.output
    assert "2 segments have the bytes that manifests name" in found.output
    assert not (tmp_path / "none").exists()
    assert world.run("verify-evidence", str(world.bundle), "--key", f"{world.key}.pub").exit_code == 0


def test_a_bundle_has_what_the_revision_read_and_nothing_later(world: World) -> None:
    members = world.members
    rows = {name: json.loads(content) for name, content in members.items() if name.startswith("rows/")}
    assert [row["track_id"] for row in rows["rows/tracks.json"]] == [FIT]
    assert [row["fit_id"] for row in rows["rows/fused_tracks.json"]] == [FIT]
    assert [row["sequence"] for row in rows["rows/conjunction_assessments.json"]] == [0]
    assert [row["sequence"] for row in rows["rows/conjunction_alerts.json"]] == [0, 1], "its later revisions too"
    assert {row["norad_id"] for row in rows["rows/orbital_catalog.json"]} == {7, 8}
    assert {row["observation_id"] for row in rows["rows/observations.json"]} == {"o-0", "o-1"}
    raw = {content for name, content in members.items() if name.startswith("segments/")}
    assert raw == {catalogue_of([25544, 20580]), radar_segment(2)}
    manifest = json.loads(members["manifests/conjunction_alerts.jsonl"].splitlines()[0])
    assert manifest["code_version"]
    assert manifest["origin"] == {"operator": "test", "trigger": "a test"}


def test_an_alert_that_rests_on_a_message_has_its_bytes_and_no_probability_of_ours(
    world: World, tmp_path: Path
) -> None:
    out = tmp_path / "b.zip"
    written = world.run("evidence", OTHER_EVENT, "--out", str(out), "--key", str(world.key))
    assert written.exit_code == 0, written.output
    found = verify(out, world.fingerprint)
    assert (found.problems, found.is_trusted) == ([], True)
    assert found.facts[-1] == "no assessment of our own: the alert rests on received messages, nothing to recompute"
    assert "1 segments have the bytes that manifests name" in found.facts


def test_without_a_trusted_key_a_bundle_is_only_consistent(world: World) -> None:
    found = world.run("verify-evidence", str(world.bundle))
    assert found.exit_code == 1
    assert "only consistent in itself: anybody can make such a bundle" in found.output
    assert f"signed by {world.fingerprint}" in found.output


def test_a_bundle_that_another_signed_is_not_verified(world: World, tmp_path: Path) -> None:
    make_key(tmp_path / "forger.pem")
    forged = signed(world.members, tmp_path / "forged.zip", tmp_path / "forger.pem")
    assert verify(forged).problems == []
    found = verify(forged, world.fingerprint)
    assert (found.alert, found.is_trusted) == ("its contents were not read", False), "they may be a bomb"
    (problem,) = found.problems
    assert "signed by another key" in problem


@given(data=st.data())
def test_a_changed_byte_of_any_member_is_named(world: World, data: st.DataObject) -> None:
    members = world.members
    name = data.draw(st.sampled_from(sorted(members)))
    place = data.draw(st.integers(0, len(members[name]) - 1))
    change = data.draw(st.integers(1, 255))
    content = bytearray(members[name])
    content[place] ^= change
    path = packed({**members, name: bytes(content)}, world.bundle.with_name("changed.zip"))
    try:
        found = verify(path, world.fingerprint).problems
    except EvidenceError as error:
        found = [str(error)]
    assert any(name in problem for problem in found)


@given(place=st.integers(0, 10**9), change=st.integers(1, 255))
def test_a_changed_byte_of_the_file_changes_no_member_unseen(world: World, place: int, change: int) -> None:
    whole = bytearray(world.bundle.read_bytes())
    whole[place % len(whole)] ^= change
    path = world.bundle.with_name("damaged.zip")
    path.write_bytes(whole)
    try:
        sound = not verify(path, world.fingerprint).problems
    except EvidenceError:
        return
    if sound:
        with zipfile.ZipFile(path) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == world.members


@pytest.mark.parametrize("name", ["decision.json", "rows/tracks.json", "manifests/tracks.jsonl", SIGNATURE])
def test_a_member_that_is_missing_is_named(world: World, tmp_path: Path, name: str) -> None:
    kept = {each: content for each, content in world.members.items() if each != name}
    assert any(name in problem for problem in verify(packed(kept, tmp_path / "b.zip")).problems)


@pytest.mark.parametrize("name", ["rows/more.json", "../../escaped", "/etc/passwd", "rows/../decision.json", "a\\b"])
def test_a_member_that_was_added_is_named_and_unpacked_nowhere(world: World, tmp_path: Path, name: str) -> None:
    found = verify(packed({**world.members, name: b"x"}, tmp_path / "b.zip"))
    assert any(repr(name) in problem or name in problem for problem in found.problems if "added" in problem)
    assert [each.name for each in tmp_path.iterdir()] == ["b.zip"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(world: World, tmp_path: Path) -> None:
    path = packed(world.members, tmp_path / "b.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("decision.json", b"{}")
    assert "decision.json is there twice" in verify(path, world.fingerprint).problems


def test_a_member_is_not_read_beyond_the_size_that_the_contents_say(world: World, tmp_path: Path) -> None:
    bomb = packed({**world.members, "decision.json": bytes(50_000_000)}, tmp_path / "b.zip")
    assert bomb.stat().st_size < 200_000
    (problem,) = verify(bomb, world.fingerprint).problems
    assert problem.startswith("decision.json was changed")


@pytest.mark.parametrize("size", [b"1e999", b"-1", b"1" * 5000, b"[]"], ids=len)
def test_contents_that_state_no_size_are_refused(world: World, tmp_path: Path, size: bytes) -> None:
    contents = (
        b'{"format": "sda-evidence", "version": 1, "members": {"decision.json": {"sha256": "", "bytes": %s}}}' % size
    )
    path = packed({CONTENTS: contents, SIGNATURE: world.members[SIGNATURE]}, tmp_path / "b.zip")
    with pytest.raises(EvidenceError, match=r"cannot be read|less than none"):
        verify(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip", b"PK\x05\x06" + bytes(18)], ids=len)
def test_a_file_that_is_no_bundle_is_named(world: World, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(content)
    found = world.run("verify-evidence", str(path))
    assert (found.exit_code, "Traceback" in found.output) == (1, False)
    assert f"{path}: no evidence bundle" in found.output


# A bundle whose holder of the key wrote something else than the platform knew.


def edited(name: str, edit: Callable[[Any], Any]) -> Callable[[Members], Members]:
    """Members of which a JSON member was edited; ``edit`` changes the value, or returns another."""

    def change(members: Members) -> Members:
        value = json.loads(members[name])
        return {**members, name: canonical(edit(value) or value)}

    return change


def with_line(table: str, old: bytes, new: bytes) -> Callable[[Members], Members]:
    name = f"manifests/{table}.jsonl"

    def change(members: Members) -> Members:
        assert old in members[name]
        return {**members, name: members[name].replace(old, new, 1)}

    return change


def other_bytes(members: Members) -> Members:
    name = next(name for name, content in members.items() if content == radar_segment(2))
    return {**members, name: radar_segment(2, first_track=1)}


ASSESSMENTS, ALERTS = "rows/conjunction_assessments.json", "rows/conjunction_alerts.json"


def first(**values: Any) -> Callable[[Any], Any]:
    return lambda rows: rows[0].update(values)


BROKEN = [
    (edited(ASSESSMENTS, first(collision_probability=1e-9)), "states and covariances give"),
    (edited(ASSESSMENTS, lambda rows: rows[0]["state_2"].__setitem__(2, 0.9)), "miss_distance_km is"),
    (edited(ASSESSMENTS, lambda rows: rows[0]["covariance_1"].__setitem__(0, 4.0)), "collision_probability is"),
    (edited(ASSESSMENTS, first(hard_body_radius_m=1.0)), "collision_probability is"),
    (edited(ASSESSMENTS, first(risk="green")), "the level is green"),
    (edited(ASSESSMENTS, first(state_1=None)), "probability cannot be judged"),
    (edited(ASSESSMENTS, lambda rows: [{}]), "rows cannot be judged"),
    (edited(ALERTS, first(collision_probability=1e-9)), "its assessment gives"),
    (edited(ALERTS, first(commit_sequence=77)), "rows of commits [77]"),
    (edited(ALERTS, lambda rows: rows[1:]), "no such alert and revision"),
    (edited("decision.json", lambda facts: facts.update(revision=1)), "another alert or revision"),
    (edited("decision.json", lambda facts: facts["versions"].update(conjunction_assessments=-1)), "decision read 0"),
    (edited("decision.json", lambda facts: [facts]), "cannot be judged"),
    (edited("rows/observations.json", first(segment_sha256="0" * 64)), "of segment 000000000000"),
    (edited("segments.json", lambda found: found[:1]), "segments.json does not name it"),
    (edited("segments.json", first(name="x")), "no manifest here names"),
    (other_bytes, "other bytes than the platform consumed as radar/frames"),
    (with_line("conjunction_assessments", b'"as_of_ns":', b'"as_of_ns":1'), "consumed another commit 1"),
    (with_line("conjunction_alerts", b'"as_of_ns":', b'"as_of_ns":1'), "names another predecessor"),
    (with_line("conjunction_alerts", b'{"as_of', b'{ "as_of'), "line 1: no manifest of"),
    (with_line("conjunction_alerts", b"{", b"["), "chains cannot be judged"),
]


@pytest.mark.parametrize(("change", "problem"), BROKEN, ids=[problem for _, problem in BROKEN])
def test_what_the_rows_and_manifests_contradict_is_named_though_it_is_signed(
    world: World, tmp_path: Path, change: Callable[[Members], Members], problem: str
) -> None:
    found = verify(signed(change(world.members), tmp_path / "b.zip", world.key), world.fingerprint)
    assert found.is_trusted
    assert any(problem in each for each in found.problems), found.problems


def test_what_is_signed_anew_unchanged_is_verified(world: World, tmp_path: Path) -> None:
    found = verify(signed(world.members, tmp_path / "b.zip", world.key), world.fingerprint)
    assert (found.problems, found.is_trusted) == ([], True)


def test_bytes_that_have_left_the_archive_are_said_to_be_absent(world: World, tmp_path: Path) -> None:
    archive = world.home / "landing/radar/archive"
    data = archive / described(radar_segment(2), "radar").sha256
    kept = data.rename(world.home / "kept")
    data.touch()
    out = tmp_path / "b.zip"
    try:
        written = world.run("evidence", EVENT, "--out", str(out), "--key", str(world.key))
    finally:
        kept.replace(data)
    assert "of 1 segments the bytes are not in the archive any more" in written.output
    found = verify(out, world.fingerprint)
    assert (found.problems, found.is_trusted) == ([], True)
    assert "1 segments had left the archive when the bundle was made" in found.facts


def test_manifests_that_were_gone_already_are_said_to_be_gone(world: World, tmp_path: Path) -> None:
    members = world.members
    frames = described(radar_segment(2), "radar").sha256
    gone = {"gone_manifests": {"raw_records": [2]}, "gone_segments": [frames]}
    members = edited("decision.json", lambda facts: facts.update(gone))(members)
    members = edited("segments.json", lambda found: [each for each in found if each["sha256"] != frames])(members)
    del members["manifests/raw_records.jsonl"], members[f"segments/{frames}"]
    found = verify(signed(members, tmp_path / "b.zip", world.key), world.fingerprint)
    assert (found.problems, found.is_trusted) == ([], True)
    assert "1 manifests of raw_records were gone when the bundle was made" in found.facts


# Keys.


def refused(made: Result, reason: str) -> bool:
    assert (made.exit_code, "Traceback" in made.output) == (1, False), made.output
    return reason in made.output


def test_a_key_that_could_vouch_for_nothing_is_refused(world: World, tmp_path: Path) -> None:
    def attempt(key: Path) -> Result:
        return world.run("evidence", EVENT, "--out", str(tmp_path / "b.zip"), "--key", str(key))

    inside = world.home / "signing.pem"
    make_key(inside)
    assert refused(attempt(inside), "keep the key outside of")
    shared = tmp_path / "shared.pem"
    make_key(shared)
    shared.chmod(0o640)
    assert refused(attempt(shared), "other users may read this key")
    assert refused(attempt(tmp_path / "none.pem"), "none.pem: cannot be read")
    other = tmp_path / "other.pem"
    curve = generate_private_key(SECP256R1())
    other.write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    other.chmod(0o600)
    assert refused(attempt(other), "not of Ed25519")
    other.write_text("no key")
    assert refused(attempt(other), "no private key in PEM")
    assert [each.name for each in tmp_path.iterdir() if "zip" in each.name] == []


def test_a_key_is_made_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    public, made = make_key(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    assert trusted_fingerprint(str(public)) == trusted_fingerprint(made.upper()) == made
    assert fingerprint(private_key(tmp_path / "key.pem").public_key()) == made
    with pytest.raises(UnusableKey, match="no key is replaced"):
        make_key(tmp_path / "key.pem")


def test_a_trusted_key_is_a_whole_fingerprint_or_a_public_key(world: World, tmp_path: Path) -> None:
    for text, reason in ((world.fingerprint[:16], "neither a fingerprint"), (str(world.key), "no public key in PEM")):
        assert refused(world.run("verify-evidence", str(world.bundle), "--key", text), reason)


def test_an_alert_that_is_unknown_leaves_no_file(world: World, tmp_path: Path) -> None:
    made = world.run("evidence", "ffffffff", "--out", str(tmp_path / "b.zip"), "--key", str(world.key))
    assert refused(made, "ffffffff")
    assert list(tmp_path.iterdir()) == []


def test_what_a_bundle_says_forges_no_line_of_its_verification() -> None:
    """Fifty empty lines after a verdict of its own pushed the true one off the screen."""
    text = "a\nsigned by ab\nverified: nothing was changed" + 50 * "\n"
    lines = list(report_lines(Verified(text, [f"{text} is missing"])))
    assert lines[0] == lines[-1] and lines[0].startswith("NOT VERIFIED")
    assert not [line for line in lines if "\n" in line or line.startswith(("signed", "verified"))]
