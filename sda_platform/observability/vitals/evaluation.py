"""The vitals: each condition that must be reported to a person, judged from facts alone. This is their one declaration.

`sda status`, the asset `vitals` in the UI, the notices, `/health` and the page of runbooks follow from it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sda_platform.observability.vitals import judges
from sda_platform.observability.vitals.facts import Facts
from sda_platform.observability.vitals.faults import Reading, VitalState, red
from sda_platform.observability.vitals.judges import Judge
from sda_platform.setting_sections import VitalsSettings

# A link from the page of runbooks, docs/reference/vitals.md.
_LINK: Final = re.compile(r"\[([^]]+)\]\(\.\./([^)]+)\)")


@dataclass(frozen=True)
class Vital:
    """A condition. ``meaning`` is what holds while it is green; ``red_when`` and ``remedy`` are its runbook.

    ``many`` is what several faults of it are called.
    """

    name: str
    many: str
    meaning: str
    red_when: str
    remedy: str
    judge: Judge

    def reading(self, facts: Facts, rules: VitalsSettings) -> Reading:
        """Evaluate the vital by ``facts``."""
        found = self.judge(facts, rules)
        if found is None:
            return Reading(self.name, VitalState.UNKNOWN)
        return red(self.name, list(found), self.many)


def evaluate(facts: Facts, rules: VitalsSettings) -> tuple[Reading, ...]:
    """Return the reading of every vital, in the order of `VITALS`. Pure."""
    return tuple(vital.reading(facts, rules) for vital in VITALS)


VITALS: Sequence[Vital] = (
    Vital(
        "sources_report",
        "sources silent",
        "Every source has reported within the time that its feed allows.",
        "a source is silent for longer than its feed allows; a kind never reported; all radars and links are silent "
        "for `SDA_SILENCE_OF_ALL_S` (40 s)",
        "Call the operator of the sensor. If it is silent for a reason, `sda sensor close` says so. `sda collector "
        "status` shows what the collector receives. What has arrived counts, whether it is consumed or not. While no "
        "collector answers, no source is judged.",
        judges.sources,
    ),
    Vital(
        "sensors_are_listed",
        "sensors that are not listed",
        "Every ground sensor that reports is in the list of sensors.",
        "a radar or telescope that is not in the list of sensors reported within a day",
        "Add it to the file that the notice names: [add a sensor](../how-to/add-a-sensor.md).",
        judges.listed,
    ),
    Vital(
        "collectors_answer",
        "problems of the collector",
        "The collectors answer, and every source of theirs runs.",
        "the collector does not answer; its report names a source or a sealer",
        "`sda collector status` names the source; the reason is in `logs/collector.log`.",
        judges.collectors,
    ),
    Vital(
        "backlog_is_taken",
        "zones with a backlog",
        "No segment has been pending for too long.",
        "a segment is pending longer than `SDA_BACKLOG_MAX_AGE_S` (300 s)",
        "Is a run of the pool blocked (*Runs*)? Then cancel it. More may arrive than is processed.",
        judges.backlog,
    ),
    Vital(
        "watermark_advances",
        "kinds that hold the watermark back",
        "The fusion's watermark advances while observations come.",
        "commits of the fusion do not advance its watermark for `SDA_WATERMARK_STALL_S` (40 s of mission time)",
        "The slowest kind is named: [event time](../explanation/fusion.md#event-time).",
        judges.watermark,
    ),
    Vital(
        "commits_are_consumed",
        "tables that stand still",
        "Every table on the way to alerts has consumed what is before it.",
        "a commit waits for its reader for `SDA_WATERMARK_STALL_S` (40 s of mission time)",
        "`sda run list --failed` has the reason of the runs that failed; red tables before it are in `sda status`.",
        judges.consumed,
    ),
    Vital(
        "catalogue_is_fresh",
        "stale catalogues",
        "Element sets arrive.",
        "the newest element set was received three days ago",
        "Is the source of element sets configured and reachable (`sda collector status`)? Alerts rest on old sets "
        "until then.",
        judges.catalogue,
    ),
    Vital(
        "screening_is_fresh",
        "stale screenings",
        "The whole catalogue was screened recently.",
        "the last full screening began 12 hours ago; element sets came an hour ago, and none was ever made",
        "Find the reason on the pages of the runs of `catalog_to_alerts`. Conjunctions of newer sets are unknown until "
        "one succeeds.",
        judges.screening,
    ),
    Vital(
        "received_cdms_are_alerts",
        "conjunctions that only others state",
        "No received message states a conjunction at the level of an alert that our alert does not reach.",
        "the newest CDM of an organisation states a Pc of yellow or red, and our alert is missing or lower; its TCA is "
        "ahead",
        "Inform the operator of the satellite. Then compare the message with the states of the platform: "
        "`sda alert show`, or screen the pair.",
        judges.unalerted_cdms,
    ),
    Vital(
        "edits_are_genuine",
        "edits that claim what is not so",
        "Every edit of the catalogue is signed by its site, and counts only edits that exist, each once.",
        "an edit counts edits that have not arrived; a site made two edits under one count; an edit of the last day is "
        "not signed by its site, where sites have keys",
        "Ask the site that it names. Land its other edits, add or replace its key in `SDA_SITES`, or decide with "
        "`sda catalog resolve`: [edit at several sites](../how-to/serve-the-catalogue.md#edit-the-catalogue-at-several-"
        "sites).",
        judges.edits,
    ),
    Vital(
        "no_orphans_wait",
        "zones with lone files",
        "Every landed file belongs to a segment that a table reads.",
        "a landed file belongs to no segment; it belongs to a zone that no table reads",
        "What a killed process of ours left is removed by the next run. Else: "
        "[bad input](../how-to/land-files.md#what-happens-to-bad-input).",
        judges.orphans,
    ),
    Vital(
        "dead_letters_do_not_grow",
        "kinds of dead letter that grow",
        "No kind of dead letter comes much more often than usual.",
        "a kind of dead letter comes ten times as often as usual for five minutes",
        "The table `dead_letters` has the reasons and the source. Mend it, then `sda lake reprocess` returns them: "
        "[dead letters](../how-to/dead-letters.md).",
        judges.dead_letters,
    ),
    Vital(
        "rows_keep_contract",
        "tables that computed broken rows",
        "Every row that the platform computes keeps the contract of its table.",
        "a computed row broke the contract within the last hour, and was left out of its commit",
        "The row and its values are a [dead letter](../how-to/dead-letters.md) of kind `broken_contract`. Its inputs "
        "are sound, so report it as a defect. An object without this row is judged by its older state.",
        judges.refused_rows,
    ),
    Vital(
        "tables_are_sound",
        "red tables",
        "No table has an open finding: each is repaired or acknowledged.",
        "a table has an open finding (not repaired, not acknowledged); a table cannot be read",
        "`sda status` names each finding with its command: [red tables](../how-to/operate.md#red-tables).",
        judges.tables,
    ),
    Vital(
        "subscriber_is_level",
        "alerts that the subscriber lacks",
        "The subscriber has every alert.",
        "an alert has waited for `SDA_SUBSCRIBER_LAG_S` (40 s); the subscriber refused an alert for its "
        "content, and its TCA is ahead; the subscriber lacks an alert that was delivered; it holds one that was not "
        "delivered, or that differs",
        "What it lacks is sent again once it answers: [subscribers](../how-to/operate.md#subscribers). A refused alert "
        "is offered with each delivery. Inform its operator by other means meanwhile.",
        judges.subscriber,
    ),
    Vital(
        "people_are_notified",
        "channels that take no messages",
        "Every channel takes the messages to people.",
        "a message has waited for its channel for `SDA_NOTIFY_LAG_S` (120 s); the rules of notification cannot be used",
        "`sda channel test` shows what each service answers. The other channels report it, too. What waits is sent "
        "when the service takes it: [channels](../how-to/notify-people.md).",
        judges.notified,
    ),
    Vital(
        "engine_answers",
        "engines that do not answer",
        "The Spark engine executes statements.",
        "the local engine executes no statement",
        "The supervisor restarts it. The reason is in `logs/engine.log`.",
        judges.engine,
    ),
    Vital(
        "daemon_beats",
        "daemons that do not answer",
        "Dagster's daemon writes its heartbeat, so that runs start.",
        "Dagster's daemon has written no heartbeat for `SDA_HEARTBEAT_MAX_S` (75 s); its records cannot be read",
        "The supervisor restarts it. The reason is in `logs/daemon.log`.",
        judges.daemon,
    ),
    Vital(
        "processes_run",
        "processes that do not run",
        "Every process that the platform supervises runs.",
        "a supervised process does not run; it ends again and again; the watchdog evaluates nothing",
        "The supervisor restarts it, ever later if it ends often. The reason is in its log, in `logs/`.",
        judges.processes,
    ),
    Vital(
        "pools_move",
        "pools that stand still",
        "No run has been under way or queued for too long.",
        "a run is under way for `SDA_RUN_MAX_S` (30 min); a run is queued for `SDA_QUEUE_MAX_S` (10 min)",
        "Cancel the run in the UI.",
        judges.pools,
    ),
    Vital(
        "runs_succeed",
        "jobs that fail",
        "No job fails again and again.",
        "the last `SDA_FAILED_RUNS_MAX` (3) runs of a job failed, and not at the subscriber; three runs in a row could "
        "not be started (`launches`), so that runs wait in the queue",
        "Mend what the reason names, such as a list; the next run does the work that waits. The reason is in "
        "the notice, on the page of the run and in `sda run list --failed`. Of `launches`: free memory, processes or "
        "open files.",
        judges.runs,
    ),
    Vital(
        "disk_has_space",
        "disks without space",
        "Every file system that the platform writes to has free space.",
        "less than `SDA_DISK_MIN_FREE` (5 %) of a disk is free",
        "Free space. Nothing acknowledged is lost meanwhile.",
        judges.disk,
    ),
    Vital(
        "backups_are_made",
        "backups that are missing",
        "The directory of backups has a recent one. Not judged without `SDA_BACKUP`.",
        "the newest complete backup is older than `SDA_BACKUP_MAX_AGE_S` (26 h), with `SDA_BACKUP` set; there is none",
        "Is the disk mounted, with space? The page of the last run of the job `backup` has the reason. "
        "`sda backup DIRECTORY` makes one now, and the first one.",
        judges.backups,
    ),
    Vital(
        "replicas_follow",
        "replicas of the station state",
        "All servers of the station state answer, one leads, and its followers follow. Not judged without "
        "`SDA_STATION_STATE`.",
        "a server of the station state does not answer; none leads, or two do; a follower is 20 s late",
        "`sda ground state replicas` lists them. A lost leader is replaced by hand: "
        "[promote a follower](../how-to/replicate-station-state.md#promote-a-follower).",
        judges.replicas,
    ),
)
"""Every vital, in the order in which they are shown: along the way of the data, then the machinery."""
_ADVICE: Final = {vital.name: _LINK.sub(r"\1 (docs/\2)", vital.remedy) for vital in VITALS}


def advice(vital: str) -> str:
    """Return what to do while ``vital`` is red, as text that names pages; empty for one of another release."""
    return _ADVICE.get(vital, "")
