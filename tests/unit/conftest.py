"""Unit tests use no network, not even loopback; what needs it belongs in tests/integration."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3.util.connection  # noqa: F401 - binds ::1 once, when it is first imported


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Fail whoever connects or binds; a socket in the file system or the kernel is no network."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "bind"):
            patch.setattr(socket.socket, name, _guarded(name))
        yield


def _guarded(name: str) -> Any:
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX:
            # Not an exception that code under test may swallow.
            pytest.fail(
                f"A unit test asks for the network ({name} {address}); give it a fake, or move "
                f"it to tests/integration."
            )
        return original(self, address)

    return guarded
