"""Documents in the ledger's table: what fails there is counted, whoever asked."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.ground.constants import LEDGER_ERRORS
from core.ground.errors import Conflict
from handlers.adapters import metrics
from handlers.store.table import Records
from tests.unit.handlers.tables import REGION, TABLE

REFUSED = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}


class Throttled:
    """A client of DynamoDB whose every call is refused."""

    def __getattr__(self, call: str) -> Any:
        def refuse(**_: Any) -> None:
            raise ClientError(REFUSED, call)  # type: ignore[arg-type]

        return refuse


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(metrics, "count", names.append)
    return names


def test_a_document_that_cannot_be_read_or_written_counts_as_a_failure_of_the_ledger(
    counted: list[str],
) -> None:
    records = Records(TABLE, REGION, client=Throttled())  # type: ignore[arg-type]
    with pytest.raises(ClientError):
        records.read("freezes#orders")
    with pytest.raises(ClientError):
        records.write("freezes#orders", [], 1)
    assert counted == [LEDGER_ERRORS, LEDGER_ERRORS]


def test_a_lost_race_is_no_failure(aws: None, counted: list[str]) -> None:
    records = Records(TABLE, REGION)
    records.write("freezes#orders", [1], 0)
    with pytest.raises(Conflict, match=r"freezes#orders was changed"):
        records.write("freezes#orders", [2], 0)
    assert records.read("freezes#orders").document == [1]
    assert not counted
