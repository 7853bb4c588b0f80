"""One Spark session in this process for all pipeline tests, and platforms on it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sda_platform.lake.lake import Lake
from sda_platform.spark.engine import python_path
from sda_platform.spark.session import attach
from sda_platform_tests.support.connect_server import connect_server
from sda_platform_tests.support.lived import platform_with_history
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.segments import START_NS

Lake.requires_lineage = False  # many of these tests write without a run


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that every pipeline test shares; its workers are this Python."""
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONPATH=python_path())
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = attach("local", "tests", {"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server, as `sda up` starts it, for clients in processes of their own; it finds no programs."""
    with connect_server(tmp_path_factory.mktemp("engine"), path="/nowhere") as started:
        yield started


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Platform:
    """A platform with a history, to be read only: making it takes five runs of pools."""
    return platform_with_history(tmp_path_factory.mktemp("lived"), spark)


@pytest.fixture
def platform(tmp_path: Path, spark: SparkSession) -> Platform:
    """An empty platform at the start of the data's day."""
    return Platform(tmp_path, spark, START_NS)


@pytest.fixture
def platforms(tmp_path: Path, spark: SparkSession) -> Callable[[str], Platform]:
    """Several empty platforms, by name."""
    return lambda name: Platform(tmp_path / name, spark, START_NS)
