"""The online rule: which request gets which window of which antenna. Pure, deterministic, without a clock of its own.

Requests are taken by priority class, in a class by the owner with the least antenna time per weight, then by deadline.
That time counts what an owner had before the plan, so shares are fair over weeks.
A request that has waited takes a class up, but never into class 0. One that finds no free window may move others to
another of their windows, or displace one of a lower class. What cannot be served is reported with the reason.

Source: earliest deadline first within classes (Liu & Layland 1973); weighted fair queueing between owners (Demers,
Keshav & Shenker 1989); augmenting paths for the moves (Kuhn 1955).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sda_platform.tasking.antennas import Antenna, AntennaPass, AntennaTimeline, Booking

NO_WINDOW, NO_ANTENNA_TIME, SENSOR_OUT = "no_window", "no_antenna_time", "sensor_out"
# How many requests one request may make to move, one after the other.
_LONGEST_CHAIN: Final = 4
# How many moves one request may try in all: long windows that many share have more than can be tried.
_MOST_MOVES: Final = 60
_MOST_MOVES_AT_THE_END: Final = 2000


@dataclass(frozen=True)
class Request:
    """One requested observation; smaller ``priority_class`` is more urgent."""

    request_id: str
    norad_id: int
    priority_class: int
    deadline_ns: int
    requested_ns: int = 0
    owner: str = "catalogue"
    value: float = 1.0
    duration_ns: int = 120_000_000_000


@dataclass(frozen=True)
class Rules:
    """How the rule weighs; times in nanoseconds."""

    aging_ns: int = 3_600_000_000_000
    """A request that has waited so long counts as one class more urgent, down to class 1."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Share of antenna time by owner; 1 where none is given."""
    freeze_ns: int = 600_000_000_000
    """Observations that begin within so long of the plan's instant stay as they are, unless class 0 needs the time."""


@dataclass
class ObservationPlan:
    """The outcome: bookings by request, and why the others have none."""

    booked: dict[str, Booking]
    unserved: dict[str, str]

    def value(self, requests: Iterable[Request]) -> float:
        """Sum of the values of the served requests."""
        return sum(each.value for each in requests if each.request_id in self.booked)


def schedule(
    requests: Sequence[Request],
    windows: Mapping[str, Sequence[AntennaPass]],
    antennas: Mapping[str, Antenna],
    now_ns: int,
    rules: Rules | None = None,
    existing: Iterable[Booking] = (),
    used_ns: Mapping[str, float] | None = None,
) -> ObservationPlan:
    """Book a window for each request if one is free; ``windows`` by request, ``antennas`` by sensor.

    Windows of a sensor without an antenna are not used, nor times at which one is closed; a request that has only such
    is reported as `SENSOR_OUT`.
    ``existing`` bookings of known requests that begin within the freeze are kept first. ``used_ns``: the antenna time
    that each owner had before.
    """
    return _Scheduler(requests, windows, antennas, now_ns, rules or Rules(), used_ns or {}).run(existing)


