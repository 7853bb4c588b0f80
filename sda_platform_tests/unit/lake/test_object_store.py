"""How each client is led to an object store, and which of their errors are the store's."""

import socket
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from s3fs.errors import translate_boto_error

from sda_platform.lake import object_store
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.storage import location, require_conditional_put
from sda_platform.orchestration.dispositions import Disposition, disposition_of

LAKE = "s3://bucket/lake"


@pytest.fixture(autouse=True)
def _no_store_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_a_path_needs_no_options(tmp_path: Path) -> None:
    assert object_store.fsspec_options(str(tmp_path)) == {}
    assert object_store.delta_options(str(tmp_path)) is None
    assert str(location(str(tmp_path))) == str(tmp_path)
    require_conditional_put(str(tmp_path))


def test_a_store_that_does_not_answer_is_a_wrong_setting_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    with pytest.raises(Misconfigured, match=f"{LAKE}: the object store cannot be used: .*{address}") as refusal:
        require_conditional_put(LAKE)
    assert "a secret" not in str(refusal.value)


def test_listings_of_an_object_store_are_not_cached() -> None:
    assert object_store.fsspec_options(LAKE)["use_listings_cache"] is False


def test_every_client_has_the_address_and_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:8333")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert object_store.fsspec_options(LAKE)["endpoint_url"] == "http://store:8333"
    assert object_store.fsspec_options(LAKE)["client_kwargs"] == {"region_name": "eu-west-1"}
    delta = object_store.delta_options(LAKE) or {}
    assert (delta["aws_endpoint"], delta["aws_allow_http"], delta["aws_region"]) == (
        "http://store:8333",
        "true",
        "eu-west-1",
    )
    arrow = object_store.arrow_options()
    assert (arrow["scheme"], arrow["endpoint_override"], arrow["region"]) == ("http", "store:8333", "eu-west-1")
    spark = object_store.spark_options()
    assert spark["spark.hadoop.fs.s3a.endpoint"] == "http://store:8333"
    assert spark["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"


def test_without_an_address_the_store_is_that_of_aws_and_no_option_has_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    options = [
        object_store.fsspec_options(LAKE),
        object_store.delta_options(LAKE) or {},
        object_store.arrow_options(),
        object_store.spark_options(),
    ]
    assert "a secret" not in str(options)
    assert "aws_endpoint" not in options[1] and "endpoint_override" not in options[2]


@pytest.mark.parametrize(
    "text",
    [
        "Generic S3 error: Error performing GET",
        "AWS Error NETWORK_CONNECTION during HeadObject operation",
        "AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.",
        "AWS Error INTERNAL_FAILURE (HTTP status 500) during GetObject operation",
    ],
)
def test_a_failed_request_is_transient_and_no_damage(text: str) -> None:
    assert disposition_of(OSError(text)) is Disposition.TRANSIENT


@pytest.mark.parametrize("text", ["another", "AWS Error UNKNOWN (HTTP status 400) during HeadObject operation"])
def test_a_refused_request_is_not(text: str) -> None:
    assert disposition_of(OSError(text)) is Disposition.PERMANENT


@pytest.mark.parametrize("code", ["InternalError", "SlowDown", "ServiceUnavailable", "500", "503"])
def test_what_s3fs_makes_of_an_error_inside_the_store_is_transient(code: str) -> None:
    error = translate_boto_error(ClientError({"Error": {"Code": code, "Message": code}}, "PutObject"))
    assert disposition_of(error) is Disposition.TRANSIENT, repr(error)


def test_a_request_is_repeated_by_one_layer_of_a_client_only() -> None:
    """By default, s3fs repeats what botocore repeated, and Hadoop's client what its SDK repeated."""
    assert location(LAKE).fs.retries == 1
    assert (location(LAKE) / "x").fs.retries == 1
    spark = object_store.spark_options()
    assert spark["spark.hadoop.fs.s3a.attempts.maximum"] == "0"
    assert spark["spark.hadoop.fs.s3a.retry.throttle.limit"] == spark["spark.hadoop.fs.s3a.retry.limit"] == "3"
