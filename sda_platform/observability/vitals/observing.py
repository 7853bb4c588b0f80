"""Observing the platform of some settings: its facts, from the lake, the machine and Dagster's records."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import dagster as dg
from deltalake.exceptions import DeltaError

from sda_platform.clock import MissionClock
from sda_platform.delivery.breaker import guarded
from sda_platform.delivery.configured import subscriber_of
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.formats.closures import usable_closures
from sda_platform.fusion.resource import FusionResource
from sda_platform.ground.replica_check import read_problems
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake, without_session
from sda_platform.notification.late_channels import notification_problems
from sda_platform.observability.vitals import process_facts
from sda_platform.observability.vitals.delivery_facts import delivery_facts
from sda_platform.observability.vitals.facts import DeliveryFacts, Facts, Finding, ProcessFacts
from sda_platform.observability.vitals.lake_facts import lake_facts
from sda_platform.orchestration.launch_breaker import why_nothing_starts
from sda_platform.settings import Settings

_REPLICA_TIMEOUT_S = 2.0
_MOST_REPLICA_LAG_S = 20.0  # of an evaluation and the next: what lasts shorter needs no person


def observe(
    settings: Settings,
    instance: dg.DagsterInstance | None = None,
    *,
    engine_answers: bool | None = None,
    processes: Callable[[], list[ProcessFacts]] | None = None,
    has_daemon: bool = True,
    watchdog_silent_s: float | None = None,
    wall_s: float | None = None,
) -> Facts:
    """Return the facts now. Without ``instance`` there are no facts about the daemon and runs.

    Only the watchdog has ``engine_answers`` and ``processes``. ``has_daemon`` is false if the daemon itself calls: its
    heartbeat is then no information.
    """
    now_s = time.time() if wall_s is None else wall_s
    lake = Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)
    found = lake_facts(
        lake,
        settings.landing_uri,
        settings.growth,
        orphan_grace_s=settings.intake.orphan_grace_s,
        wall_s=now_s,
        rules=settings.vitals,
        sensors=FusionResource(**settings.fusion.model_dump()),
        closures=usable_closures(settings.scheduling.closure_file),
    )
    try:
        delivery = delivery_facts(lake, instance, found["now_ns"], partial(_subscriber, settings))
    except (LakeError, DeltaError, OSError) as error:
        delivery = DeliveryFacts()
        found["red_tables"].append(Finding("deliveries", f"deliveries cannot be read: {error}"))
    return Facts(
        **found,
        delivery=delivery,
        unnotified=[Finding(*each) for each in notification_problems(settings, now_s)],
        disks=process_facts.disk_facts([str(settings.home.absolute()), settings.lake_uri, settings.landing_uri]),
        backup=process_facts.backup_facts(settings.retention, now_s),
        replica_problems=read_problems(
            settings.station_state, timeout_s=_REPLICA_TIMEOUT_S, most_lag_s=_MOST_REPLICA_LAG_S
        ),
        collectors=process_facts.collector_facts(
            settings.home, is_expected=processes is not None and settings.collect_path.exists()
        ),
        engine_answers=engine_answers,
        daemon=process_facts.daemon_facts(instance, now_s) if instance and has_daemon else None,
        processes=processes() if processes else None,
        watchdog_silent_s=watchdog_silent_s,
        runs=process_facts.run_facts(instance, now_s) if instance else None,
        failing=process_facts.failing_jobs(instance, now_s) if instance else None,
        nothing_starts=why_nothing_starts(Path(instance.root_directory)) if instance else "",
        repeated=process_facts.repeated_runs(instance, now_s) if instance else (),
    )


def _subscriber(settings: Settings) -> Subscriber:
    return guarded(subscriber_of(settings), settings.home)
