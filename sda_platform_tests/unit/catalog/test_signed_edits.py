"""Edits are signed by their site; what is forged, changed or replayed has no effect and is a fault."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.access_settings import SitesFile
from sda_platform.catalog.conflicts import edit_claims
from sda_platform.catalog.edit_decoding import decoder, edit_of
from sda_platform.catalog.edit_faults import REFUSED_WITHIN_NS, edit_faults
from sda_platform.catalog.edits import next_edit, reconcile
from sda_platform.catalog.sites import EditingSite, SitesError, editing_site, read_sites, refusal
from sda_platform.catalog.sites_resource import SitesResource
from sda_platform.catalog.tables import CATALOG_CONFLICTS, CATALOG_EDITS, EDITS_FEED
from sda_platform.formats.edits import Edit, encode_edits, read_edit
from sda_platform.formats.records import RawRecord
from sda_platform.formats.segments import describe_segment
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.facts import Facts, Finding
from sda_platform.observability.vitals.judges import edits as judged
from sda_platform.setting_sections import VitalsSettings
from sda_platform.signing_keys import make_key, raw_key
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

NORTH_KEY, SOUTH_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
KEYS = {name: raw_key(key.public_key()).hex() for name, key in (("north", NORTH_KEY), ("south", SOUTH_KEY))}
NORTH, SOUTH = (EditingSite(name, key, KEYS) for name, key in (("north", NORTH_KEY), ("south", SOUTH_KEY)))


def made(site: EditingSite, value: str, *known: Edit) -> Edit:
    facts: dict[str, Any] = {"norad_id": 25544, "attribute": "name", "editor": "ann", "edited_time_ns": START_NS}
    return site.signed(next_edit(known, value=value, origin=site.name, **facts))


def resource(sites: Path) -> SitesResource:
    return SitesResource(**SitesFile(sites=str(sites)).model_dump())


def rows_of(*edits: Edit, keys: dict[str, str] = KEYS, name: str = "a.edits") -> list[dict[str, Any]]:
    data = encode_edits(edits)
    meta = describe_segment(
        data, feed=EDITS_FEED, segment_format="edits-jsonl", sealed_time_ns=START_NS, sealed_wall_time_ns=START_NS
    )
    provenance = {
        "segment_sha256": meta.sha256, "segment_name": name, "received_time_ns": START_NS, "feed": EDITS_FEED,
    }  # fmt: skip
    return [{**row, **provenance} for row in decoder(keys)(data, meta).to_pylist()]


def test_a_signed_edit_is_taken_and_travels_with_its_signature__44() -> None:
    edit = made(NORTH, "ISS (ZARYA)")
    (row,) = rows_of(edit)
    assert (row["error_kind"], edit_of(row)) == (None, edit)
    assert read_edit(RawRecord(0, None, encode_edits([edit_of(row)]))) == edit
    assert rows_of(made(EditingSite("west"), "OLD"), keys={})[0]["error_kind"] is None, "without keys, none is needed"


CHANGES: dict[str, dict[str, Any]] = {
    "value": {"value": "FORGED"},
    "object": {"norad_id": 5},
    "attribute": {"attribute": "tag"},
    "vector": {"vector": {"north": 1, "south": 10**9}},
    "count": {"vector": {"north": 2}},
    "site": {"origin": "south", "vector": {"south": 1}},
    "unknown site": {"origin": "west", "vector": {"west": 1}},
    "editor": {"editor": "eve"},
    "time": {"edited_time_ns": 0},
    "order": {"lamport": 9},
    "signature": {"signature": "0" * 128},
    "no signature": {"signature": ""},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_after_its_site_signed_it_is_refused__44(change: dict[str, Any]) -> None:
    (row,) = rows_of(replace(made(NORTH, "ISS"), **change))
    assert row["error_kind"] == "bad_signature"
    assert any(remedy in row["error"] for remedy in ("SDA_SITES", "SDA_SITE_KEY", "was changed, or another one made"))


@given(st.integers(0, 511))
def test_no_bit_of_a_signature_may_differ__44(bit: int) -> None:
    edit = made(NORTH, "ISS")
    flipped = (int(edit.signature, 16) ^ (1 << bit)).to_bytes(64, "big").hex()
    assert refusal(replace(edit, signature=flipped), KEYS) is not None


def test_a_site_makes_no_edit_that_others_would_refuse__44() -> None:
    with pytest.raises(SitesError, match="site north must set SDA_SITE_KEY"):
        made(EditingSite("north", None, KEYS), "ISS")
    with pytest.raises(SitesError, match="its signature is not that of site south"):
        made(EditingSite("south", NORTH_KEY, KEYS), "ISS")


def test_keys_are_read_from_files_and_a_commit_records_them__44(tmp_path: Path) -> None:
    public, _ = make_key(tmp_path / "north.key")
    sites = tmp_path / "sites.toml"
    sites.write_text(f'[sites.north]\nkey = "{public.name}"\n')
    sites.chmod(0o600)
    site = editing_site("north", str(tmp_path / "north.key"), str(sites))
    assert refusal(made(site, "ISS"), read_sites(sites)) is None
    recorded = resource(sites).recorded()
    sites.write_text('[sites.south]\nkey = "nowhere.pub"\n')
    assert resource(sites).as_recorded(recorded).known() == site.keys
    assert resource(sites).as_unrecorded().known() == {}, "earlier releases judged no signature"
    with pytest.raises(OSError, match=r"nowhere\.pub"):
        read_sites(sites)


def landed(home: Path, *rows: dict[str, Any]) -> Lake:
    lake = lake_at(home)
    commit(lake, CATALOG_EDITS, list(rows))
    new, current = (lake.log(CATALOG_EDITS).rows(), CATALOG_CONFLICTS.content_schema.empty_table())
    commit(lake, CATALOG_CONFLICTS, edit_claims(new, current).to_pylist())
    return lake


def test_what_a_vector_claims_must_exist_and_a_fault_rings__44(tmp_path: Path) -> None:
    """Also a site that signs may claim only what its neighbours have made."""
    north, south = made(NORTH, "ISS"), made(SOUTH, "ZARYA")
    forged = SOUTH.signed(replace(south, value="FORGED", vector={"south": 2, "north": 10**9}, signature=""))
    rows = rows_of(north, south, forged)
    assert [row["error_kind"] for row in rows] == [None] * 3
    (fault,) = edit_faults(landed(tmp_path, *rows), START_NS)
    assert fault.subject == "name of 25544 at south"
    assert "an edit of name of 25544 is held back: it counts edits that have not arrived" in fault.text
    assert {each.value for each in reconcile([north, south, forged]).current} == {"ISS", "ZARYA"}


def test_a_vector_that_is_used_again_decides_nothing_and_a_fault_rings__44(tmp_path: Path) -> None:
    first, again = made(NORTH, "ISS"), made(NORTH, "FORGED")
    (fault,) = edit_faults(landed(tmp_path, *rows_of(first, again, first)), START_NS)
    assert fault.subject == "name of 25544 at north"
    assert "north made edit 1 of name of 25544 2 times ('FORGED', 'ISS'): none of them holds" in fault.text
    decided = made(NORTH, "ISS (ZARYA)", first, again)
    assert reconcile([first, again, decided]).current == (decided,)
    assert not list(edit_faults(landed(tmp_path / "decided", *rows_of(first, again, decided)), START_NS))


def test_edits_made_apart_are_a_conflict_and_no_fault__44(tmp_path: Path) -> None:
    rows = rows_of(made(NORTH, "ISS"), made(SOUTH, "ZARYA"))
    assert not list(edit_faults(landed(tmp_path, *rows), START_NS))


def test_a_refused_signature_is_a_fault_for_a_day__44(tmp_path: Path) -> None:
    lake = landed(tmp_path, *rows_of(replace(made(NORTH, "ISS"), value="FORGED")))
    (fault,) = edit_faults(lake, START_NS + REFUSED_WITHIN_NS)
    assert fault.subject == "a.edits record 0"
    assert "its signature is not that of site north" in fault.text
    assert not list(edit_faults(lake, START_NS + REFUSED_WITHIN_NS + 1))
    (rings,) = judged(Facts(START_NS, edit_faults=[Finding(fault.subject, fault.text)]), VitalsSettings())
    assert (rings.side, rings.subject) == ("sources", "a.edits record 0")


def test_without_edits_there_is_no_fault__44(tmp_path: Path) -> None:
    assert not list(edit_faults(lake_at(tmp_path), START_NS))
