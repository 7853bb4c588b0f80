"""`sda catalog`: objects, versions, conflicts and edits of the catalogue, and its lookup endpoint."""

import getpass
import sys
from pathlib import Path
from typing import Any

import click

from sda_platform.cli.grammar import FILE, default_option, instant, json_option, lists_rows
from sda_platform.cli.held_sets import held, release
from sda_platform.cli.listing import Output, number, print_json, word, words
from sda_platform.cli.people import console, lake_of, site_of, write_key
from sda_platform.cli.served_catalogue import access, put, serve
from sda_platform.settings import Settings

_LISTED = ("norad_id", "object_name", "international_designator", "epoch", "age_days", "perigee_km", "apogee_km",
           "regime")  # fmt: skip
_COLUMNS = (
    number("number", "norad_id"),
    words("name", "object_name"),
    word("designator", "international_designator"),
    word("epoch (UTC)", lambda row: row["epoch"][:16].replace("T", " ")),
    number("age d", lambda row: f"{row['age_days']:.2f}"),
    number("perigee\nkm", lambda row: f"{row['perigee_km']:.1f}"),
    number("apogee\nkm", lambda row: f"{row['apogee_km']:.1f}"),
    word("regime", "regime"),
)
_CONFLICTS = ("norad_id", "attribute", "value", "origin", "editor", "claimant", "outcome", "reason")


@click.group(short_help="Catalogue: objects, versions, conflicts, edits; over HTTP.")
def catalog() -> None:
    """Objects, versions, conflicts and edits of the catalogue."""


@catalog.command()
@click.argument("name", metavar="OBJECT")
@json_option
@click.pass_obj
def show(settings: Settings, name: str, as_json: bool) -> None:
    """The element set in force of an object, its orbit, its edits, and what other sources claim.

    OBJECT is a catalogue number, or a text that is in the name or designator of one object alone.
    """
    from sda_platform.catalog.held_lookup import held_sets, why_held
    from sda_platform.catalog.lookup import annotations, number_of, one_object, satellite
    from sda_platform.clock import iso

    norad_id = number_of(lake_of(settings), name)
    found = one_object(lake_of(settings), norad_id)
    if as_json:
        print_json(found)
        return
    console.print(f"{norad_id} {found['object_name'] or ''} {found['international_designator'] or ''}")
    for attribute, value in annotations(found["claims"]).items():
        console.print(f"  {attribute}: {value}")
    if found["merged"]:
        console.print(f"  with the sets of {', '.join(map(str, found['merged']))}, which edits merged into it")
    console.print(f"  epoch {iso(found['epoch_time_ns'])}, {found['age_days']:.2f} days old, {found['regime']}")
    console.print(f"  {found['perigee_km']:.1f} x {found['apogee_km']:.1f} km, {found['inclination_deg']:.4f} deg")
    if facts := satellite(lake_of(settings), norad_id):
        console.print(f"  {', '.join(f'{name} {value}' for name, value in facts.items())}")
    console.print(
        f"  by {found['originator'] or 'an unnamed source'}: {found['segment_name']} record {found['record_number']}"
    )
    for each in held_sets(lake_of(settings), [norad_id]):
        console.print(f"  {why_held(each)}")
    for claim in found["claims"]:
        reason = f": {claim['reason']}" if claim["reason"] else ""
        what = claim["value"] if claim["value"] is not None else claim["claimant"] or "an unnamed source"
        console.print(f"  {claim['attribute']} {what!r}: {claim['outcome']}{reason}")


@catalog.command("list")
@click.option("--regime", help="LEO, MEO, GEO, HEO or decaying.")
@click.option("--after", type=click.IntRange(0), default=0, help="Only catalogue numbers above this one.")
@lists_rows(limit=100)
@click.pass_obj
def list_objects(settings: Settings, regime: str | None, after: int, output: Output) -> None:
    """Objects of the catalogue by number."""
    import pyarrow.compute as pc

    from sda_platform.catalog.lookup import REGIMES, with_orbits

    if regime and regime.lower() not in map(str.lower, REGIMES):
        raise click.BadParameter(f"{regime!r} is none of {', '.join(REGIMES)}", param_hint="--regime")
    rows = with_orbits(lake_of(settings))
    rows = rows.filter(pc.greater(rows.column("norad_id"), after))
    if regime:
        rows = rows.filter(pc.equal(pc.utf8_lower(rows.column("regime")), regime.lower()))
    _show_objects(output, rows)


