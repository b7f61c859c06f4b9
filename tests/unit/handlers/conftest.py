from collections.abc import Iterator

import pytest
from moto import mock_aws

from handlers.adapters import metrics
from tests.explorer.swift import swiftly
from tests.unit.handlers.fakes import six_brokers
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import Station
from tests.unit.handlers.tables import make_table


@pytest.fixture(scope="package", autouse=True)
def _swift_copies() -> Iterator[None]:
    """Copy records swiftly: a history copies thousands."""
    with swiftly():
        yield


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """moto with the ledger's table in it."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        yield


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No log: a station writes a line per tick, thousands of times, which would be formatted."""
    monkeypatch.setattr("logging.Logger._log", lambda *_, **__: None)


@pytest.fixture
def station() -> Station:
    return Station()


@pytest.fixture
def six(monkeypatch: pytest.MonkeyPatch) -> Station:
    """Two brokers in each of three zones."""
    for node_id, zone in ((11, "us-east-1a"), (21, "us-east-1b"), (31, "us-east-1c")):
        monkeypatch.setitem(ZONES, node_id, zone)
    return Station(cluster=six_brokers())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(metrics, "count", names.append)
    return names
