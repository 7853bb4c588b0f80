"""What became of the vitals: since when each fault lasts, and the notices about it, in the platform's home.

`<home>/vitals.json` is written, synced, before a notice is sent, and again when it was received. A process that is
killed in between sends the notice again under the same id, so a receiver that keeps ids has each exactly once.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from upath import UPath

from sda_platform.lake import durable
from sda_platform.observability.vitals.faults import Fault, Reading, Side, VitalState
from sda_platform.observability.vitals.notices import REPEAT_S, FaultAge, Lasting, Notice

_FILE, _LOCK, SCHEMA_VERSION = "vitals.json", "vitals.lock", 2
# Bounds the file while a webhook is away; older notices are dropped first.
MAX_PENDING = 200
_HOUR_S, _HOURS_KEPT = 3600, 48
_OURS = (Side.PLATFORM, Side.MACHINE)


@dataclass(frozen=True)
class VitalHistory:
    """The newest evaluation of every vital and the notices that no receiver has yet. Evaluated at wall ``at_s``.

    ``watched_s``: when the watchdog evaluated last; 0: never, because none runs here.

    ``rounds``: by wall hour (Unix seconds), how many evaluations were good, and how many there were. One is good if no
    fault was at the side of the platform or its machine.
    """

    at_s: float = 0.0
    vitals: Mapping[str, Lasting] = field(default_factory=dict)
    pending: Sequence[Notice] = ()
    rounds: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    watched_s: float = 0.0

    @property
    def red(self) -> list[Lasting]:
        """Return the vitals that are red."""
        return [each for each in self.vitals.values() if each.reading.state is VitalState.RED]

    def after(self, readings: Sequence[Reading], at_s: float, repeat_s: float = REPEAT_S) -> "VitalHistory":
        """The history once ``readings`` were made at ``at_s``, with the notices of faults that began, last or are over.

        A fault that lasts is notified again after ``repeat_s``.
        """
        vitals, pending = {}, list(self.pending)
        for reading in readings:
            green = Lasting(Reading(reading.vital, VitalState.GREEN), at_s)
            vitals[reading.vital], notices = self.vitals.get(reading.vital, green).followed_by(reading, at_s, repeat_s)
            pending += notices
        rounds = self._rounds_with(readings, at_s)
        return VitalHistory(at_s, vitals, tuple(pending[-MAX_PENDING:]), rounds, self.watched_s)

    def _rounds_with(self, readings: Sequence[Reading], at_s: float) -> Mapping[int, tuple[int, int]]:
        hour = int(at_s // _HOUR_S * _HOUR_S)
        good, total = self.rounds.get(hour, (0, 0))
        is_good = not any(fault.side in _OURS for each in readings for fault in each.faults)
        hours = {**self.rounds, hour: (good + is_good, total + 1)}
        return {each: hours[each] for each in sorted(hours)[-_HOURS_KEPT:]}

    def without(self, received: Notice) -> "VitalHistory":
        """The history once ``received`` has arrived."""
        return replace(self, pending=tuple(each for each in self.pending if each.id != received.id))


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Exclude other processes that evaluate the vitals of ``home``.

    Where the file of the lock cannot be opened, as on a disk that became read-only, no process is excluded: none can
    store a history there.
    """
    with ExitStack() as held:
        with suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context((home / _LOCK).open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def load(home: Path) -> VitalHistory:
    """Return the history of ``home``; an empty one where none was stored, or not whole."""
    try:
        content = json.loads((home / _FILE).read_text())
        if content["schema_version"] != SCHEMA_VERSION:
            return VitalHistory()
        return VitalHistory(
            content["at_s"],
            {name: _lasting(each) for name, each in content["vitals"].items()},
            tuple(Notice(**each) for each in content["pending"]),
            {int(hour): (good, total) for hour, (good, total) in content["rounds"].items()},
            content["watched_s"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return VitalHistory()


def faults_now(home: Path) -> list[str]:
    """Describe the red vitals of the platform that runs in ``home``, one a line."""
    return [str(each.reading) for each in load(home).red]


def store(home: Path, history: VitalHistory) -> None:
    """Make ``history`` durable."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(history)}, indent=1)
    durable.write(UPath(home / _FILE), (text + "\n").encode())


def _lasting(content: Mapping[str, Any]) -> Lasting:
    reading = content["reading"]
    typed = {"state": VitalState(reading["state"]), "faults": tuple(map(Fault.of, reading["faults"]))}
    ages = {subject: FaultAge(**age) for subject, age in content["ages"].items()}
    return Lasting(Reading(**{**reading, **typed}), content["since_s"], ages)
