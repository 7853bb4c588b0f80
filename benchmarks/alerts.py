"""How many alerts and revisions a fleet gets in a week of real element sets, without and with the alert policy.

    python benchmarks/alerts.py history.3le.gz --start 2013-10-10 --satellites 100

Replays the history: every few hours the fleet is screened against all objects with the sets published until then, and
every approach is assessed, as the platform does. "Before" is an alert for each assessment that is not green, sent again
when TCA (1 ms), miss (1 m) or Pc (three digits) changes. An alert is confirmed if the sets published until its TCA give
its event the same level or a higher one of the policy, or a Pc of 1e-6 or more; only passes within the week count.
"""

import argparse
import gzip
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, SENT, alerts_of
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.identity import event_ids, slots_ns
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets, semi_major_axis_km
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.object_kinds import object_type
from sda_platform.orbits.screening.search import screen
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.setting_sections import AlertSettings
from sda_platform.units import SECOND_NS

HOUR_NS = 3600 * SECOND_NS
THRESHOLD_KM, HORIZON_H, WEEK_H = 5.0, 168, 168
CONFIRMED_FROM = 1e-6
NO_TRACKS = Tracks.of(pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS]).empty_table())
Row = dict[str, Any]


def main() -> None:
    """Replay the week and print both counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    parser.add_argument("--start", default="2013-10-10", help="first day of the week")
    parser.add_argument("--satellites", type=int, default=100, help="size of the fleet")
    parser.add_argument("--step-h", type=int, default=6, help="hours between screenings")
    given = parser.parse_args()
    rows = read(given.history)
    start_ns = parse_iso_ns(f"{given.start}T00:00:00Z")
    fleet = chosen_fleet(catalogue_at(rows, start_ns), given.satellites)
    began = time.perf_counter()
    history = replay(rows, fleet, start_ns, given.step_h)
    print(f"{len(fleet)} satellites, {len(history):,} screenings in {time.perf_counter() - began:.0f} s")
    last = final_assessments(history)
    before, after = without_policy(history), with_policy(history, AlertPolicy(AlertSettings()))
    for title, entries in (("before", before), ("after", after)):
        print_counts(title, entries, last, len(fleet))


def read(path: Path) -> pa.Table:
    """The usable element sets of a file, by epoch."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = decode_element_sets(data, segment_format="tle")
    return rows.filter(pc.is_null(rows.column("error_kind"))).sort_by("epoch_time_ns")


def catalogue_at(rows: pa.Table, as_of_ns: int) -> Catalogue:
    """The newest set of each object with an epoch of the 30 days until ``as_of_ns``."""
    epoch_ns = rows.column("epoch_time_ns").to_numpy()
    known = np.flatnonzero((epoch_ns <= as_of_ns) & (epoch_ns > as_of_ns - 30 * 24 * HOUR_NS))
    ids = rows.column("norad_id").to_numpy()[known]
    _, newest = np.unique(ids[::-1], return_index=True)
    chosen = rows.take(pa.array(known[::-1][newest]))
    names = tuple(name or "" for name in chosen.column("object_name").to_pylist())
    return Catalogue(Propagator(ElementSets.from_columns(arrays(chosen, ELEMENT_COLUMNS))), names)


def chosen_fleet(catalogue: Catalogue, count: int) -> list[int]:
    """Payloads of nearly circular orbits of 400 to 1,000 km, drawn with a fixed seed."""
    elements = catalogue.propagator.elements
    height_km = semi_major_axis_km(elements) - 6378
    is_payload = np.array([object_type(name) == "payload" for name in catalogue.object_names])
    suited = is_payload & (height_km > 400) & (height_km < 1000) & (elements.eccentricity < 0.02)
    return sorted(np.random.default_rng(44).choice(elements.norad_id[suited], count, replace=False).tolist())


def replay(rows: pa.Table, fleet: list[int], start_ns: int, step_h: int) -> list[tuple[int, list[Row]]]:
    """Of each screening its time and the assessed events."""
    known: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    found = []
    for hour in range(0, WEEK_H + 1, step_h):
        as_of_ns = start_ns + hour * HOUR_NS
        catalogue = catalogue_at(rows, as_of_ns)
        candidates = screened(catalogue, fleet, as_of_ns, known)
        assessed = assess_candidates(
            candidates, catalogue, NO_TRACKS, OperatorEphemerides.none(), Volume.sphere(THRESHOLD_KM), ObjectSizes()
        )
        found.append((as_of_ns, assessed.select(list(ASSESSED_COLUMNS)).to_pylist()))
    return found


