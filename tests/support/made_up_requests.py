"""Requests that schemathesis makes up from the description of the API, and what every answer has to keep to."""

from collections.abc import Mapping
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

_REFUSALS = [
    "400",
    "401",
    "403",
    "404",
    "405",
    "406",
    "409",
    "413",
    "415",
    "422",
    "428",
    "429",
    "5xx",
]
CONFIG = schemathesis.Config.from_dict(
    {
        # Who asks is given: what is made up beside that changes nothing.
        "generation": {"with-security-parameters": False},
        # What is too long is refused by its length, before anything of it is read.
        "checks": {"negative_data_rejection": {"expected-statuses": _REFUSALS}},
    }
)
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
    unsupported_method,
    allow_header_conformance,
)


def list_operations(description: Mapping[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(dict(description), config=CONFIG)
    return [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]


def check_answers(
    cases: SearchStrategy[Any], url: str, headers: Mapping[str, str], examples: int
) -> None:
    """Send requests that were made up, and check every answer against the description."""

    @given(cases)
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        case.call_and_validate(base_url=url, checks=list(CHECKS), timeout=60, headers=dict(headers))

    check()
