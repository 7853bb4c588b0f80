"""A beam of an antenna observes one object at a time; a dish needs time to turn and to set up in between.

A phased array has several beams, and turns them without delay.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from sda_platform.units import SECOND_NS

# What is looked at in a window of hours that many share; a pass of minutes has fewer neighbours.
_MOST_NEIGHBOURS, _MOST_CANDIDATES = 6, 24

Direction = tuple[float, float]
"""Azimuth from north by east and elevation, degrees."""


@dataclass(frozen=True)
class AntennaPass:
    """When an antenna can observe an object, Unix time ns, and where it points at rise, culmination and set."""

    pass_id: str
    source_id: str
    aos_ns: int
    tca_ns: int
    los_ns: int
    aos_deg: Direction = (0.0, 0.0)
    tca_deg: Direction = (0.0, 0.0)
    los_deg: Direction = (0.0, 0.0)
    quality: float = 1.0

    def ahead_ns(self, now_ns: int, deadline_ns: int) -> tuple[int, int]:
        """Return the part that is ahead of ``now_ns`` and before a deadline; it may be empty, its end before."""
        return max(self.aos_ns, now_ns), min(self.los_ns, deadline_ns)

    def direction(self, time_ns: int) -> Direction:
        """Interpolate the antenna's direction between rise, culmination and set."""
        before = time_ns <= self.tca_ns
        (t0, d0), (t1, d1) = (
            ((self.aos_ns, self.aos_deg), (self.tca_ns, self.tca_deg))
            if before
            else ((self.tca_ns, self.tca_deg), (self.los_ns, self.los_deg))
        )
        part = (time_ns - t0) / (t1 - t0) if t1 > t0 else 0.0
        turn = (d1[0] - d0[0] + 180.0) % 360.0 - 180.0
        return (d0[0] + part * turn) % 360.0, d0[1] + part * (d1[1] - d0[1])


class Booking(NamedTuple):
    """Antenna time of one request: from ``start_ns`` to ``end_ns`` on target, with the directions at both."""

    start_ns: int
    end_ns: int
    request_id: str
    source_id: str
    pass_id: str
    start_deg: Direction
    end_deg: Direction
    beam: int = 0
    """Which of the antenna's beams observes."""


def booked(request_id: str, window: AntennaPass, start_ns: int, duration_ns: int, beam: int = 0) -> Booking:
    """Return the observation in ``window`` from ``start_ns`` on."""
    end_ns = start_ns + duration_ns
    directions = window.direction(start_ns), window.direction(end_ns)
    return Booking(start_ns, end_ns, request_id, window.source_id, window.pass_id, *directions, beam)


@dataclass(frozen=True)
class Antenna:
    """How long an antenna or a mount needs between two observations: set-up, and turning at ``slew_deg_s``.

    ``closed_ns``: from when to when it observes nothing, such as in bad weather or during maintenance.
    """

    source_id: str
    setup_s: float
    slew_deg_s: float
    beams: int = 1
    closed_ns: tuple[tuple[int, int], ...] = ()

    def gap_ns(self, before: Booking, after: Booking) -> int:
        """Least time between the end of one observation and the start of the next, ns."""
        azimuth_deg = abs(before.end_deg[0] - after.start_deg[0]) % 360.0
        angle_deg = max(min(azimuth_deg, 360.0 - azimuth_deg), abs(before.end_deg[1] - after.start_deg[1]))
        return round((self.setup_s + angle_deg / self.slew_deg_s) * SECOND_NS)

    def open_parts(self, from_ns: int, until_ns: int) -> list[tuple[int, int]]:
        """Return the parts of an interval in which it is not closed, in order; some may be empty."""
        parts, since_ns = [], from_ns
        for closes_ns, opens_ns in sorted(self.closed_ns):
            if opens_ns > since_ns and closes_ns < until_ns:
                parts.append((since_ns, min(closes_ns, until_ns)))
                since_ns = opens_ns
        return [*parts, (since_ns, until_ns)]

    def is_closed(self, booking: Booking) -> bool:
        """Return whether it is closed during a part of ``booking``."""
        return any(start_ns < booking.end_ns and booking.start_ns < end_ns for start_ns, end_ns in self.closed_ns)

    @property
    def longest_gap_ns(self) -> int:
        """The gap between opposite directions, ns."""
        return round((self.setup_s + 180.0 / self.slew_deg_s) * SECOND_NS)


