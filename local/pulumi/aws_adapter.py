"""Gives every AWS adapter its base: clients, shapes, tags, and the registry of resource types.

An adapter makes one resource type exist in moto, because something else of the twin reads it
there. Most are rows of adapters.toml (aws_rows); types without an adapter live in the provider's
own store (aws_stored).
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from local.environment import ACCOUNT, PARTITION, REGION
from local.place import Place
from local.pulumi.provider import Existing, Resource, State
from local.refusals.calls import coerce
from local.refusals.catalogue import TYPES
from local.refusals.refusal import Wanted
from local.values import Properties

_MISSING = re.compile(r"NotFound|NoSuch|NonExist|DoesNotExist|ResourceNotFound")
_MISSING_MESSAGE = re.compile(r"not found|does not exist|is invalid", re.IGNORECASE)


class Aws:
    """The twin's AWS as an adapter sees it; shared by the provider's threads."""

    def __init__(self, place: Place | None = None) -> None:
        self.place = place
        self.region = REGION
        self.account = ACCOUNT
        self.default_tags: dict[str, str] = {}
        self._clients: dict[str, Any] = {}
        # boto3's session is not thread-safe while it makes a client.
        self._lock = threading.Lock()
        self._session: Any = None

    def client(self, service: str) -> Any:
        """Return the client of a service; the first one imports boto3, half a second."""
        with self._lock:
            if service not in self._clients:
                if self._session is None:
                    import boto3  # noqa: PLC0415 - previews of unchanged stacks never need it

                    self._session = boto3.session.Session(region_name=self.region)
                from botocore.config import Config  # noqa: PLC0415 - as above

                self._clients[service] = self._session.client(
                    service,
                    config=Config(
                        max_pool_connections=32,
                        connect_timeout=5,
                        read_timeout=60,
                        retries={"mode": "standard", "max_attempts": 3},
                    ),
                )
            return self._clients[service]

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{PARTITION}:{service}:{self.region}:{self.account}:{resource}"


@dataclass(frozen=True, slots=True)
class CallById:
    """A call that takes a resource's id alone: `CallById("sqs", "delete_queue", "QueueUrl")`."""

    service: str
    operation: str
    parameter: str

    def __call__(self, aws: Aws, identity: str) -> None:
        getattr(aws.client(self.service), self.operation)(**{self.parameter: identity})


@dataclass(frozen=True, slots=True)
class TagCalls:
    """How a service takes tags and takes them away; `by` is the property that names the resource.

    `listed`: it takes several resources at once; `mapped`: tags not as a list of keys and values;
    `keyed`: what is taken away is such a list of keys.
    """

    service: str
    add: str
    remove: str
    parameter: str
    by: str = ""
    listed: bool = False
    mapped: bool = False
    keyed: bool = False

    def bring(self, aws: Aws, existing: Existing, inputs: Properties) -> None:
        """Bring tags from the last update's to the new ones with two calls at most."""
        client, (fresh, gone) = aws.client(self.service), tag_changes(existing, inputs)
        identity = existing.outputs[self.by] if self.by else existing.id
        whose = {self.parameter: [identity] if self.listed else identity}
        if gone and self.keyed:
            getattr(client, self.remove)(**whose, Tags=[{"Key": key} for key in gone])
        elif gone:
            getattr(client, self.remove)(**whose, TagKeys=gone)
        if fresh:
            getattr(client, self.add)(**whose, Tags=fresh if self.mapped else tag_list(fresh))


EC2_TAGS = TagCalls("ec2", "create_tags", "delete_tags", "Resources", listed=True, keyed=True)


class Adapter(ABC):
    """How one resource type lives in moto.

    create and update return the computed outputs alone; the provider lays them over the inputs.
    """

    # The type's token, under which the gate's catalogue has the calls that make it.
    token: str
    # What looks a resource up and what deletes it; none: the store alone knows of it, and a type
    # that goes with its parent has nothing to delete.
    lookup: CallById | None = None
    deletion: CallById | None = None
    tagging: TagCalls | None = None
    # The property that names the resource, and that gets a name when the program gives none.
    name_property: str | None = None
    # Inputs that an update sends only if they differ from the last one's.
    sent_if_changed: tuple[str, ...] = ()
    # Properties whose change makes a new resource.
    replaces: frozenset[str] = frozenset()

    def sent(self, existing: Existing, inputs: Properties) -> Properties:
        """Return what an update sends of its inputs."""
        same = {k for k in self.sent_if_changed if existing.inputs.get(k) == inputs.get(k)}
        return {key: value for key, value in inputs.items() if key not in same}

    @abstractmethod
    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        """Make the resource in moto."""

    def make(self, aws: Aws, inputs: Properties, number: int = 0, **more: Any) -> Any:
        """Make one of the type's calls as the gate judges it, with `more`; return its answer."""
        made_by = TYPES[self.token].calls[number]
        return made_by.make(aws.client(made_by.service), Wanted(self.token, "", inputs), **more)

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        """Bring moto to the new inputs; of a type without more, its tags."""
        if self.tagging is not None:
            self.tagging.bring(aws, existing, inputs)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        """Delete the resource; `missing` errors are taken for success by the provider."""
        if self.deletion is not None:
            self.deletion(aws, existing.id)

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        """Return computed outputs as moto has them now, or None when the resource is gone."""
        if self.lookup is not None:
            self.lookup(aws, existing.id)
        return {}


ADAPTERS: dict[str, Adapter] = {}


def adapts(token: str) -> Callable[[type[Adapter]], type[Adapter]]:
    """Register an adapter for a resource type: `adapts("sqs/queue:Queue")`."""

    def register(adapter: type[Adapter]) -> type[Adapter]:
        adapter.token = f"aws:{token}"
        ADAPTERS[adapter.token] = adapter()
        return adapter

    return register


def missing(error: BaseException) -> bool:
    """Say whether an AWS error means that the resource is not there."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return False
    details = response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    return bool(_MISSING.search(code)) or (
        code == "ValidationError" and bool(_MISSING_MESSAGE.search(message))
    )


def tag_list(tags: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return tags as most of AWS takes them: [{"Key", "Value"}]."""
    return [{"Key": str(key), "Value": str(value)} for key, value in (tags or {}).items()]


def tags_of(inputs: Properties) -> dict[str, str]:
    """Return a resource's own tags with the provider's default tags below them."""
    tags = inputs.get("tagsAll") or inputs.get("tags")
    return {k: str(v) for k, v in tags.items()} if isinstance(tags, Mapping) else {}


def request(client: Any, operation: str, inputs: Properties, *leave_out: str) -> Properties:
    """Return the parameters of an API operation ("CreateVpc") taken from a resource's inputs."""
    shape = client.meta.service_model.operation_model(operation).input_shape
    given = {key: value for key, value in inputs.items() if key not in leave_out}
    return dict(coerce(shape, given))


def has_changed(existing: Existing, inputs: Properties, *names: str) -> bool:
    """Say whether one of these inputs differs from the last update's."""
    return any(existing.inputs.get(name) != inputs.get(name) for name in names)


def tag_changes(existing: Existing, inputs: Properties) -> tuple[dict[str, str], list[str]]:
    """Return the tags that are new or others since the last update, and the keys that are gone."""
    old, new = tags_of(existing.inputs), tags_of(inputs)
    fresh = {key: value for key, value in new.items() if old.get(key) != value}
    return fresh, sorted(set(old) - set(new))


def first(items: Iterable[Any]) -> Any:
    return next(iter(items), None)
