"""What a campaign lands, and the exact account of it: the oracle compares what is stored with what was written here.

A stretch of a simulated world at a time: real objects seen by radars and links, with late, repeated and corrupt
records, and a telescope's lines, of which some are broken. Its segments come in shuffled order, one of them delivered
twice under two names, one torn or altered. New element sets of the objects that the fleet meets, messages of others
about them, edits of these objects and acknowledgements of alerts come in between. One seed is one world.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.acknowledgements import AlertAcknowledgement, encode_acknowledgements
from sda_platform.formats.cutting import split_records
from sda_platform.formats.edits import Edit, encode_edits
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.formats.radar import encode_radar_frames
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.object_store import is_object_store
from sda_platform.landing.consumed import META_SUFFIX
from sda_platform.landing.segments import segment_sha256
from sda_platform.landing.zone import LandingZone
from sda_platform.simulation.corruption import FaultRates
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.ephemerides_of_operators import oem_of
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.segments import START_NS, after, catalogue_of, described, put

# Mission time is stopped here, after everything that is measured: `as_of` is the same in every run and twin.
NOW_S = 1200.0
DURATION_S = 900.0
HORIZON_H = 3.0
_TRUTH = Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv"
_RATES = FaultRates(late=0.1, duplicate=0.05, corrupt=0.02)
_PLAN = ObservingPlan(radar_interval_s=5.0, isl_interval_s=5.0)
_ODD = "odd-"
_BULK = 14_000
_TURN_DEG, _TURNS = 0.002, 5

# Which record of which bytes: what every bronze row states of itself, and what must be there once.
RecordId = tuple[str, int]
Input = Literal["readings", "elements", "ephemerides", "messages", "edits", "acknowledgements", "satellites", "bulk"]
"""What lands together; messages are those of others, about conjunctions; bulk is more than a frame takes."""


@dataclass(frozen=True)
class Delivery:
    """One segment as somebody puts it into a zone; ``is_sound`` is False where its metadata lies."""

    feed: str
    name: str
    data: bytes
    meta: SegmentMeta
    is_sound: bool = True

    def land(self, landing_root: str) -> None:
        """Put it there: data first, metadata last, whatever the zone already had.

        A file with an odd name comes as a careless copy brings it: not in one step, and with an old modification time.
        """
        zone = LandingZone(landing_root, self.feed)
        for name, data in ((self.name, self.data), (self.name + META_SUFFIX, self.meta.to_json().encode())):
            if self.name.startswith(_ODD) and not is_object_store(landing_root):
                path = Path(str(zone.root)) / "pending" / name
                path.write_bytes(data)
                os.utime(path, (0, 0))
            else:
                put(zone, name, data)

    def records(self) -> Iterator[tuple[RecordId, bytes | None]]:
        """Identity and bytes of each record that must be stored; a defective segment is one row without bytes."""
        if not self.is_sound:
            yield (segment_sha256(self.feed, self.name, self.data, "defective"), -1), None
            return
        for number, record in enumerate(split_records(self.data, self.meta.format)):
            yield (self.meta.sha256, number), record.payload


@dataclass
class World:
    """The deliveries of one seed, in order, and the account of those that were made."""

    seed: int
    is_for_store: bool = False
    """Whether every name is one that an object store takes: its keys are UTF-8."""
    written: dict[RecordId, bytes | None] = field(default_factory=dict)
    delivered: list[Delivery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng(self.seed)
        self._segments = iter(_segments(self.seed))
        self._updates = 0
        self._messages = 0
        self._ephemerides = 0
        self._edits = 0
        self._acknowledgements = 0
        self._satellites = 0
        self._bulks = 0

    def next_input(self, what: Input) -> list[Delivery]:
        """The next deliveries of one kind."""
        match what:
            case "readings":
                return self.next_stretch()
            case "elements":
                return [self.new_element_sets()]
            case "ephemerides":
                return [self.new_ephemerides()]
            case "messages":
                return [self.new_messages()]
            case "edits":
                return [self.new_edits()]
            case "acknowledgements":
                return [self.new_acknowledgements()]
            case "satellites":
                return [self.new_satellites()]
            case "bulk":
                return [self.new_bulk()]

    def first_catalogue(self) -> Delivery:
        """The element sets of every object of this world."""
        return _elements("catalogue", catalogue_of([*_fleet(), *_partners()]))

    def new_element_sets(self) -> Delivery:
        """Newer sets of the objects that the fleet meets: their approaches must be found, and told, anew."""
        self._updates += 1
        # The name comes before "repeat-": of two deliveries the first that is read gives rows its name.
        return _elements(f"elements-{self._updates}", _turned(catalogue_of(_partners()), self._updates))

    def new_messages(self) -> Delivery:
        """What others say of two encounters, in a file whose last message states a probability that is none."""
        self._messages += 1
        pair, created_ns = self._chance.choice(_partners(), size=2, replace=False).tolist(), after(self._messages)
        sound = [Told((pair[0], pair[1]), tca_ns=after(NOW_S + 600.0 * n), created_ns=created_ns) for n in (1, 2)]
        data = messages_of([*sound, replace(sound[0], stated=2.0)])
        return Delivery("messages", f"messages-{self._messages}.kvn", data, described(data, "messages"))

    def new_ephemerides(self) -> Delivery:
        """Ephemerides of two objects that the fleet meets, and one that breaks off in a word."""
        self._ephemerides += 1
        start_ns, (first, second) = after(self._ephemerides), _partners()[:2]
        data = oem_of(first, start_ns=start_ns) + oem_of(second, start_ns=start_ns)
        data += oem_of(second, start_ns=start_ns, broken=True)
        name = f"ephemerides-{self._ephemerides}.kvn"
        return Delivery("ephemerides", name, data, described(data, "ephemerides"))

    def new_edits(self) -> Delivery:
        """Remarks that two sites make apart about one object, and a line that is no edit."""
        self._edits += 1
        edits = [
            Edit(
                norad_id=_partners()[0],
                attribute="remark",
                value=f"remark {self._edits} of {site}",
                origin=site,
                lamport=self._edits,
                vector={site: self._edits},
            )
            for site in ("site-a", "site-b")
        ]
        return _lines("edits", self._edits, encode_edits(edits))

    def new_acknowledgements(self) -> Delivery:
        """Two acknowledgements of alerts, and a line that is none."""
        self._acknowledgements += 1
        seen_ns = after(self._acknowledgements)
        made = [AlertAcknowledgement(f"alert-{n}", self._acknowledgements, "analyst", "seen", seen_ns) for n in (1, 2)]
        return _lines("acknowledgements", self._acknowledgements, encode_acknowledgements(made))

    def new_satellites(self) -> Delivery:
        """Facts about two objects, whose cross-section changes each time, and a record of no object."""
        self._satellites += 1
        first, second = _partners()[:2]
        records = [(first, 1.0 + self._satellites), (second, 2.0 + self._satellites), ("none", 1.0)]
        rows = [f"SATELLITE {number},{number},PAY,+,US,{size}" for number, size in records]
        header = "OBJECT_NAME,NORAD_CAT_ID,OBJECT_TYPE,OPS_STATUS_CODE,OWNER,RCS"
        data = "\n".join([header, *rows, ""]).encode()
        meta = described(data, "satellites", segment_format="satcat-csv")
        return Delivery("satellites", f"satellites-{self._satellites}.csv", data, meta)

    def new_bulk(self) -> Delivery:
        """As many frames as Arrow writes into data files; all but one are noise: dead letters that change no alert.

        One is sound: a segment of which every record is refused is known by another hash than that of its bytes.
        """
        self._bulks += 1
        noise = np.random.default_rng(self._bulks).integers(256, size=(_BULK, 72), dtype=np.uint8)
        frames = [_lonely_frame(self._bulks), *(bytes(frame) for frame in noise[1:])]
        data = pack_records(frames, [after(NOW_S)] * _BULK)
        return Delivery("radar", f"bulk-{self._bulks}", data, described(data, "radar"))

    def next_stretch(self, segments: int = 4) -> list[Delivery]:
        """The next ``segments`` and a defective one in any order, then one of those or of earlier ones once more.

        The repeat comes last: were it the first to be read, its name would stand in the rows, and in a twin's another.
        """
        stretch = [*(_delivery(next(self._segments)) for _ in range(segments)), _optical(len(self.delivered))]
        found = [*stretch, self._spoiled(self._pick(stretch))]
        again = self._pick([*self.delivered, *stretch])
        # Names decide the order of segments that were sealed at one time: this one follows those of all sound ones.
        repeat = replace(again, name=f"repeat-{len(self.delivered):04}-{again.name.removeprefix(_ODD)[:100]}")
        found[:2] = [
            replace(found[n], name=name) for n, name in enumerate(_odd_names(len(self.delivered), self.is_for_store))
        ]
        return [*(found[n] for n in self._chance.permutation(len(found))), repeat]

    def deliver(self, deliveries: Sequence[Delivery], landing_root: str) -> None:
        """Land ``deliveries`` and enter them into the account; what is no file lies about in each of their zones."""
        for delivery in deliveries:
            self.written.update(delivery.records())
            self.delivered.append(delivery)
            if not is_object_store(landing_root):  # it has no directories
                _clutter(Path(landing_root) / delivery.feed / "pending")
            delivery.land(landing_root)

    def _pick(self, deliveries: Sequence[Delivery]) -> Delivery:
        sound = [d for d in deliveries if d.is_sound]
        return sound[int(self._chance.integers(len(sound)))]

    def _spoiled(self, whole: Delivery) -> Delivery:
        """A copy that was torn or altered on its way: its metadata promises what its data is not."""
        name = f"spoiled-{len(self.delivered)}-{whole.name}"
        at = int(self._chance.integers(1, len(whole.data)))
        if self._chance.random() < 0.5:
            return replace(whole, name=name, data=whole.data[:at], is_sound=False)
        altered = bytes([whole.data[at] ^ 0xFF])
        return replace(whole, name=name, data=whole.data[:at] + altered + whole.data[at + 1 :], is_sound=False)


def _lonely_frame(number: int) -> bytes:
    """A sound frame of a radar that sees an object a hundred metres before it, where none of the catalogue is."""
    (frame,) = encode_radar_frames(
        array_id=np.array([1]),
        target_track_id=np.array([number]),
        timestamp_ns=np.array([after(NOW_S)]),
        range_m=np.array([100.0]),
        range_rate_m_s=np.array([0.0]),
        azimuth_rad=np.array([0.0]),
        elevation_rad=np.array([0.5]),
        sigma_range_m=np.array([10.0]),
        sigma_rate_m_s=np.array([0.1]),
    )
    return frame


def _odd_names(number: int, is_utf8: bool) -> tuple[str, str]:
    """A name that is not UTF-8, or one of signs that an address escapes; and one as long as its metadata's allows."""
    first = f"{_ODD}m\xfcnchen {number} 100%+.seg" if is_utf8 else f"{_ODD}m\xfcnchen-{number}.seg"
    return os.fsdecode(first.encode("utf-8" if is_utf8 else "latin-1")), f"{_ODD}{number}-".ljust(245, "x")


