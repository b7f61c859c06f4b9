"""The shared shape of a resource provider: plain Python in, the engine's protocol out.

A provider subclasses ResourceProvider and deals in dictionaries. The servicer is the raw one of
the engine's protocol, on threads: resources are created in parallel although AWS clients block,
and a failure reaches the user as one sentence, where pulumi.provider.experimental adds a traceback.

The engine starts plugins, reads the port from their output and ends them with a signal. A Ctrl-C
reaches the whole group of the user's terminal, so a plugin ends quietly on it: a traceback would
land in the middle of the user's output. If the engine is killed, nobody tells its plugins; they
notice that their parent has changed and end by themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass, replace
from functools import wraps
from types import FrameType
from typing import Any, Protocol

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from core.ground.errors import StillwaterError
from local.values import Properties, from_struct, to_struct, without_assets

_PLAIN_KEY = re.compile(r"^[A-Za-z_$][A-Za-z0-9_$]*$")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property that changed; `path` and `kind` (ADD, DELETE, UPDATE) are the engine's."""

    path: str
    kind: str
    replaces: bool = False

    @property
    def top(self) -> str:
        """The property of the resource in which the change lies."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def _child(path: str, key: str) -> str:
    if not _PLAIN_KEY.match(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if old is _ABSENT or old is None:
        if new is not _ABSENT and new is not None:
            yield path, "ADD"
    elif new is _ABSENT or new is None:
        yield path, "DELETE"
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _walk(_child(path, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            left = old[index] if index < len(old) else _ABSENT
            right = new[index] if index < len(new) else _ABSENT
            yield from _walk(f"{path}[{index}]", left, right)
    elif old != new:
        yield path, "UPDATE"


def changes(
    old: Properties, new: Properties, *, replacing: Collection[str] = ()
) -> tuple[PropertyChange, ...]:
    """Return every change between two sets of inputs; a missing property equals a null one.

    `replacing` names the properties, or paths below them, whose change replaces the resource.
    """
    found = []
    for path, kind in _walk("", old, new):
        replaces = any(path == p or path.startswith((f"{p}.", f"{p}[")) for p in replacing)
        found.append(PropertyChange(path, kind, replaces))
    return tuple(found)


WORKERS = 32
PARENT_POLL_SECONDS = 0.5
# The engine lifts gRPC's 4 MiB limit in the same way: a Lambda's zip travels as one property.
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),
    ("grpc.max_send_message_length", 400 * 1024 * 1024),
]


def serve(register: Callable[[grpc.Server], None], stop: Callable[[], None] | None = None) -> None:
    """Serve until a signal arrives or the engine is gone; `stop` ends what the plugin started."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    parent = os.getppid()
    server: Any = grpc.server(
        futures.ThreadPoolExecutor(max_workers=WORKERS), options=CHANNEL_OPTIONS
    )
    register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not ended.wait(PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    if stop is not None:
        stop()
    server.stop(grace=0)
    # Worker threads may be inside an AWS call; nobody is left to hear its answer.
    sys.stdout.flush()
    os._exit(0)


@dataclass(frozen=True, slots=True)
class Resource:
    """Which resource of the program is meant."""

    urn: str

    @property
    def type(self) -> str:
        """The type's token alone: a child's URN carries the types of its parents too."""
        return self.urn.split("::")[2].rsplit("$", 1)[-1]

    @property
    def name(self) -> str:
        return self.urn.split("::", 3)[3]

    def token(self, length: int = 8) -> str:
        """Return hexadecimal characters that differ between resources, the same every time."""
        return hashlib.sha256(self.urn.encode()).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource that the engine has in its state."""

    resource: Resource
    id: str
    inputs: Properties
    outputs: Properties
    # Paths that the program leaves to somebody else; the engine gives their old inputs.
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A resource as the provider left it: what the engine writes into its state."""

    id: str
    outputs: Properties
    inputs: Properties | None = None


@dataclass(frozen=True, slots=True)
class UpdateDifference:
    """What an update would change."""

    changes: tuple[PropertyChange, ...] = ()
    delete_before_replace: bool = False


class CheckFailed(StillwaterError):
    """An input that the provider refuses before anything is changed."""

    def __init__(self, prop: str, reason: str) -> None:
        self.prop = prop
        super().__init__(reason)


class ResourceProvider(Protocol):
    """What the servicer asks of a provider."""

    package: str
    version: str

    def configure(self, settings: Properties) -> None:
        """Take the provider's own arguments; called once, before anything but checks."""

    def check(
        self, resource: Resource, old_inputs: Properties, new_inputs: Properties
    ) -> Properties:
        """Return the inputs with defaults filled in; raise CheckFailed for one that is wrong."""

    def diff(self, existing: Existing, new_inputs: Properties) -> UpdateDifference:
        """Compare the inputs of the last update with the new ones."""

    def create(self, resource: Resource, inputs: Properties) -> State: ...

    def preview_create(self, resource: Resource, inputs: Properties) -> State:
        """Return what a create would give; properties left out are shown as not known yet."""

    def read(self, existing: Existing) -> State | None:
        """Return the resource as it is now, or None when it is gone."""

    def update(self, existing: Existing, new_inputs: Properties) -> Properties:
        """Change the resource and return its outputs."""

    def preview_update(self, existing: Existing, new_inputs: Properties) -> Properties: ...

    def delete(self, existing: Existing) -> None:
        """Delete the resource; one that is gone already is no error."""

    def invoke(self, token: str, arguments: Properties) -> Properties: ...


def one_sentence(error: BaseException) -> str:
    """Return a failure as the user should read it."""
    text = " ".join(str(error).split())
    if isinstance(error, StillwaterError):
        return str(error)
    response = getattr(error, "response", None)
    if isinstance(response, dict) and "Error" in response:
        details = response["Error"]
        operation = getattr(error, "operation_name", "the call")
        message = " ".join(str(details.get("Message") or "no reason given").split())
        return f"AWS refused {operation} ({details.get('Code')}): {message[:500]}"
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__


def _answers(method: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    @wraps(method)
    def call(self: Any, request: Any, context: Any) -> Any:
        try:
            return method(self, request, context)
        except Exception as error:  # noqa: BLE001 - the boundary to the engine
            # With UNKNOWN or INTERNAL the engine would take the resource's state for unknown.
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, one_sentence(error))

    return call


def _difference(change: PropertyChange) -> Any:
    name = f"{change.kind}_REPLACE" if change.replaces else change.kind
    return provider_pb2.PropertyDiff(
        kind=provider_pb2.PropertyDiff.Kind.Value(name), inputDiff=True
    )


def _settings(request: Any) -> Properties:
    """Return the provider's arguments; the engine sends structured ones as JSON in a string."""
    settings: Properties = {}
    for key, value in from_struct(request.args).items():
        settings[key] = value
        if isinstance(value, str) and value[:1] in "{[":
            try:
                settings[key] = json.loads(value)
            except ValueError:
                settings[key] = value
    return settings


def _existing(request: Any, outputs: Any, inputs: Any) -> Existing:
    return Existing(Resource(request.urn), request.id, from_struct(inputs), from_struct(outputs))


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Translates between the engine's messages and a ResourceProvider."""

    def __init__(self, provider: ResourceProvider) -> None:
        self.provider = provider

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - the protocol's names
        return plugin_pb2.PluginInfo(version=self.provider.version)

    def GetSchema(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        schema = {"name": self.provider.package, "version": self.provider.version}
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    def Cancel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        # The twin's providers keep no state of their own: new settings never replace resources.
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @_answers
    def Configure(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.provider.configure(_settings(request))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=False, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    @_answers
    def Check(self, request: Any, _context: Any) -> Any:  # noqa: N802
        old, new = from_struct(request.olds), from_struct(request.news)
        try:
            inputs = self.provider.check(Resource(request.urn), old, new)
        except CheckFailed as failure:
            failures = [provider_pb2.CheckFailure(property=failure.prop, reason=str(failure))]
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)
        return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    @_answers
    def Diff(self, request: Any, _context: Any) -> Any:  # noqa: N802
        existing = _existing(request, request.olds, request.old_inputs)
        difference = self.provider.diff(existing, from_struct(request.news))
        found = difference.changes
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some if found else none,
            diffs=dict.fromkeys(change.top for change in found),
            replaces=dict.fromkeys(change.top for change in found if change.replaces),
            deleteBeforeReplace=difference.delete_before_replace,
            hasDetailedDiff=True,
            detailedDiff={change.path: _difference(change) for change in found},
        )

    @_answers
    def Create(self, request: Any, _context: Any) -> Any:  # noqa: N802
        make = self.provider.preview_create if request.preview else self.provider.create
        state = make(Resource(request.urn), from_struct(request.properties))
        return provider_pb2.CreateResponse(
            id=state.id, properties=to_struct(without_assets(state.outputs))
        )

    @_answers
    def Read(self, request: Any, _context: Any) -> Any:  # noqa: N802
        state = self.provider.read(_existing(request, request.properties, request.inputs))
        if state is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=state.id,
            properties=to_struct(without_assets(state.outputs)),
            inputs=to_struct(state.inputs if state.inputs is not None else state.outputs),
        )

    @_answers
    def Update(self, request: Any, _context: Any) -> Any:  # noqa: N802
        known = _existing(request, request.olds, request.old_inputs)
        existing = replace(known, ignored=tuple(request.ignoreChanges))
        change = self.provider.preview_update if request.preview else self.provider.update
        outputs = change(existing, from_struct(request.news))
        return provider_pb2.UpdateResponse(properties=to_struct(without_assets(outputs)))

    @_answers
    def Delete(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.provider.delete(_existing(request, request.properties, request.old_inputs))
        return empty_pb2.Empty()

    @_answers
    def Invoke(self, request: Any, _context: Any) -> Any:  # noqa: N802
        answer = self.provider.invoke(request.tok, from_struct(request.args))
        return provider_pb2.InvokeResponse(**{"return": to_struct(answer)})


def main(provider: ResourceProvider) -> None:
    """Serve a provider to the engine that started this process."""
    # The engine passes its own address; nothing here calls back.
    del sys.argv[1:]
    serve(
        lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(
            Servicer(provider), server
        )
    )
