"""What the node monitoring agent writes on a Node is read as the trouble it is."""

from __future__ import annotations

import pytest

from handlers.adapters.kubernetes import _sick, _unready


def test_only_the_agents_conditions_that_are_false_are_trouble() -> None:
    written = [
        ("Ready", "True"),
        ("StorageReady", "False"),
        ("KernelReady", "Unknown"),
        ("NetworkingReady", "True"),
        ("DiskPressure", "False"),
    ]
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": "2026-11-20T10:00:00Z"}
        for kind, status in written
    ]
    assert _sick({"status": {"conditions": conditions}}) == {"StorageReady": 1_795_168_800.0}
    assert _sick({"status": {}}) == {}


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_a_kubelet_that_is_silent_is_not_ready(status: str) -> None:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-11-20T10:00:00Z"}
    assert _unready({"status": {"conditions": [ready]}}) == ({} if status == "True" else ready)
    assert _unready({"status": {}}) == {}
