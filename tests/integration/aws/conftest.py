"""The shared twin's AWS, as one test sees it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local.twin import Twin
from tests.integration.aws.cloud import Cloud, session_of


@pytest.fixture(scope="session")
def session(twin: Twin) -> Any:
    """A boto3 session of the twin's administrator."""
    return session_of(twin.place)


@pytest.fixture
def cloud(twin: Twin, session: Any, subnets: Mapping[str, str]) -> Iterator[Cloud]:
    """The shared twin's AWS; what a test makes through it is deleted after the test."""
    shared = Cloud(twin.place, session, subnets)
    yield shared
    shared.clear()