def _clutter(pending: Path) -> None:
    """Directories, as file systems, tools and mistakes leave them in ``pending``."""
    for name in ("lost+found", ".stfolder", "to do"):
        (pending / name).mkdir(parents=True, exist_ok=True)


def _delivery(segment: SimulatedSegment) -> Delivery:
    name = f"{segment.feed}-{segment.available_time_ns}-{segment.meta.sha256[:12]}.seg"
    return Delivery(segment.feed, name, segment.data, segment.meta)


def _elements(name: str, data: bytes) -> Delivery:
    return Delivery("elements", f"{name}.csv", data, described(data, "elements"))


def _lines(feed: str, number: int, sound: bytes) -> Delivery:
    """These lines, and one that breaks off."""
    data = sound + sound[:20] + b"\n"
    return Delivery(feed, f"{feed}-{number}.jsonl", data, described(data, feed))


def _segments(seed: int) -> Iterator[SimulatedSegment]:
    """The same quarter of an hour again and again, with other noise: more looks at the same objects."""
    for turn in count():
        yield from simulate(
            "nominal",
            start_time_ns=START_NS,
            duration_s=DURATION_S,
            seed=seed + 1_000_003 * turn,
            objects=_fleet(),
            catalogue=catalogue_of([*_fleet(), *_partners()]),
            rates=_RATES,
            plan=_PLAN,
        )


