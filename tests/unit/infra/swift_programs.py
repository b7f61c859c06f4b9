"""Leaves out of Pulumi's own work what nobody here reads; what a program registers is the same.

Where in the source a resource was made, the URN that a program without an engine would give it, and
lines of a debug log are a sixth of a run. Of every property of every resource Pulumi makes four
futures and a task: most of them are never asked for.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pulumi
import pulumi_aws as aws
from pulumi.output import Output, _OutputData
from pulumi.runtime import resource as registration
from pulumi.runtime import rpc, settings
from pulumi.runtime.proto.source_pb2 import StackTrace

from infra.analytics import report_job
from infra.functions import packaging

# Every layer with a function zips the same sources, some more than once.
_BUILDS = {packaging: packaging.build, report_job: report_job.build}
# What goes to the engine as it is.
_PLAIN = frozenset({str, int, float, bool, type(None)})


@contextmanager
def swiftly(*, preview: bool) -> Iterator[None]:
    """Run a program without what nobody reads of it."""
    with ExitStack() as patches:
        replaced: list[tuple[Any, str, Any]] = [
            (registration, "_get_stack_trace", StackTrace),
            (registration, "create_urn", functools.partial(_urn, registration.create_urn)),
            (rpc, "transfer_properties", transferred),
            (
                rpc,
                "serialize_property",
                functools.partial(_serialize_property, rpc.serialize_property),
            ),
            (pulumi.log, "debug", _nothing),
            *((Output, name, kept) for name, kept in _tracking(settings.SETTINGS.outputs).items()),
            # Asked for each of AWS's own policies, it is answered by entering the loop once more.
            (aws, "get_partition", _first_answer(aws.get_partition)),
            *(
                (zipped, "build", functools.partial(_built_once, build))
                for zipped, build in _BUILDS.items()
            ),
        ]
        if not preview:
            # Every value is looked through several times for what is unknown: there is nothing.
            replaced.append((rpc, "contains_unknowns", _has_no_unknowns))
        for module, name, instead in replaced:
            patches.enter_context(mock.patch.object(module, name, instead))
        yield


def _tracking(outputs: set[asyncio.Future[Any]]) -> Mapping[str, Callable[[Any], None]]:
    """Return what keeps outputs until they are known, as Output does: here is one thread alone."""

    def known(data: asyncio.Future[Any]) -> None:
        # One that failed is found when the program ends.
        if not data.cancelled() and data.exception() is None:
            outputs.discard(data)

    def track(output: Any) -> None:
        outputs.add(output._data)
        output._data.add_done_callback(known)

    return {"_track": track, "_untrack": lambda output: outputs.discard(output._data)}


class Property(Output[Any]):
    """What a resource will have been given for one of its properties.

    The future of one is made when it is first asked for.
    """

    def __init__(self, resource: Any) -> None:
        self._resource = resource
        self._promised: asyncio.Future[_OutputData[Any]] | None = None
        self._settled: _OutputData[Any] | Exception | None = None

    @property
    def _data(self) -> asyncio.Future[_OutputData[Any]]:  # type: ignore[override] # an attribute
        if self._promised is None:
            self._promised = asyncio.get_running_loop().create_future()
            self._tell()
            self._track()
        return self._promised

    def resolve(
        self,
        value: Any,
        is_known: bool,
        is_secret: bool,
        dependencies: AbstractSet[Any] | None,
        failed: Exception | None,
    ) -> None:
        """Take what rpc.resolve_outputs found, or what failed before it could."""
        resources = {*(dependencies or ()), self._resource}
        self._settled = failed or _OutputData(resources, value, is_known, is_secret)
        self._tell()

    def _tell(self) -> None:
        if self._promised is None or self._settled is None:
            return
        if isinstance(self._settled, Exception):
            self._promised.set_exception(self._settled)
        else:
            self._promised.set_result(self._settled)


def transferred(
    resource: Any, properties: Mapping[str, Any], custom: bool
) -> dict[str, Callable[..., None]]:
    """Give a resource an output for each property, as rpc.transfer_properties does.

    Returns what resolves each of them.
    """
    resolvers = {}
    for name in properties:
        if name == "urn" or (name == "id" and custom):
            continue
        found = resource.__dict__[name] = Property(resource)
        resolvers[name] = found.resolve
    return resolvers


def _serialize_property(
    real: Callable[..., Coroutine[Any, Any, Any]], value: Any, *given: Any, **named: Any
) -> Coroutine[Any, Any, Any]:
    if type(value) in _PLAIN and not named.get("return_protobuf_value"):
        return _itself(value)
    return real(value, *given, **named)


async def _itself(value: Any) -> Any:
    return value


class _NoUrn:
    """The URN that a resource has where no engine gives it one."""

    async def future(self) -> None:
        return None


def _urn(real: Callable[..., Any], name: Any, type_: Any, parent: Any = None, *given: Any) -> Any:
    """Leave out a registration's own; what an alias is called is made from outputs."""
    if isinstance(name, str) and isinstance(type_, str) and isinstance(parent, str) and not given:
        return _NoUrn()
    return real(name, type_, parent, *given)


def _built_once(build: Callable[..., Any], *, own_prices: Path | None = None) -> Any:
    return _built(build, packaging.cache_directory(), own_prices)


@functools.cache
def _built(build: Callable[..., Any], _directory: Path, own_prices: Path | None) -> Any:
    return build(own_prices=own_prices)


def _first_answer(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return what answers every question of one program as the first."""
    answers: list[Any] = []

    def answered(**given: Any) -> Any:
        if not answers:
            answers.append(ask(**given))
        return answers[0]

    return answered


def _has_no_unknowns(_value: object) -> bool:
    return False


def _nothing(*_: object, **__: object) -> None:
    return None