@catalog.command()
@click.argument("text")
@lists_rows(limit=100)
@click.pass_obj
def search(settings: Settings, text: str, output: Output) -> None:
    """Objects whose number, name or designator contains TEXT."""
    from sda_platform.catalog.lookup import found_objects, with_orbits

    _show_objects(output, found_objects(with_orbits(lake_of(settings)), text))


def _show_objects(output: Output, rows: Any) -> None:
    from sda_platform.clock import iso

    listed = rows.append_column("epoch", [[iso(time_ns) for time_ns in rows.column("epoch_time_ns").to_pylist()]])
    output.show(listed.select(_LISTED).to_pylist(), _COLUMNS)


@catalog.command()
@click.argument("before", type=click.IntRange(0))
@click.argument("after", type=click.IntRange(0))
@lists_rows()
@click.pass_obj
def diff(settings: Settings, before: int, after: int, output: Output) -> None:
    """What changed between two versions of the catalogue's table."""
    from sda_platform.catalog.lookup import difference

    found = difference(lake_of(settings), before, after)
    rows = [{"change": kind, **row} for kind, changed in found.items() for row in changed]
    output.show(({**row, "epoch_before": row.get("epoch_before", "")} for row in rows), document=found)
    if output.is_table:
        console.print(", ".join(f"{len(changed):,} {kind}" for kind, changed in found.items()))


@catalog.command()
@lists_rows()
@click.pass_obj
def coverage(settings: Settings, output: Output) -> None:
    """Objects and ages of their sets by regime."""
    from sda_platform.catalog.lookup import coverage as by_regime
    from sda_platform.catalog.lookup import with_orbits

    output.show(by_regime(with_orbits(lake_of(settings))))


@catalog.command()
@click.option("--sources", is_flag=True, help="Also the sets of sources that lost, with the reason.")
@lists_rows()
@click.pass_obj
def conflicts(settings: Settings, sources: bool, output: Output) -> None:
    """Edits made apart, and edits that count others which have not arrived. Exit code 1 where there are some."""
    from sda_platform.catalog.lookup import open_conflicts
    from sda_platform.catalog.tables import CONCURRENT, HELD

    found = open_conflicts(lake_of(settings), with_sources=sources)
    output.show([{name: row[name] for name in _CONFLICTS} for row in found])
    sys.exit(int(any(row["outcome"] in (CONCURRENT, HELD) for row in found)))


@catalog.command()
@click.argument("norad_id", type=click.IntRange(1))
@click.argument("attribute")
@click.argument("value")
@click.option("--editor", default=getpass.getuser, help="Who edits (default: the user of this machine).")
@click.pass_obj
def edit(settings: Settings, norad_id: int, attribute: str, value: str, editor: str) -> None:
    """Set ATTRIBUTE (name, tag, merged_into, correct_object, released_sets, decay, remark) of an object; "" removes it.

    merged_into: the catalogue number of the object that this one turned out to be. correct_object: sets that were
    published under this number by mistake, each as SEGMENT:RECORD:NUMBER with the right number. decay: an instant, or
    "in orbit".
    """
    from sda_platform.catalog.editing import make_edit

    facts: dict[str, Any] = {"norad_id": norad_id, "attribute": attribute, "value": value}
    made = make_edit(lake_of(settings), settings.landing_uri, **facts, site=site_of(settings), editor=editor)
    console.print(f"landed edit {made.edit_id[:12]} of {settings.site}")


@catalog.command()
@click.argument("norad_id", type=click.IntRange(1))
@click.argument("attribute")
@click.argument("value")
@click.option("--editor", default=getpass.getuser, help="Who decides (default: the user of this machine).")
@click.pass_obj
def resolve(settings: Settings, norad_id: int, attribute: str, value: str, editor: str) -> None:
    """Decide between edits that were made apart: VALUE holds from now on."""
    from sda_platform.catalog.editing import resolve as decide

    facts: dict[str, Any] = {"norad_id": norad_id, "attribute": attribute, "value": value}
    verdict, made = decide(lake_of(settings), settings.landing_uri, **facts, site=site_of(settings), editor=editor)
    for each in verdict.current:
        console.print(f"superseded: {each.value!r} by {each.editor or 'unknown'} at {each.origin}")
    console.print(f"landed edit {made.edit_id[:12]} of {settings.site}: {value!r}")


