"""What the vitals are judged by: plain values, observed at one instant. Judging them reads nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sda_platform.fusion.sources import Silence
from sda_platform.orchestration.backlog import Backlog


@dataclass(frozen=True)
class Finding:
    """Something wrong with ``subject``, in words. ``lasted_s``: for how long, where that is known."""

    subject: str
    text: str
    lasted_s: float | None = None


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

    ``slowest``: the kind of source that holds it back.
    """

    stalled_s: float = 0.0
    slowest: str = ""


@dataclass(frozen=True)
class OrphanFacts:
    """Landed files of one zone that no segment accounts for. ``is_ours``: a process of the platform left them."""

    zone: str
    text: str
    is_ours: bool
    oldest_s: float


@dataclass(frozen=True)
class DeliveryFacts:
    """Alerts that the subscriber lacks: mission seconds since the oldest was committed; the last failure to deliver.

    ``refused``: by alert, the newest entry that the subscriber refused for its content. ``disagreement``: how what it
    holds differs from what was delivered, where nothing waits.
    """

    waiting_s: float = 0.0
    refusal: str = ""
    refused: Sequence[Finding] = ()
    disagreement: str = ""


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
class FailingJob:
    """A job whose newest ``runs`` all failed, the last for ``reason``; ``since_s`` wall seconds ago the first."""

    job: str
    runs: int
    reason: str
    is_at_subscriber: bool = False
    lasted_s: float | None = None


@dataclass(frozen=True)
class ProcessFacts:
    """A process that `sda up` supervises: whether it is alive, how often it was restarted, and whether too often."""

    name: str
    is_alive: bool
    restarts: int
    is_exhausted: bool = False

    @property
    def is_well(self) -> bool:
        """Whether it runs, and does not end again and again."""
        return self.is_alive and not self.is_exhausted


@dataclass(frozen=True)
class DiskFacts:
    """A file system that the platform writes to: bytes free for its user and in total."""

    path: str
    free: int
    total: int


@dataclass(frozen=True)
class BackupFacts:
    """The newest complete backup in ``place``: wall seconds since it was made, None: there is none; how old it may
    be."""

    place: str
    age_s: float | None
    most_s: float


@dataclass(frozen=True)
class Facts:
    """The platform at ``now_ns`` (mission time). None: cannot be known here, because no platform runs in the home.
    ``backup`` is None where no backups are made by the platform.

    ``watchdog_silent_s``: wall seconds since the watchdog evaluated last, where another process looks.

    ``unconsumed_s``: by table on the way to alerts, mission seconds since the oldest upstream commit that it has not
    consumed. ``unalerted_cdms``: received messages at the level of an alert that no alert of ours matches.
    ``unlisted``: sensors that reported lately and that the list of ground sensors lacks.
    ``edit_faults``: edits of the catalogue that claim what is not so.
    ``replica_problems``: what is wrong with the servers of the station state.
    ``unnotified``: channels to people that take no messages, and rules that cannot be used.
    ``refused_rows``: by table, computed rows that commits left out within the last hour.
    ``nothing_starts``: why no run is launched, empty where runs are.
    ``repeated``: ids and jobs of the recent runs that were not the first attempt at their work.
    """

    now_ns: int
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    silences: Sequence[Silence] = ()
    unlisted: Sequence[Finding] = ()
    watermark: WatermarkFacts = WatermarkFacts()
    unconsumed_s: Mapping[str, float] = field(default_factory=dict)
    stale_catalogue: Finding | None = None
    stale_screening: Finding | None = None
    unalerted_cdms: Sequence[Finding] = ()
    edit_faults: Sequence[Finding] = ()
    orphans: Sequence[OrphanFacts] = ()
    growing_letters: Sequence[Finding] = ()
    refused_rows: Sequence[Finding] = ()
    red_tables: Sequence[Finding] = ()
    delivery: DeliveryFacts = DeliveryFacts()
    unnotified: Sequence[Finding] = ()
    disks: Sequence[DiskFacts] = ()
    backup: BackupFacts | None = None
    replica_problems: Sequence[str] = ()
    collectors: CollectorFacts | None = None
    engine_answers: bool | None = None
    daemon: DaemonFacts | None = None
    processes: Sequence[ProcessFacts] | None = None
    watchdog_silent_s: float | None = None
    runs: Sequence[RunFacts] | None = None
    failing: Sequence[FailingJob] | None = None
    nothing_starts: str = ""
    repeated: Sequence[tuple[str, str]] = ()
