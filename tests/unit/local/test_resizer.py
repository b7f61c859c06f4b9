"""local.kubernetes.csi: which claims ask for more than they have."""

from __future__ import annotations

from typing import Any

import pytest

from local.kubernetes.csi import outstanding


def claim(**changed: Any) -> dict[str, Any]:
    asked = {"size": "10Gi", "has": "10Gi", "wants": "gp3-3000-125", "given": "gp3-3000-125"}
    asked |= changed
    return {
        "spec": {
            "volumeName": asked.get("volume", "pv-1"),
            "volumeAttributesClassName": asked["wants"],
            "resources": {"requests": {"storage": asked["size"]}},
        },
        "status": {
            "phase": asked.get("phase", "Bound"),
            "capacity": {"storage": asked["has"]},
            "currentVolumeAttributesClassName": asked["given"],
        },
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, False),
        ({"size": "11Gi"}, True),
        # EBS never shrinks; nor does a claim that was once larger ask for anything.
        ({"size": "9Gi"}, False),
        ({"wants": "gp3-4000-125"}, True),
        ({"wants": None}, False),
        ({"size": "11Gi", "phase": "Pending"}, False),
        ({"size": "11Gi", "volume": None}, False),
    ],
)
def test_a_claim_that_asks_for_more_or_for_another_class_is_worked_on(
    changed: dict[str, Any], expected: bool
) -> None:
    assert outstanding(claim(**changed)) is expected
