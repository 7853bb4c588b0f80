"""What the vitals are judged by: plain values, observed at one instant. Judging them reads nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sda_platform.fusion.sources import Silence
from sda_platform.orchestration.backlog import Backlog


@dataclass(frozen=True)
class CollectorFacts:
    """The collectors of this home. ``answer``: why they do not answer, None where they do.

    ``problems``: what their own report lists, such as failed sources.
    """

    answer: str | None = None
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class WatermarkFacts:
    """The fusion's watermark. ``stalled_s``: mission seconds for which new commits have not advanced it.

    ``unread_s``: mission seconds since the oldest commit of observations that the fusion has not consumed.
    ``slowest``: the kind of source that holds it back.
    """

    stalled_s: float = 0.0
    unread_s: float = 0.0
    slowest: str = ""


@dataclass(frozen=True)
class DeliveryFacts:
    """Alerts that the subscriber lacks: mission seconds since the oldest was committed; the last failure to deliver."""

    waiting_s: float = 0.0
    refusal: str = ""


@dataclass(frozen=True)
class DaemonFacts:
    """Dagster's daemon: wall seconds since its last heartbeat; None: none was ever written.

    ``unreadable``: why Dagster's records cannot be read, empty where they can.
    """

    silent_s: float | None
    unreadable: str = ""


@dataclass(frozen=True)
class RunFacts:
    """A run that has not ended: ``age_s`` wall seconds in its state, which is `queued` or `started`."""

    run_id: str
    job: str
    pool: str
    state: str
    age_s: float


@dataclass(frozen=True)
class ProcessFacts:
    """A process that `sda up` supervises: whether it is alive, how often it was restarted, and whether too often."""

    name: str
    is_alive: bool
    restarts: int
    is_exhausted: bool = False


@dataclass(frozen=True)
class DiskFacts:
    """A file system that the platform writes to: bytes free for its user and in total."""

    path: str
    free: int
    total: int


@dataclass(frozen=True)
class Facts:
    """The platform at ``now_ns`` (mission time). None: cannot be known here, because no platform runs in the home.

    ``repeated``: ids and jobs of the recent runs that were not the first attempt at their batch.
    """

    now_ns: int
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    silences: Sequence[Silence] = ()
    watermark: WatermarkFacts = WatermarkFacts()
    orphans: Sequence[str] = ()
    growing_letters: Sequence[str] = ()
    red_tables: Sequence[str] = ()
    delivery: DeliveryFacts = DeliveryFacts()
    disks: Sequence[DiskFacts] = ()
    collectors: CollectorFacts | None = None
    engine_answers: bool | None = None
    daemon: DaemonFacts | None = None
    processes: Sequence[ProcessFacts] | None = None
    runs: Sequence[RunFacts] | None = None
    repeated: Sequence[tuple[str, str]] = ()