@cache
def _fleet() -> tuple[int, ...]:
    return tuple(member.norad_id for member in protected_fleet())


@cache
def _partners() -> tuple[int, ...]:
    """Objects outside the fleet that come close to it within the horizon; no sensor follows them."""
    until_ns = after(NOW_S + HORIZON_H * 3600.0)
    with _TRUTH.open() as file:
        events = [e for e in csv.DictReader(file) if after(NOW_S) < parse_iso_ns(e["tca_utc"]) < until_ns]
    met = {int(event[name]) for event in events for name in ("norad_lo", "norad_hi")}
    return tuple(sorted(met - set(_fleet())))


def _optical(night: int) -> Delivery:
    """What a telescope's archive sends of one night: sound lines, and two that are none."""
    times = [after(night + tenth / 10) for tenth in range(5)]
    records = [OpticalRecord(f"{night}-{n}", t, 1.0 + n / 10, 0.5, 1.0, "maui", t) for n, t in enumerate(times)]
    lines = [encode_optical_record(record) for record in records]
    data = b"\n".join([*lines[:2], lines[2][:40], *lines[3:], lines[4].replace(b"0.5", b"9.0")]) + b"\n"
    return Delivery("optical", f"optical-{night}.jsonl", data, described(data, "optical", seconds=float(night)))


def _turned(catalogue: bytes, times: int) -> bytes:
    """The same sets with a later set number, each time elsewhere along their orbits, and never far."""
    turn_deg = _TURN_DEG * (times % _TURNS - _TURNS // 2)
    header, *lines = catalogue.decode().splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    for row in rows:
        row["ELEMENT_SET_NO"] = str(int(row["ELEMENT_SET_NO"]) + times)
        row["MEAN_ANOMALY"] = f"{(float(row['MEAN_ANOMALY']) + turn_deg) % 360.0:.4f}"
    return "\n".join([header, *(",".join(row.values()) for row in rows)]).encode() + b"\n"
