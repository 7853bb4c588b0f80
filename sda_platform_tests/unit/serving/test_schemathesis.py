"""Requests of every kind that the OpenAPI document allows, and some that it does not, by Schemathesis.

Unlike our own requests, it knows only the document: an answer that the document does not describe is a failure.
"""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from sda_platform_tests.support.sampling import number
from sda_platform_tests.unit.serving.interleavings import world

_CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    unsupported_method,
]  # fmt: skip
_OF_AN_OPERATION = number(in_soak=400, in_suite=4)


def test_each_answer_is_one_that_the_document_describes__44() -> None:
    with world() as place:
        document = schemathesis.openapi.from_asgi("/openapi.json", place.app).exclude(path="/events")  # has no end
        operations: list[Any] = [found.ok() for found in document.get_all_operations()]  # type: ignore[union-attr]
        sent = sum(send_requests(each) for each in operations)
    assert sent >= number(in_soak=4_000, in_suite=60)


def send_requests(operation: Any) -> int:
    """Send requests to an operation, and judge each answer; how many."""
    sent = 0
    cases = st.one_of(*(operation.as_strategy(generation_mode=each) for each in GenerationMode))

    @settings(
        max_examples=_OF_AN_OPERATION,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def judge(case: Any) -> None:
        nonlocal sent
        sent += 1
        case.call_and_validate(checks=_CHECKS)

    judge()
    return sent
