"""The service does what its OpenAPI document says, whatever is sent to it. `LONG=1` tries twenty times as much."""

import os
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from starlette.types import ASGIApp

from chathistory_core import open_backend
from chathistory_http.service import create_app
from chathistory_http.service.access import Access
from chathistory_http.service.tokens import RIGHTS, new_token, token_of

LONG = bool(os.environ.get("LONG"))
TOKEN = new_token()
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
DOCUMENT = create_app(open_backend("memory://"), access=Access()).openapi()


@pytest.fixture
def url(serve: Callable[[ASGIApp], str]) -> str:
    """Of a running service that knows the token, and where a second goes by with every request."""
    token = token_of(TOKEN, "one", RIGHTS, "")
    return serve(create_app(open_backend("memory://"), access=Access([token], clock=count().__next__)))


def test_the_running_service_tells_the_document(url: str) -> None:
    assert httpx.get(f"{url}/openapi.json").json() == DOCUMENT


NOT_SAID: list[CheckFunction] = [
    positive_data_acceptance,  # which knows nothing of conditions, nor of two parameters that exclude each other
    negative_data_rejection,  # which takes a header for a number, and a condition that is not met for an acceptance
]
document = schemathesis.openapi.from_dict(DOCUMENT)


@document.parametrize()
@settings(
    max_examples=200 if LONG else 10,
    derandomize=not LONG,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_names_and_describes(case: schemathesis.Case[Any], url: str) -> None:
    case.call_and_validate(base_url=url, headers=HEADERS, timeout=60, excluded_checks=NOT_SAID)
