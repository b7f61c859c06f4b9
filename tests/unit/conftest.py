"""Unit tests use no network, not even loopback; what needs it belongs in tests/integration."""

from __future__ import annotations

import functools
import gc
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import botocore.hooks
import botocore.loaders
import botocore.session
import pytest
import urllib3.util.connection  # noqa: F401 - binds ::1 once, when it is first imported

# moto makes 1,300 images, with a volume each, for every test that meets EC2; none looks at one.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
# A program of the analytics layer asks pip for EMR's wheels.
os.environ["STILLWATER_EMR_WHEELS"] = "never"


# Nothing of what is imported while tests are collected ever goes.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was imported to itself: the collector would look through it at every turn."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def _models_read_once() -> Iterator[None]:
    """Keep botocore's models: every boto3 session would read megabytes of JSON again."""
    with pytest.MonkeyPatch.context() as patch:
        one = functools.cache(botocore.loaders.create_loader)
        patch.setattr(botocore.session, "create_loader", one)
        yield


@pytest.fixture(scope="session", autouse=True)
def _events_named_once() -> Iterator[None]:
    """Keep what botocore calls its events: each session asks for a hundred, by every pattern."""
    aliaser = botocore.hooks.EventAliaser
    real = aliaser._alias_event_name
    known: dict[str, str] = {}

    def named(self: Any, name: str) -> str:
        if name not in known:
            known[name] = real(self, name)
        return known[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aliaser, "_alias_event_name", named)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_authorities() -> Iterator[None]:
    """Leave the machine's authorities unread, 20 ms for every client: there is no network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
        yield


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
