"""The facts of an encounter as rows of tables: titles and texts, of the newest assessment, messages and people."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import words_of_action
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.data_origins import STATE_KINDS, DataOrigin, Key
from sda_platform.conjunction.state_choice import error_distribution, why_state
from sda_platform.formats.markings import of_pair
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.units import SECOND_NS

Row = Mapping[str, Any]
_OBJECTS: Final = {
    "name": "object_name",
    "catalogue number": "norad_id",
    "type": "object_type",
    "radius from": "radius_source",
    "state from": "state_source",
    "ephemeris": "ephemeris_id",
}


def encounter_rows(last: Row) -> Iterable[tuple[str, str]]:
    """Return the geometry and the risk of an assessment."""
    components = ", ".join(
        f"{name.replace('_', '-')} {last[f'{name}_miss_km']:+.3f}" for name in ("radial", "in_track", "cross_track")
    )
    facts = {
        "TCA (UTC)": iso(last["tca_time_ns"]),
        "miss": f"{last['miss_distance_km']:.3f} km ({components})",
        "relative speed": f"{last['relative_speed_km_s']:.3f} km/s",
        "our Pc": f"{probability_text(last['collision_probability'], 3)} by {last['probability_method'] or 'unknown'}",
        "largest Pc over scalings": f"{probability_text(last['maximum_probability'], 3)}",
        "miss in sigmas": f"{last['mahalanobis_distance']:.2f}",
        "hard-body radius": _radii(last),
        "flags": last["risk_flags"] or "none",
        "assessed as of": iso(last["as_of_ns"]),
    }
    return facts.items()


def _radii(last: Row) -> str:
    parts = [f"{last[f'radius_{n}_m']:g} m" for n in (1, 2)] if last["radius_source_1"] else []
    return f"{last['hard_body_radius_m']:g} m, both objects" + (f" ({' + '.join(parts)})" if parts else "")


def object_rows(
    last: Row, origins: Mapping[Key, DataOrigin], others: Mapping[int, Mapping[str, str]]
) -> list[tuple[str, ...]]:
    """Return the facts of both objects: of an assessment, of the data, and ``others`` by catalogue number."""
    both = {title: [str(last[f"{column}_{n}"] or "") for n in (1, 2)] for title, column in _OBJECTS.items()}
    both["state from"] = [STATE_KINDS.get(text, text) for text in both["state from"]]
    both["because"] = [why_state(last, n) for n in (1, 2)]
    both["errors"] = [error_distribution(last, n) for n in (1, 2)]
    both["classification, data mode"] = [", ".join(mark or "not known" for mark in each) for each in of_pair(last)]
    known = [origins.get((last["event_id"], n)) for n in (1, 2)]
    times_ns = [each.time_ns if each else None for each in known]
    both["newest data (UTC)"] = ["" if time_ns is None else iso(time_ns) for time_ns in times_ns]
    both["data of"] = [each.data or "not recorded" if each else "not recorded" for each in known]
    more = [others.get(last[f"norad_id_{n}"], {}) for n in (1, 2)]
    both |= {title: [each.get(title, "") for each in more] for title in {**more[0], **more[1]}}
    moved = [last[f"manoeuvre_time_{n}_ns"] for n in (1, 2)]
    both["suspected of a manoeuvre at or since (UTC), not in its elements"] = [iso(at) if at else "" for at in moved]
    return [(title, *texts) for title, texts in both.items() if any(texts)]


def action_row(row: Row) -> tuple[str, str, str, str]:
    """Return when, who, what that person did, and the comment."""
    return iso(row["acknowledged_time_ns"]), row["acknowledged_by"], words_of_action(row), row["comment"]


def message_row(message: Row, tca_ns: int) -> tuple[str, ...]:
    """A received message: its TCA against ours, the Pc that it states, and the Pc that we compute from its states."""
    stated, own = (
        "none" if (value := message[name]) is None else f"{value:.2e}"
        for name in ("stated_probability", "recomputed_probability")
    )
    differs, miss = f"{(message['tca_time_ns'] - tca_ns) / SECOND_NS:+.3f}", f"{message['miss_distance_km']:.3f}"
    return (
        iso(reported_ns(message)),
        message["originator"] or "unknown",
        differs,
        miss,
        stated,
        own,
        message["message_id"] or "",
        message.get("superseded") or "",
    )
