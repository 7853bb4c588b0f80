"""The values for Dagster's Helm chart: as dagster.yaml where both say the same, and as the run launcher reads them.

The nightly workflow renders the chart with them, which checks them against the schema of the chart.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._config import validate_config
from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator
from dagster_k8s import K8sRunLauncher

from sda_platform.runtime.run_queue import PromptRunCoordinator
from sda_platform.settings import require_known_variables
from sda_platform.spark.channel import TOKEN_VARIABLE, host_and_port

ROOT = Path(__file__).parents[3]
VALUES = yaml.safe_load((ROOT / "deploy/helm-values.yaml").read_text())
INSTANCE = yaml.safe_load((ROOT / "dagster.yaml").read_text())
(DEPLOYMENT,) = VALUES["dagster-user-deployments"]["deployments"]


def snake(values: Any) -> Any:
    """``values`` with the keys of dagster.yaml."""
    if isinstance(values, dict):
        return {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key): snake(each) for key, each in values.items()}
    return values


def test_the_code_location_is_this_package_and_its_variables_are_settings() -> None:
    arguments = DEPLOYMENT["dagsterApiGrpcArgs"]
    assert find_spec(arguments[arguments.index("-m") + 1]) is not None
    variables = {each["name"]: each["value"] for each in DEPLOYMENT["env"]}
    require_known_variables(variables)
    assert host_and_port(variables["SDA_SPARK_REMOTE"])[1] == 443
    assert variables["SDA_LAKE"].startswith("s3://")
    assert DEPLOYMENT["volumeMounts"][0]["mountPath"] == variables["SDA_HOME"]


def test_no_password_is_in_the_file() -> None:
    text = (ROOT / "deploy/helm-values.yaml").read_text()
    secret = {"SDA_SUBSCRIBER", "AWS_SECRET_ACCESS_KEY", TOKEN_VARIABLE}
    assert not secret & {each["name"] for each in DEPLOYMENT["env"]}
    assert all(name in text for name in secret), "the comment says where they belong"
    assert "postgresqlPassword" not in VALUES["postgresql"]


def test_the_run_launcher_accepts_its_configuration() -> None:
    chosen = snake(VALUES["runLauncher"]["config"]["k8sRunLauncher"])
    facts = {
        "service_account_name": "sda",
        "instance_config_map": "sda-instance",
        "dagster_home": "/opt/dagster/dagster_home",
        "postgres_password_secret": VALUES["global"]["postgresqlSecretName"],
    }
    schema = K8sRunLauncher.config_type()  # type: ignore[no-untyped-call]  # Dagster's own is not typed
    checked = validate_config(schema, {**facts, **chosen})
    assert checked.success, checked.errors
    refused = validate_config(schema, {**facts, **chosen, "run_k8s_confg": {}})
    assert not refused.success


@pytest.mark.parametrize("section", ["run_retries", "sensors", "schedules", "run_monitoring"])
def test_the_daemon_is_configured_as_on_one_machine(section: str) -> None:
    ours, theirs = INSTANCE[section], snake(VALUES["dagsterDaemon"])[section]
    # A pod takes longer to start than a forked worker.
    differing = {key for key in ours if ours[key] != theirs.get(key)}
    assert differing == ({"start_timeout_seconds"} if section == "run_monitoring" else set())


def test_one_run_holds_a_pool_as_on_one_machine() -> None:
    ours, theirs = INSTANCE["concurrency"], snake(VALUES["concurrency"])
    assert theirs.pop("enabled")
    assert theirs == ours
    coordinator = VALUES["dagsterDaemon"]["runCoordinator"]
    assert coordinator["type"] == QueuedRunCoordinator.__name__  # Dagster's own images lack the class of dagster.yaml
    assert issubclass(PromptRunCoordinator, QueuedRunCoordinator)
    assert coordinator["config"]["queuedRunCoordinator"] == {"dequeueIntervalSeconds": 1}
