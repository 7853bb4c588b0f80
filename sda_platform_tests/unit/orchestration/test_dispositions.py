"""Whatever can go wrong has one disposition, and runs that fail act by it (DP5-F7, F13, I17)."""

import ast
import errno
import importlib
import pkgutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkRuntimeError
from pyspark.errors.exceptions.connect import SparkConnectException, SparkConnectGrpcException

import sda_platform
from sda_platform.formats.errors import ERROR_KINDS
from sda_platform.lake.errors import CommitConflict, EngineUnavailable, InvariantError, LakeError, SchemaMismatch
from sda_platform.orchestration.dispositions import _OF_EXCEPTION, RECORD_KINDS, Disposition, disposition_of
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG, with_retries
from sda_platform.resilience import pause_s

SOURCES = Path(sda_platform.__file__).parent

_S3A = "org.apache.hadoop.fs.s3a"


def of_condition(condition: str, text: str = "x") -> Exception:
    return SparkConnectGrpcException(message=text, errorClass=condition, grpc_status_code=grpc.StatusCode.INTERNAL)


def spark_lost(code: grpc.StatusCode, text: str = "Socket closed") -> Exception:
    return SparkConnectGrpcException(message=text, grpc_status_code=code)


def restarted_meanwhile() -> Exception:
    """What PySpark raises when it attaches again to a statement of which the engine, restarted, knows nothing."""
    facts = {"error_type": "INVALID_HANDLE.SESSION_NOT_FOUND"}
    return PySparkRuntimeError(errorClass="RESPONSE_ALREADY_RECEIVED", messageParameters=facts)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CommitConflict("x"), Disposition.TRANSIENT),
        (EngineUnavailable("x"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.UNAVAILABLE), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, "[INVALID_HANDLE.SESSION_CHANGED] x"), Disposition.TRANSIENT),
        (SparkConnectException("[NO_ACTIVE_SESSION] No active Spark session found."), Disposition.TRANSIENT),
        (restarted_meanwhile(), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, "java.io.IOException: No space left on device"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.AWSServiceThrottledException: listing"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.AWSStatus500Exception: InternalError"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.AWSNoResponseException: x"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.AWSApiCallTimeoutException: x"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.HttpChannelEOFException: x"), Disposition.TRANSIENT),
        (spark_lost(grpc.StatusCode.INTERNAL, f"{_S3A}.AWSBadRequestException: x"), Disposition.PERMANENT),
        (spark_lost(grpc.StatusCode.INTERNAL, "[DIVIDE_BY_ZERO] x"), Disposition.PERMANENT),
        (spark_lost(grpc.StatusCode.INTERNAL, "[DELTA_METADATA_CHANGED] x"), Disposition.TRANSIENT),
        (of_condition("DELTA_CONCURRENT_TRANSACTION"), Disposition.TRANSIENT),
        (of_condition("DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"), Disposition.TRANSIENT),
        (of_condition("DELTA_METADATA_CHANGED"), Disposition.TRANSIENT),
        (of_condition("DELTA_PROTOCOL_CHANGED.EMPTY_DIRECTORY"), Disposition.TRANSIENT),
        (of_condition("CAST_INVALID_INPUT", "the value '[DELTA_CONCURRENT' is no number"), Disposition.PERMANENT),
        (AnalysisException("[UNRESOLVED_COLUMN] x"), Disposition.PERMANENT),
        (OSError(errno.ENOSPC, "full"), Disposition.TRANSIENT),
        (OSError(errno.EROFS, "read-only"), Disposition.TRANSIENT),
        (PermissionError(errno.EACCES, "no"), Disposition.TRANSIENT),
        (ConnectionResetError("x"), Disposition.TRANSIENT),
        (TimeoutError("x"), Disposition.TRANSIENT),
        (sqlite3.OperationalError("database is locked"), Disposition.TRANSIENT),
        (sqlite3.IntegrityError("x"), Disposition.PERMANENT),
        (InvariantError("x"), Disposition.INVARIANT),
        (SchemaMismatch("x"), Disposition.INVARIANT),
        (TypeError("a defect"), Disposition.PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_what_an_exception_means_for_its_run(error: Exception, expected: Disposition) -> None:
    assert disposition_of(error) is expected


def all_subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    below: list[type[Any]] = kind.__subclasses__()
    for sub in below:
        yield sub
        yield from all_subclasses(sub)


def test_every_error_of_the_lake_is_classified__DP5_F13() -> None:
    for module in pkgutil.walk_packages(sda_platform.__path__, "sda_platform."):
        if not module.name.startswith("sda_platform.runtime"):
            importlib.import_module(module.name)
    ours = [kind for kind in all_subclasses(LakeError) if kind.__module__.startswith("sda_platform.")]
    assert len(ours) >= 5
    assert [kind.__name__ for kind in ours if not set(kind.__mro__) & set(_OF_EXCEPTION)] == []


def emitted_kinds() -> set[str]:
    """Every error kind that the sources name where they make an error: ``RecordError("kind", …)``, a RawRecord's, a
    bronze row's, and the kinds that packages add; also those that a function named ``…_kind`` returns."""
    found = set(ERROR_KINDS)
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("RecordError"):
                found |= {str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant)}
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_kind"):
                returned = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
                choices = [c.body if isinstance(c, ast.IfExp) else c for r in returned for c in [r.value]]
                choices += [r.value.orelse for r in returned if isinstance(r.value, ast.IfExp)]
                found |= {c.value for c in choices if isinstance(c, ast.Constant) and isinstance(c.value, str)}
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {
                    str(value.value)
                    for key, value in pairs
                    if isinstance(key, ast.Constant) and key.value == "error_kind" and isinstance(value, ast.Constant)
                }
    return found


def test_every_kind_of_refused_record_is_classified__DP5_F13() -> None:
    assert emitted_kinds() >= {"bad_length", "bad_segment"}, "the search itself must find what is known to be there"
    assert emitted_kinds() - set(RECORD_KINDS) == set()


@given(attempt=st.integers(1, 200), seed=st.text())
def test_pauses_stay_within_bounds_and_follow_from_the_seed(attempt: int, seed: str) -> None:
    pause = pause_s(attempt, base_s=0.5, cap_s=20.0, seed=seed)
    assert 0.5 <= pause <= 20.0
    assert pause == pause_s(attempt, base_s=0.5, cap_s=20.0, seed=seed)


def test_those_who_failed_together_do_not_return_together() -> None:
    assert len({pause_s(3, base_s=1.0, cap_s=60.0, seed=f"run {n}") for n in range(100)}) == 100


def run_of(error: Exception, failures: int) -> tuple[dg.ExecuteInProcessResult, int, dict[str, str]]:
    """A run of one asset that raises ``error`` so many times; also its calls and the run's tags."""
    calls = []

    def body() -> dg.MaterializeResult[Any]:
        calls.append(1)
        if len(calls) <= failures:
            raise error
        return dg.MaterializeResult()

    table = dg.asset(name="table")(with_retries("table", body))

    with dg.DagsterInstance.ephemeral() as instance:
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        result = dg.materialize([table], instance=instance, raise_on_error=False, run_config=quiet)
        run = instance.get_run_by_id(result.run_id)
        assert run is not None
        return result, len(calls), dict(run.tags)


def test_a_conflict_is_planned_again_within_the_run() -> None:
    result, calls, tags = run_of(CommitConflict("another came first"), failures=2)
    assert (result.success, calls) == (True, 3)
    assert FAILURE_TAG not in tags


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SchemaMismatch("rows differ"), "invariant"),
        (TypeError("a defect"), "permanent"),
        (EngineUnavailable("nobody listens"), "transient"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_repeating_in_this_run_cannot_mend_fails_it_at_once_and_tags_it(error: Exception, kind: str) -> None:
    result, calls, tags = run_of(error, failures=99)
    assert (result.success, calls) == (False, 1)
    assert (tags[FAILURE_TAG], tags[REASON_TAG]) == (kind, f"{type(error).__name__}: {error}")
    (failure,) = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    assert failure.user_failure_data is not None
    assert failure.user_failure_data.description == f"{kind}: {type(error).__name__}: {error}"
    assert failure.user_failure_data.metadata["failure"].value == kind
