"""The definitions: they load, quietly and without an engine, and the graph is the one that was agreed.

The graph is kept in ``data/asset_graph.json``. To accept a change of it, run

    python -m sda_platform_tests.unit.test_definitions

and commit the file; its diff is what a reviewer looks at.
"""

import difflib
import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._core.remote_representation.external_data import RepositorySnap
from pyspark.sql import types as T

from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.definitions import build_defs, defs
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS, ORBIT_DETERMINATION
from sda_platform.orchestration.resources import LandingResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.registry import TABLES
from sda_platform.setting_sections import IntakeSettings
from sda_platform.settings import Settings
from sda_platform_tests.support.run_records import recorded_run
from sda_platform_tests.support.segments import land

SNAPSHOT = Path(__file__).parents[1] / "data" / "asset_graph.json"
# Numbers that count, number, rank or identify, and pure ratios: they have no unit. Nor has what is named a count.
UNITLESS = {
    COMMIT_SEQUENCE, "record_number", "sequence", "value", "schema_version", "norad_id", "norad_id_1", "norad_id_2",
    "element_set_number", "revolution_at_epoch", "source_priority", "eccentricity", "chi_square",
    "degrees_of_freedom", "degrees_of_freedom_1", "degrees_of_freedom_2",
    "mahalanobis_distance", "collision_probability",
    "recomputed_probability",
    "maximum_probability", "probability_2d", "probability_standard_error", "maximum_sigma_scale",
    "kept_unexplained",
    "streak", "windows", "innovation", "innovation_size", "unexplained_windows", "readings", "anchors",
    "residual_rms", "stated_probability", "source_commit_sequence", "element_sets", "lamport",
    "priority_class", "satellite_id", "frame_sequence", "station_id", "information_gain", "expected_probability",
    "observations", "expected_gain", "realised_gain", "beam",
    "radial_error_scale", "in_track_error_scale", "cross_track_error_scale", "history_differences", "times_usual",
    "held_back_windows", "held_back_rms", "published_held_back_rms",
    "revision", "token", "number", "priority", "executions",
    "generation", "alive_views", "other_views", "epoch",
}  # fmt: skip


def graph() -> dict[str, Any]:
    """What the snapshot holds: every asset with its place and policy, the checks, jobs, sensors and schedules."""
    repository = defs.get_repository_def()
    nodes = repository.asset_graph.asset_nodes
    return {
        "assets": {
            node.key.to_user_string(): {
                "deps": sorted(key.to_user_string() for key in node.parent_keys),
                "group": node.group_name,
                "kinds": sorted(node.kinds),
                "owners": sorted(node.owners),
                "pool": None if node.is_external else node.assets_def.op.pool,
                "is_external": node.is_external,
            }
            for node in sorted(nodes, key=lambda n: n.key.to_user_string())
        },
        "checks": {
            f"{key.asset_key.to_user_string()}:{key.name}": "blocking" if spec.blocking else "warns"
            for key, spec in sorted(_check_specs(repository).items(), key=lambda item: str(item[0]))
        },
        "jobs": {
            job.name: sorted(key.to_user_string() for key in job.asset_layer.executable_asset_keys)
            for job in repository.get_all_jobs()
            if job.name in ("observations_to_alerts", "catalog_to_alerts", "alerts_to_subscriber")
        },
        "sensors": {sensor.name: [target.job_name for target in sensor.targets] for sensor in repository.sensor_defs},
        "schedules": {
            schedule.name: [schedule.job_name, str(schedule.cron_schedule)] for schedule in repository.schedule_defs
        },
    }


def _check_specs(repository: dg.RepositoryDefinition) -> dict[dg.AssetCheckKey, dg.AssetCheckSpec]:
    definitions = repository.asset_checks_defs_by_key.values()
    return {spec.key: spec for definition in definitions for spec in definition.check_specs}


def rendered(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def test_the_definitions_are_loadable() -> None:
    dg.Definitions.validate_loadable(defs)


def test_the_asset_graph_is_the_one_that_was_agreed() -> None:
    expected, found = SNAPSHOT.read_text().splitlines(), rendered(graph()).splitlines()
    difference = "\n".join(difflib.unified_diff(expected, found, "agreed", "as defined", lineterm="", n=2))
    if difference:
        pytest.fail(f"the asset graph changed; if that is meant, see the top of {Path(__file__).name}:\n{difference}")


def test_the_spark_session_is_a_resource_of_its_own_which_the_lake_uses() -> None:
    """So it is found under Deployment, Resources."""
    shown = {each.name: each for each in RepositorySnap.from_def(defs.get_repository_def()).resources or ()}
    assert shown["spark"].is_top_level and shown["spark"].parent_resources == {"lake": "spark"}


def test_resources_can_be_replaced_for_a_test() -> None:
    landing = LandingResource(root="elsewhere")
    resources = build_defs({"landing": landing}).resources or {}
    assert resources["landing"] is landing
    assert set(resources) == set(defs.resources or {})


def test_clocks_are_reported_also_where_no_elements_of_our_own_are_wanted(tmp_path: Path) -> None:
    defined = build_defs(settings=Settings(home=tmp_path, own_elements=False))
    schedule = defined.resolve_schedule_def("orbit_determination_refresh")
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
        dg.build_schedule_context(instance, resources=opened(defined)) as context,
    ):
        (request,) = schedule.evaluate_tick(context).run_requests or []
    made = {key.to_user_string() for key in request.asset_selection or []}
    assert made == {"time_tag_biases", "reports/fusion", "reports/conjunctions"}
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING


