"""A machine that boots in place takes as long as one that is launched; a kubelet alone does not."""

from __future__ import annotations

import pytest

from local.kubernetes.kubelet import BOOT_SECONDS, boot_seconds


def test_a_root_volume_in_place_costs_what_a_launch_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLWATER_BOOT_SECONDS", "20")
    assert boot_seconds(None, rebooted=False) == BOOT_SECONDS
    assert boot_seconds({"metadata": {}}, rebooted=True) == 20 + BOOT_SECONDS
    assert boot_seconds({"metadata": {}}, rebooted=False) == 0