def screened(
    catalogue: Catalogue, fleet: list[int], as_of_ns: int, known: dict[tuple[int, int], dict[str, int]]
) -> pa.Table:
    """The approaches of the coming week with their event ids; ``known`` are the events so far."""
    everything, elements = np.arange(len(catalogue)), catalogue.propagator.elements
    events = screen(
        catalogue.propagator,
        catalogue.positions(fleet),
        everything,
        as_of_ns,
        as_of_ns + HORIZON_H * HOUR_NS,
        THRESHOLD_KM,
    ).events
    is_primary = np.isin(elements.norad_id[events.lo], fleet)
    first, second = np.where(is_primary, events.lo, events.hi), np.where(is_primary, events.hi, events.lo)
    slots = slots_ns(elements.take(first), elements.take(second))
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in range(len(events)):
        pairs[int(elements.norad_id[first[row]]), int(elements.norad_id[second[row]])].append(row)
    ids = [""] * len(events)
    for pair, members in pairs.items():
        encounters = [(int(events.tca_time_ns[row]), int(slots[row])) for row in members]
        named = event_ids(pair, encounters, [(tca_ns, event_id) for event_id, tca_ns in known[pair].items()])
        known[pair].update({event_id: tca_ns for event_id, (tca_ns, _) in zip(named, encounters, strict=True)})
        for row, event_id in zip(members, named, strict=True):
            ids[row] = event_id
    return pa.table(
        {
            "event_id": pa.array(ids, pa.string()),
            "norad_id_1": elements.norad_id[first],
            "norad_id_2": elements.norad_id[second],
            "tca_time_ns": events.tca_time_ns,
        }
    )


def final_assessments(history: list[tuple[int, list[Row]]]) -> dict[str, Row | None]:
    """What the last screening before the TCA of each event said of it; None: it found no such event."""
    last: dict[str, Row | None] = {}
    for as_of_ns, events in history:
        found = {event["event_id"]: event for event in events}
        for event_id, event in last.items():
            if event and event_id not in found and event["tca_time_ns"] > as_of_ns:
                last[event_id] = None
        last.update(found)
    return last


def without_policy(history: list[tuple[int, list[Row]]]) -> dict[str, list[Row]]:
    """Every entry sent of each event: one for each that is not green and whose rounded facts changed."""
    sent: dict[str, list[Row]] = defaultdict(list)
    for as_of_ns, events in history:
        for event in events:
            told = (
                round(event["tca_time_ns"] / 1e6),
                round(event["miss_distance_km"], 3),
                f"{event['collision_probability']:.2e}",
            )
            entries = sent[event["event_id"]] if event["risk"] != "green" else []
            if event["risk"] != "green" and (not entries or entries[-1]["told"] != told):
                entries.append({**event, "told": told, "change": "any", "as_of_ns": as_of_ns})
    return {event_id: entries for event_id, entries in sent.items() if entries}


def with_policy(history: list[tuple[int, list[Row]]], policy: AlertPolicy) -> dict[str, list[Row]]:
    """Every entry sent of each event under ``policy``, withdrawals left out."""
    sent: dict[str, list[Row]] = defaultdict(list)
    active: dict[str, Row] = {}
    for as_of_ns, events in history:
        found = {event["event_id"]: event for event in events}
        past = {i: a for i, a in active.items() if i not in found and a["tca_time_ns"] <= as_of_ns}
        found.update({i: {**sent[i][-1]["event"]} for i, alert in past.items() if alert["status"] == "open"})
        rows = [{**event, SENT: active.get(event_id)} for event_id, event in found.items()]
        held = {alert["event_id"]: alert for alert in alerts_of(as_table(rows), policy, as_of_ns).to_pylist()}
        held.update({i: a for i, a in past.items() if i not in held})
        for event_id, alert in held.items():
            facts = {name: value for name, value in alert.items() if name != "event_id"}
            if active.get(event_id) != facts:
                sent[event_id].append({**alert, "as_of_ns": as_of_ns, "event": found.get(event_id)})
        active = {i: {name: v for name, v in a.items() if name != "event_id"} for i, a in held.items()}
    return dict(sent)


def as_table(rows: list[Row]) -> pa.Table:
    """Rows with an Arrow struct for what was sent."""
    plain = [{name: value for name, value in row.items() if name != SENT} for row in rows]
    table = pa.Table.from_pylist(plain) if rows else pa.table({name: [] for name in ASSESSED_COLUMNS})
    return table.append_column(SENT, pa.array([row[SENT] for row in rows]))


def print_counts(title: str, sent: dict[str, list[Row]], last: dict[str, Row | None], satellites: int) -> None:
    """One line: alerts and entries a satellite and week, revisions of an alert, levels, and confirmed passes."""
    weeks = satellites * WEEK_H / 168
    revisions = np.array([sum(entry["change"] != "closed" for entry in entries) - 1 for entries in sent.values()])
    highest = Counter(
        max((entry["risk"] for entry in entries), key=["yellow", "red"].index) for entries in sent.values()
    )
    ended = max(entry["as_of_ns"] for entries in sent.values() for entry in entries)
    passed = [last[event_id] for event_id, entries in sent.items() if entries[-1]["tca_time_ns"] <= ended]
    confirmed = sum(event is not None and event["collision_probability"] >= CONFIRMED_FROM for event in passed)
    messages = sum(len(entries) for entries in sent.values())
    print(
        f"{title}: {len(sent):,} alerts, {len(sent) / weeks:.2f} a satellite and week ({dict(highest)}); "
        f"{messages:,} messages, {messages / weeks:.2f} a satellite and week; "
        f"revisions of an alert: mean {revisions.mean():.2f}, 95 % below {np.quantile(revisions, 0.95):.0f}, "
        f"most {revisions.max()}; later sets confirm {confirmed} of {len(passed)} that passed"
    )
    print(
        f"  changes: {dict(Counter(name for e in sent.values() for entry in e for name in entry['change'].split(',')))}"
    )


if __name__ == "__main__":
    main()
