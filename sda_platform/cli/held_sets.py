"""`sda catalog held` and `release`: element sets that the gate before the merge holds."""

import getpass
from typing import Any

import click

from sda_platform.cli.grammar import lists_rows
from sda_platform.cli.listing import Output, number, word, words
from sda_platform.cli.people import console, lake_of, site_of
from sda_platform.settings import Settings

_HELD = (
    number("number", "norad_id"),
    words("name", "object_name"),
    word("epoch (UTC)", lambda row: row["epoch"][:16].replace("T", " ")),
    words("reason", "reason"),
    words("outcome", "outcome"),
    number("km off", lambda row: "" if row["in_track_km"] is None else f"{row['distance_km']:,.0f}"),
    number("times\nusual", lambda row: "" if row["times_usual"] is None else f"{row['times_usual']:,.0f}"),
    word("newer", lambda row: "yes" if row["is_newer"] else ""),
    words("fits", "fits"),
    word("set", "set"),
)


@click.command(short_help="Element sets that are held before the merge.")
@click.option("--newer", is_flag=True, help="Only sets that are newer than the set in force of their object.")
@click.option("--all", "every", is_flag=True, help="Also sets that were held once.")
@click.option("--fits", is_flag=True, help="Find the object whose orbit each set has.")
@lists_rows(limit=100)
@click.pass_obj
def held(settings: Settings, newer: bool, every: bool, fits: bool, output: Output) -> None:
    """Element sets that are not merged, the newest first: why, and how far off the set before they are.

    newer: the object goes on with an older set. `sda catalog release SET` releases one that is right; one that is of
    another object is given to that by `sda catalog edit NUMBER correct_object SET:NUMBER`.
    """
    from sda_platform.catalog.held_lookup import distance_km, fitting_objects, held_sets, set_name
    from sda_platform.clock import iso

    lake = lake_of(settings)
    rows = [row for row in held_sets(lake, every=every) if row["is_newer"] or not newer]
    rows = rows[: output.limit]
    found = fitting_objects(lake, rows) if fits else [""] * len(rows)
    for row, fit in zip(rows, found, strict=True):
        row |= {"epoch": iso(row["epoch_time_ns"]), "distance_km": distance_km(row), "fits": fit, "set": set_name(row)}
    output.show(rows, _HELD)


@click.command(short_help="Release a held element set: it is merged.")
@click.argument("held_set", metavar="SET")
@click.option("--editor", default=getpass.getuser, help="Who decides (default: the user of this machine).")
@click.pass_obj
def release(settings: Settings, held_set: str, editor: str) -> None:
    """State that a held element set is right: it is merged like others.

    SET is SEGMENT:RECORD as `sda catalog held` lists it. The decision is an edit of the object; to take all its
    releases back: `sda catalog edit NUMBER released_sets ""`.
    """
    from sda_platform.catalog.editing import release as decide

    facts: dict[str, Any] = {"site": site_of(settings), "editor": editor}
    made = decide(lake_of(settings), settings.landing_uri, held_set, **facts)
    console.print(f"landed edit {made.edit_id[:12]} of {settings.site}: {held_set} of {made.norad_id} is released")
