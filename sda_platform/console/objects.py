"""The catalogue: a search, and the page of one object."""

from typing import Final

from starlette.responses import Response

from sda_platform.catalog.lookup import UnknownObject, found_objects, one_object, with_orbits
from sda_platform.catalog.tables import ELEMENTS, IN_FORCE
from sda_platform.conjunction.selection import EventSelection, sort_key
from sda_platform.console.conjunctions import conjunction_table
from sda_platform.console.object_facts import fleet_facts, orbit_facts
from sda_platform.console.observing import observing_facts
from sda_platform.console.page import ConsoleContext, currency, page
from sda_platform.console.readers import ConsoleReader
from sda_platform.html_elements import element, labelled, section, table
from sda_platform.serving.rendering import RENDERINGS

_MOST: Final = 200
_FOUND: Final = ("number", "name", "designator", "regime", "perigee km", "apogee km", "inclination", "age days")


def search_page(context: ConsoleContext, text: str) -> Response:
    """Answer with the objects whose number, name or designator contains ``text``."""
    form = element(
        "form",
        labelled("Number, name or designator", element(
            "input", type="search", name="text", value=text, maxlength=200, autofocus=not text)),
        element("button", "Search", type="submit"),
        method="get", role="search",
    )  # fmt: skip
    return page(context, "Catalogue", element("h1", "Catalogue"), form, *(_found(context, text) if text else ()))


def _found(context: ConsoleContext, text: str) -> tuple[object, ...]:
    try:
        rows = found_objects(with_orbits(context.lake), text)
    except UnknownObject as error:
        return (element("p", str(error), role="alert"),)
    first = rows.slice(0, _MOST).to_pylist()
    cells = (
        (
            element("a", row["norad_id"], href=f"objects/{row['norad_id']}"),
            row["object_name"] or "unnamed",
            row["international_designator"] or "",
            row["regime"],
            f"{row['perigee_km']:.1f}",
            f"{row['apogee_km']:.1f}",
            f"{row['inclination_deg']:.2f}°",
            f"{row['age_days']:.2f}",
        )
        for row in first
    )
    cut = f" The first {_MOST} are shown." if rows.num_rows > _MOST else ""
    count = f"{rows.num_rows:,} objects have {text!r} in their number, name or designator.{cut}"
    return element("p", count), table("Objects", _FOUND, cells)


def object_page(context: ConsoleContext, norad_id: int, reader: ConsoleReader) -> Response:
    """Answer with the page of an object. Raises UnknownObject."""
    found = one_object(context.lake, norad_id)
    overview = context.overviews.now()
    selection = EventSelection(satellite=str(norad_id))
    rows = sorted(filter(selection.has, overview.rows), key=lambda row: sort_key("tca", row))
    known = fleet_facts(context.members(), norad_id, with_contact=reader.may_act)
    facts = {**known, **orbit_facts(context.lake, found), **observing_facts(context.lake, norad_id)}
    if found["merged"]:
        facts["with the sets of"] = ", ".join(map(str, found["merged"]))
    facts["record"] = f"{found['segment_name']} record {found['record_number']}"
    formats = [element("a", name, href=f"{norad_id}?format={name}") for name in RENDERINGS]
    others = {"history": "every element set", "states": "state now, TEME", "conjunctions": "conjunctions"}
    more = [element("a", text, href=f"{norad_id}/{name}") for name, text in others.items()]
    conjunctions = conjunction_table(rows, overview.currency.now_ns, root="../") if rows else element("p", "none ahead")
    claims = [
        (claim["attribute"], claim["value"] or claim["claimant"] or "", claim["outcome"], claim["reason"] or "")
        for claim in found["claims"]
        if (claim["attribute"], claim["outcome"]) != (ELEMENTS, IN_FORCE)
    ]
    edits = section("Edits and claims", table("Edits and claims", ("what", "value", "outcome", "why"), claims))
    return page(
        context,
        f"{found['object_name'] or 'unnamed'} ({norad_id})",
        element("h1", f"{found['object_name'] or 'unnamed'} ({norad_id})"),
        currency(context, overview),
        section("Conjunctions", conjunctions),
        section("Object", table("Object", (), facts.items())),
        section("Downloads", element("p", *(part for each in (*formats, *more) for part in (each, " ")))),
        edits if claims else None,
        root="../",
    )
