"""Answers what a program asks of Pulumi's engine at once: no thread, and nothing is read twice.

Pulumi's own mock monitor is asked from a pool of threads, starts an event loop in each of them, and
reads and writes every property of every resource twice. What it answers is the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import struct_pb2
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2

STACK_TYPE = "pulumi:pulumi:Stack"
# A registration, the URN it was given, and its inputs.
Registered = Callable[[Any, str, Mapping[str, Any]], None]


class AtOnce(asyncio.SelectorEventLoop):
    """An event loop whose executor is the caller: nobody here waits for anything outside."""

    _ready: deque[asyncio.Handle]
    # A future asks for it when it is made; a type is called sooner than a method.
    get_debug = bool

    def call_soon(  # type: ignore[override] # its callback takes what it is given
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Put a callback in the line, as the base does, without what it asks in debug mode."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def run_in_executor(  # type: ignore[override] # typeshed's own signature takes no Any here
        self, _executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        answered = self.create_future()
        try:
            answered.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as of an executor, it meets who awaits it
            answered.set_exception(error)
        return answered


class Monitor(mocks.MockMonitor):
    """The mock monitor, which tells `registered` of each resource."""

    def __init__(
        self,
        mocked: mocks.Mocks,
        registered: Registered,
        exported: Callable[[Mapping[str, Any]], None],
    ) -> None:
        super().__init__(mocked)
        self._registered, self._exported = registered, exported

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == STACK_TYPE:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = rpc.deserialize_properties(request.object, keep_unknowns=True)
        self._registered(request, urn, inputs)
        identity, answer = self._made(request, inputs, request.object, custom=request.custom)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity or "", object=answer)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        inputs = rpc.deserialize_properties(request.properties)
        _, answer = self._made(request, inputs, request.properties, custom=True)
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=answer)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        args = rpc.deserialize_properties(request.args)
        asked = mocks.MockCallArgs(request.tok, args, request.provider)
        answer, _ = self.mocks.call(asked)
        return resource_pb2.ResourceInvokeResponse(**{"return": _struct(answer)})

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - gRPC's name
        # A component's outputs may hold references that cannot be read here; exports never do.
        if request.urn.split("::")[2] == STACK_TYPE:
            self._exported(rpc.deserialize_properties(request.outputs, keep_unknowns=True))
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    def _made(
        self, request: Any, inputs: Mapping[str, Any], sent: struct_pb2.Struct, *, custom: bool
    ) -> tuple[str | None, struct_pb2.Struct]:
        """Return a resource's id and outputs; what is as it was sent goes back unread."""
        asked = mocks.MockResourceArgs(request.type, request.name, dict(inputs), custom=custom)
        identity, state = self.mocks.new_resource(asked)
        kept = {key for key, value in state.items() if key in inputs and value is inputs[key]}
        answer = _struct({key: value for key, value in state.items() if key not in kept})
        for key in kept:
            answer.fields[key].CopyFrom(sent.fields[key])
        return identity, answer


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in values.items() if value is not None})
    return struct
