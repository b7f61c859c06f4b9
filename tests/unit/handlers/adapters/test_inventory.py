"""handlers.adapters.aws: checks that fail, however much EC2 tells of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from handlers.adapters.aws import _status
from tests.every_case import every_case

EARLY, LATE = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)


@every_case(
    ("check", "since"),
    [
        ({"Status": "impaired", "Details": [{"ImpairedSince": LATE}]}, LATE.timestamp()),
        (
            {
                "Status": "impaired",
                "Details": [{}, {"ImpairedSince": LATE}, {"ImpairedSince": EARLY}],
            },
            EARLY.timestamp(),
        ),
        ({"Status": "impaired", "Details": []}, 0.0),
        ({"Status": "impaired", "Details": None}, 0.0),
        ({"Status": "impaired"}, 0.0),
        ({"Status": "ok", "Details": [{"ImpairedSince": LATE}]}, None),
        ({"Status": "insufficient-data"}, None),
    ],
)
def test_a_check_that_fails_is_no_less_so_without_its_details(
    check: dict[str, Any], since: float | None
) -> None:
    found = _status({"InstanceId": "i-0a", "SystemStatus": check})  # type: ignore[typeddict-item]
    assert found.impaired == ({} if since is None else {"system": since})
