"""The guard of conftest.py: a unit test that opens a connection fails and says where it belongs."""

from __future__ import annotations

import contextlib
import socket

import pytest


def test_a_connection_fails_the_test_even_where_errors_are_swallowed() -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="move it to tests/integration"),
        contextlib.suppress(OSError),
    ):
        socket.create_connection(("127.0.0.1", 9), timeout=1)


def test_a_server_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="asks for the network"):
        socket.create_server(("127.0.0.1", 0))