class _Scheduler:
    def __init__(
        self,
        requests: Sequence[Request],
        windows: Mapping[str, Sequence[AntennaPass]],
        antennas: Mapping[str, Antenna],
        now_ns: int,
        rules: Rules,
        used_ns: Mapping[str, float],
    ) -> None:
        self._requests = {each.request_id: each for each in requests}
        self._rules, self._now_ns = rules, now_ns
        self._antennas = antennas
        self._days = {
            source_id: [AntennaTimeline(antenna, beam) for beam in range(antenna.beams)]
            for source_id, antenna in antennas.items()
        }
        offered = {each.request_id: self._in_time(each, windows.get(each.request_id, ())) for each in requests}
        self._windows = {each.request_id: self._in_service(each, offered[each.request_id]) for each in requests}
        self._out = {name for name, found in offered.items() if found and not self._windows[name]}
        self._booked: dict[str, Booking] = {}
        self._frozen: set[Booking] = set()
        self._moves_left = 0
        self._used = {each.owner: used_ns.get(each.owner, 0.0) for each in requests}

    def run(self, existing: Iterable[Booking]) -> ObservationPlan:
        self._keep(existing)
        waiting = [each for each in self._requests.values() if each.request_id not in self._booked]
        for priority_class in sorted({self._class(each) for each in waiting}):
            self._serve([each for each in waiting if self._class(each) == priority_class])
        # What is not booked, such as a displaced request, is tried once more; all share one bound of moves.
        self._moves_left = _MOST_MOVES_AT_THE_END
        for each in sorted(self._requests.values(), key=self._urgency):
            if each.request_id not in self._booked:
                self._place_or_move(each, frozenset(), _LONGEST_CHAIN)
        # A move may have given time that a request of class 0 left to a lower class.
        for each in self._requests.values():
            if each.priority_class == 0 and each.request_id not in self._booked:
                self._displace(each)
        unserved = {
            request_id: self._reason(request_id)
            for request_id in sorted(self._requests)
            if request_id not in self._booked
        }
        return ObservationPlan(self._booked, unserved)

    def _reason(self, request_id: str) -> str:
        """Return why a request has no booking."""
        if self._windows[request_id]:
            return NO_ANTENNA_TIME
        return SENSOR_OUT if request_id in self._out else NO_WINDOW

    def _keep(self, existing: Iterable[Booking]) -> None:
        for booking in sorted(existing, key=lambda each: each.start_ns):
            request = self._requests.get(booking.request_id)
            is_near = booking.end_ns > self._now_ns and booking.start_ns <= self._now_ns + self._rules.freeze_ns
            beams = self._days.get(booking.source_id, ())
            if not (request and is_near and beams) or self._antennas[booking.source_id].is_closed(booking):
                continue
            # The beam that it has, if the antenna still has so many.
            for day in sorted(beams, key=lambda each: each.beam != booking.beam):
                mine = booking._replace(beam=day.beam)
                if not day.conflicts(mine):
                    self._book(request, mine)
                    self._frozen.add(mine)
                    break

    def _class(self, request: Request) -> int:
        """Return the class by which a request is taken: class 0 is for conjunctions at risk red alone."""
        aged = request.priority_class - (self._now_ns - request.requested_ns) // max(self._rules.aging_ns, 1)
        return request.priority_class if request.priority_class == 0 else max(1, min(request.priority_class, aged))

    def _serve(self, requests: Sequence[Request]) -> None:
        """Take requests of one class: the owner with the least share first, of one owner the earliest deadline."""
        queues: dict[str, list[Request]] = {}
        for each in sorted(requests, key=self._urgency, reverse=True):
            queues.setdefault(each.owner, []).append(each)
        while queues:
            owner = min(queues, key=lambda name: (self._used[name] / self._weight(name), name))
            self._place(queues[owner].pop())
            if not queues[owner]:
                del queues[owner]

    def _place(self, request: Request) -> bool:
        """Book a free window, else one that others leave for another of theirs, else one that they must leave."""
        self._moves_left = _MOST_MOVES
        return self._place_or_move(request, frozenset(), _LONGEST_CHAIN) or self._displace(request)

    def _place_or_move(self, request: Request, moved: frozenset[str], chain: int) -> bool:
        for window, between_ns in self._windows[request.request_id]:
            for day in self._days[window.source_id]:
                free = day.free(request.request_id, window, between_ns, request.duration_ns)
                if free is not None:
                    self._book(request, free)
                    return True
        return chain > 0 and self._move_another(request, moved | {request.request_id}, chain - 1)

    def _move_another(self, request: Request, moved: frozenset[str], chain: int) -> bool:
        """Book the time of one other request if that one finds another time."""
        for window, between_ns, day in self._beams(request):
            tried: set[str] = set()
            for booking in day.candidates(request.request_id, window, between_ns, request.duration_ns):
                holders = day.conflicts(booking)
                if len(holders) != 1 or holders[0].request_id in moved | tried:
                    continue
                if self._is_fixed(holders[0], request):
                    continue
                if self._moves_left == 0:
                    return False
                self._moves_left -= 1
                tried.add(holders[0].request_id)
                holder = self._requests[holders[0].request_id]
                self._release(holder)
                self._book(request, booking)
                if self._place_or_move(holder, moved, chain):
                    return True
                self._release(request)
                self._book(holder, holders[0])
        return False

    def _displace(self, request: Request) -> bool:
        """Take the time of requests of lower classes, if all that are in the way are such; the least valuable."""
        best: tuple[float, Booking, list[Booking]] | None = None
        for window, between_ns, day in self._beams(request):
            middle = day.middle(request.request_id, window, between_ns, request.duration_ns)
            # Beside those that stay there is room if there is any; beside the others it may cost less.
            staying = [each for each in day.within(between_ns) if not self._yields(each, request)]
            found = [
                *day.beside(staying, middle, window, between_ns),
                *day.candidates(request.request_id, window, between_ns, request.duration_ns),
            ]
            for booking in found:
                holders = day.conflicts(booking)
                if all(self._yields(each, request) for each in holders):
                    cost = sum(self._requests[each.request_id].value for each in holders)
                    if best is None or cost < best[0]:
                        best = cost, booking, holders
        if best is None:
            return False
        for holder in best[2]:
            self._release(self._requests[holder.request_id])
        self._book(request, best[1])
        return True

    def _beams(self, request: Request) -> Iterator[tuple[AntennaPass, tuple[int, int], AntennaTimeline]]:
        """Yield each usable window of a request with its time, and each beam that may observe in it."""
        for window, between_ns in self._windows[request.request_id]:
            for day in self._days[window.source_id]:
                yield window, between_ns, day

    def _yields(self, booking: Booking, request: Request) -> bool:
        """Return whether ``request`` may take the time of ``booking``: its class is lower, and its time is not
        fixed.
        """
        is_lower = self._class(self._requests[booking.request_id]) > request.priority_class
        return is_lower and not self._is_fixed(booking, request)

    def _is_fixed(self, booking: Booking, request: Request) -> bool:
        """Return whether ``booking`` begins within the freeze, which binds all but class 0."""
        return request.priority_class != 0 and booking in self._frozen

    def _in_time(self, request: Request, windows: Sequence[AntennaPass]) -> list[tuple[AntennaPass, tuple[int, int]]]:
        """Windows that are long enough, the best first, each with the time that is ahead and before the deadline."""
        usable = []
        for window in windows:
            between_ns = window.ahead_ns(self._now_ns, request.deadline_ns)
            if between_ns[1] - between_ns[0] >= request.duration_ns:
                usable.append((window, between_ns))
        return sorted(usable, key=lambda each: (-each[0].quality, each[0].aos_ns, each[0].source_id, each[0].pass_id))

    def _in_service(
        self, request: Request, windows: Iterable[tuple[AntennaPass, tuple[int, int]]]
    ) -> list[tuple[AntennaPass, tuple[int, int]]]:
        """Windows of sensors in service, each with the parts of its time in which the sensor is not closed."""
        return [
            (window, part_ns)
            for window, between_ns in windows
            if window.source_id in self._antennas
            for part_ns in self._antennas[window.source_id].open_parts(*between_ns)
            if part_ns[1] - part_ns[0] >= request.duration_ns
        ]

    def _book(self, request: Request, booking: Booking) -> None:
        self._days[booking.source_id][booking.beam].add(booking)
        self._booked[request.request_id] = booking
        self._used[request.owner] += booking.end_ns - booking.start_ns

    def _release(self, request: Request) -> None:
        booking = self._booked.pop(request.request_id)
        self._days[booking.source_id][booking.beam].remove(booking)
        self._used[request.owner] -= booking.end_ns - booking.start_ns

    def _weight(self, owner: str) -> float:
        return self._rules.weights.get(owner, 1.0)

    def _urgency(self, request: Request) -> tuple[int, int, float, str]:
        return self._class(request), request.deadline_ns, -request.value, request.request_id
