"""The command line is put together once for all tests, as a process of its own does."""

import functools
from collections.abc import Iterator

import pytest
import typer.testing
from moto import mock_aws

from tests.unit.cli import forked


@pytest.fixture(scope="session", autouse=True)
def _put_together_once() -> Iterator[None]:
    """Keep typer's commands, which know nothing of an invocation: they take 20 ms a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AWS in memory, with somebody's keys."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


@pytest.fixture(scope="session", autouse=True)
def _forks_end() -> Iterator[None]:
    yield
    forked.end()