class AntennaTimeline:
    """The bookings of one beam of an antenna, which never overlap, with the gaps in between."""

    def __init__(self, antenna: Antenna, beam: int = 0) -> None:
        self.beam = beam
        self._antenna, self._longest_gap_ns = antenna, antenna.longest_gap_ns
        self._bookings: list[Booking] = []
        self._starts_ns: list[int] = []  # of each booking

    def __iter__(self) -> Iterator[Booking]:
        return iter(self._bookings)

    def add(self, booking: Booking) -> None:
        """Enter a booking. Raises ValueError where it is too near another one."""
        if found := self.conflicts(booking):
            raise ValueError(f"{booking.source_id} is taken at {booking.start_ns}: {found[0]}")
        place = bisect_left(self._starts_ns, booking.start_ns)
        self._bookings.insert(place, booking)
        self._starts_ns.insert(place, booking.start_ns)

    def remove(self, booking: Booking) -> None:
        """Take out a booking that is there."""
        place = bisect_left(self._starts_ns, booking.start_ns)
        if self._bookings[place] != booking:
            raise ValueError(f"{booking} is not booked")
        del self._bookings[place], self._starts_ns[place]

    def conflicts(self, booking: Booking) -> list[Booking]:
        """Return the bookings that are too near ``booking``, in order."""
        place = bisect_left(self._starts_ns, booking.start_ns)
        first = last = place
        while first and self._is_near(self._bookings[first - 1], booking):
            first -= 1
        while last < len(self._bookings) and self._is_near(booking, self._bookings[last]):
            last += 1
        return self._bookings[first:last]

    def _is_near(self, before: Booking, after: Booking) -> bool:
        between_ns = after.start_ns - before.end_ns
        # Most pairs overlap or lie far apart: directions count only in between.
        return between_ns < self._longest_gap_ns and (
            between_ns < 0 or between_ns < self._antenna.gap_ns(before, after)
        )

    def free(
        self, request_id: str, window: AntennaPass, between_ns: tuple[int, int], duration_ns: int
    ) -> Booking | None:
        """Return the free time of ``duration_ns`` within ``between_ns`` that is nearest to culmination, if there is
        one.
        """
        places = self.candidates(request_id, window, between_ns, duration_ns)
        return next((each for each in places if not self.conflicts(each)), None)

    def candidates(
        self, request_id: str, window: AntennaPass, between_ns: tuple[int, int], duration_ns: int
    ) -> Iterator[Booking]:
        """Yield times worth a look: around culmination, then first, last, right after and before each booking in the
        window, the nearest to culmination first.
        """
        middle = self.middle(request_id, window, between_ns, duration_ns)
        yield middle
        places = self.beside(self._nearest(between_ns, middle), middle, window, between_ns)
        yield from islice(places, 1, _MOST_CANDIDATES)

    def beside(
        self, others: Iterable[Booking], middle: Booking, window: AntennaPass, between_ns: tuple[int, int]
    ) -> Iterator[Booking]:
        """Yield places for ``middle``: its own, first, last, beside each of ``others``; nearest to its own first."""
        duration_ns = middle.end_ns - middle.start_ns
        first_ns, last_ns = between_ns[0], between_ns[1] - duration_ns
        starts = {middle.start_ns, first_ns, last_ns}
        for other in others:
            # The direction changes with the time and the gap with the direction, so twice.
            after_ns = other.end_ns + self._antenna.gap_ns(other, middle)
            before_ns = other.start_ns - duration_ns - self._antenna.gap_ns(middle, other)
            for start_ns in (after_ns, before_ns):
                if first_ns <= start_ns <= last_ns:
                    there = booked(middle.request_id, window, start_ns, duration_ns, self.beam)
                    later = other.end_ns + self._antenna.gap_ns(other, there)
                    sooner = other.start_ns - duration_ns - self._antenna.gap_ns(there, other)
                    starts |= {start_ns, later if start_ns == after_ns else sooner}
        ordered = sorted(starts, key=lambda each: (abs(each - middle.start_ns), each))
        for start_ns in ordered:
            if first_ns <= start_ns <= last_ns:
                yield booked(middle.request_id, window, start_ns, duration_ns, self.beam)

    def within(self, between_ns: tuple[int, int]) -> list[Booking]:
        """Return the bookings that touch ``between_ns``, in order."""
        first = max(bisect_left(self._starts_ns, between_ns[0]) - 1, 0)
        touching = self._bookings[first : bisect_right(self._starts_ns, between_ns[1])]
        return [other for other in touching if other.end_ns >= between_ns[0]]

    def _nearest(self, between_ns: tuple[int, int], middle: Booking) -> list[Booking]:
        """Return the bookings that touch ``between_ns``; of many, those nearest to ``middle``."""
        place = bisect_left(self._starts_ns, middle.start_ns)
        around = self._bookings[max(0, place - _MOST_NEIGHBOURS) : place + _MOST_NEIGHBOURS]
        return [other for other in around if other.end_ns >= between_ns[0] and other.start_ns <= between_ns[1]]

    def middle(self, request_id: str, window: AntennaPass, between_ns: tuple[int, int], duration_ns: int) -> Booking:
        """Return the observation around the culmination, or as near to it as ``between_ns`` allows."""
        start_ns = min(max(window.tca_ns - duration_ns // 2, between_ns[0]), between_ns[1] - duration_ns)
        return booked(request_id, window, start_ns, duration_ns, self.beam)