def opened(defined: dg.Definitions) -> dict[str, Any]:
    """What the schedule of own elements uses."""
    resources = defined.resources or {}
    return {name: resources[name] for name in ("lake", "landing")}


def test_our_own_elements_are_queued_once_and_after_what_they_found_before(tmp_path: Path) -> None:
    defined = build_defs(settings=Settings(home=tmp_path))
    schedule, resources = defined.resolve_schedule_def("orbit_determination_refresh"), opened(defined)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        def tick() -> ScheduleExecutionData:
            with dg.build_schedule_context(instance, resources=resources) as context:
                return schedule.evaluate_tick(context)

        recorded_run(instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.STARTED)
        assert tick().run_requests, "it takes its turn in the pool, after the run that is under way"
        own = recorded_run(instance, ORBIT_DETERMINATION, dg.DagsterRunStatus.QUEUED)
        told = tick()
        assert not told.run_requests and own[:8] in (told.skip_message or "")
        instance.delete_run(own)
        land(LandingZone(str(tmp_path / "landing"), ELEMENTS_FEED), "published.csv", b"NORAD_CAT_ID\n")
        told = tick()
        assert not told.run_requests, "the catalogue takes what was published before"
        assert "published.csv" in (told.skip_message or "")
        resources["landing"] = LandingResource(
            root=str(tmp_path / "landing"), **IntakeSettings(backlog_max_age_s=0.0).model_dump()
        )
        assert tick().run_requests, "what waits for too long, because nobody takes it, holds up nothing"


def test_every_asset_has_what_a_person_needs() -> None:
    for spec in defs.resolve_all_asset_specs():
        name = spec.key.to_user_string()
        assert len(spec.description or "") > 30, name
        assert spec.owners, name
        assert spec.kinds, name
        assert spec.tags["stage"] == spec.group_name, name


def test_every_table_is_an_asset_with_its_schema_freshness_and_three_checks() -> None:
    specs = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    checks = {(key.asset_key.to_user_string(), key.name) for key in _check_specs(defs.get_repository_def())}
    assert {table.name for table in TABLES} == {name for name, spec in specs.items() if "deltalake" in spec.kinds}
    for table in TABLES:
        schema = specs[table.name].metadata["dagster/column_schema"]
        assert [column.name for column in schema.columns] == [column.name for column in table.columns]
        assert specs[table.name].freshness_policy is not None
        (written,) = specs[table.name].metadata["dagster/code_references"].code_references
        assert f"def {table.name}(" in "".join(
            Path(written.file_path).read_text().splitlines(True)[written.line_number :]
        )
        assert {
            (table.name, check) for check in ("exactly_once", "contract", "log_is_sound", "data_is_fresh")
        } <= checks


def test_checks_that_block_nothing_follow_the_alerts() -> None:
    on_the_way = {table.name for job in (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS) for table in tables_of(job)}
    before = [
        checks.op.name
        for checks in defs.asset_checks or ()
        if isinstance(checks, dg.AssetChecksDefinition)
        and not any(spec.blocking for spec in checks.check_specs)
        and on_the_way & {spec.asset_key.to_user_string() for spec in checks.check_specs}
        and checks.op.tags != AFTER_ALERTS
    ]
    assert before == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_says_what_it_is(table: Table) -> None:
    assert [c.name for c in table.columns if not c.description.rstrip().endswith((".", ")"))] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_physical_number_has_a_unit_and_says_it_in_its_name(table: Table) -> None:
    numbers = [c for c in table.columns if isinstance(c.data_type, T.NumericType)]
    assert [c.name for c in numbers if (c.unit is None) != (c.name in UNITLESS or c.name.endswith("_count"))] == []
    assert [c.name for c in numbers if c.unit and not _names_its_unit(c)] == []


def _names_its_unit(column: Column) -> bool:
    unit = (column.unit or "").replace("1/earth radius", "per_earth_radius").replace("²", "2").replace("³", "3")
    return (
        column.name.removesuffix("_1")
        .removesuffix("_2")
        .endswith((f"_{unit}", f"_{unit.replace('/', '_')}", f"_{unit.replace('/', '_per_')}"))
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_column_lineage_names_columns_that_exist(table: Table) -> None:
    columns = {t.name: {c.name for c in t.columns} for t in TABLES}
    assert set(table.lineage) <= columns[table.name]
    wrong = [(source, c) for sources in table.lineage.values() for source, c in sources if c not in columns[source]]
    assert wrong == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_tables_key_and_time_are_columns_of_it(table: Table) -> None:
    assert {*table.key, table.time_column, COMMIT_SEQUENCE} <= {c.name for c in table.columns}


if __name__ == "__main__":
    SNAPSHOT.write_text(rendered(graph()))