@catalog.command()
@click.argument("norad_id", type=click.IntRange(1))
@click.option("--at", help="When it left its orbit, ISO 8601, UTC (default: now).")
@click.option("--editor", default=getpass.getuser, help="Who decides (default: the user of this machine).")
@click.pass_obj
def retire(settings: Settings, norad_id: int, at: str | None, editor: str) -> None:
    """State that an object has left its orbit: from then on it is neither screened nor tasked, nor active."""
    from sda_platform.clock import iso

    time_ns = lake_of(settings).clock.now_ns() if at is None else instant(at, "--at")
    _decide_decay(settings, norad_id, iso(time_ns), editor)


@catalog.command()
@click.argument("norad_id", type=click.IntRange(1))
@click.option("--editor", default=getpass.getuser, help="Who decides (default: the user of this machine).")
@click.pass_obj
def restore(settings: Settings, norad_id: int, editor: str) -> None:
    """State that an object is in orbit, whatever sources state. `sda catalog edit N decay ""` follows them again."""
    from sda_platform.formats.edits import IN_ORBIT

    _decide_decay(settings, norad_id, IN_ORBIT, editor)


@catalog.command("site-key", short_help="Make a key that signs the edits of this site.")
@click.argument("file", type=FILE)
def site_key(file: Path) -> None:
    """Make an Ed25519 key in FILE for SDA_SITE_KEY, and its public key in FILE.pub, which other sites need."""
    write_key(file)


def _decide_decay(settings: Settings, norad_id: int, value: str, editor: str) -> None:
    from sda_platform.catalog.editing import make_edit
    from sda_platform.formats.edits import DECAY

    facts: dict[str, Any] = {"norad_id": norad_id, "attribute": DECAY, "value": value}
    made = make_edit(lake_of(settings), settings.landing_uri, **facts, site=site_of(settings), editor=editor)
    console.print(f"landed edit {made.edit_id[:12]} of {settings.site}: decay of {norad_id} is {value!r}")


@catalog.command()
@click.argument("file", type=FILE)
@default_option("--format", "name", default="csv", help="csv, json, tle, 2le, xml or kvn.")
@click.option("--edits", is_flag=True, help="Export every known edit instead, for another site to land.")
@click.pass_obj
def export(settings: Settings, file: Path, name: str, edits: bool) -> None:
    """Write the catalogue, or every known edit, to FILE."""
    from sda_platform.catalog.editing import known_edits
    from sda_platform.catalog.tables import ORBITAL_CATALOG
    from sda_platform.formats.edits import encode_edits
    from sda_platform.serving.index import records
    from sda_platform.serving.record import COLUMNS
    from sda_platform.serving.rendering import RENDERINGS, rendered

    lake = lake_of(settings)
    if edits:
        known = known_edits(lake, settings.landing_uri, site_of(settings).keys)
        file.write_bytes(encode_edits(known))
        console.print(f"{len(known)} edits: {file}")
        return
    if name not in RENDERINGS:
        raise click.BadParameter(f"there is no format {name!r}; there are {', '.join(RENDERINGS)}")
    rows = records(lake.log(ORBITAL_CATALOG).rows(COLUMNS).sort_by("norad_id"))
    data, _, left_out = rendered(name, rows)
    file.write_bytes(data)
    without = f"; {left_out} do not fit into this format" if left_out else ""
    console.print(f"{len(rows) - left_out:,} objects: {file}{without}")


@catalog.command()
@click.argument("norad_id", type=click.IntRange(1))
@click.argument("file", type=FILE)
@click.pass_obj
def ephemeris(settings: Settings, norad_id: int, file: Path) -> None:
    """Write the refined ephemeris of an object, with its covariances, to FILE: an OEM, in XML if FILE ends in .xml."""
    from sda_platform.formats.oem_writing import write_oem_kvn, write_oem_xml
    from sda_platform.orbit_determination.ephemeris_messages import refined_ephemeris

    found = refined_ephemeris(lake_of(settings), norad_id)
    file.write_bytes((write_oem_xml if file.suffix == ".xml" else write_oem_kvn)([found]))
    console.print(
        f"{len(found.time_ns):,} states from {found.value('START_TIME')} to {found.value('STOP_TIME')}: {file}"
    )


for _command in (access, held, put, release, serve):
    catalog.add_command(_command)
