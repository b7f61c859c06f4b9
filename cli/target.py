"""Finds which cluster is meant, and opens it as the caller: spec, session, ledger, functions.

The twin's are in its own directory. `FILE.yaml`, or `FILE.yaml#PREFIX` of one Kafka of several,
means a cluster that exists. Any other environment is that of the stacks' settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal

import boto3
from botocore.config import Config

from cli import aws, stack_settings
from cli.aws import out_of_reach
from core.cluster import ClusterSpec, adoption, parse
from core.cluster.operation import Timings
from core.ground import naming
from core.ground.errors import Conflict, InvalidInput, StillwaterError, one_line
from core.ground.fields import instance_in
from core.ground.naming import TWIN_ENVIRONMENT
from core.incidents.record import Incident
from handlers.adapters.aws import tick_message
from handlers.adapters.calls import NO_ANSWER
from handlers.store.documents import Pauses
from handlers.store.ledger import Ledger, incident_in, rounds
from handlers.store.table import Records
from infra import spec as specs
from infra.spec import load_yaml

SUFFIXES = {".yaml", ".yml", ".json"}
MOST_ATTEMPTS = 5
# Longer than a function may run, and asked once: asked again it would begin anew.
PATIENCE = Config(read_timeout=120, retries={"total_max_attempts": 1})
# Key -> the kind of its value: what of an answer is shown.
Shape = Mapping[str, type | UnionType]


@dataclass(frozen=True)
class DescribedKafka:
    """One Kafka of a description, as far as its ledger's readers ask."""

    environment: str
    prefix: str
    name: str
    region: str
    timings: Timings
    eks_cluster: str
    namespace: str
    gate: Literal["isr", "ready"] = "isr"


@dataclass(frozen=True)
class Cluster:
    """One cluster as the caller reaches it: its ledger, its queues and its functions."""

    spec: ClusterSpec | DescribedKafka
    session: Any
    # None: AWS's own, or what the caller's environment says.
    endpoint_url: str | None = None
    # Who asks, where that is known; None: AWS is asked.
    asker: str | None = None

    @classmethod
    def named(cls, environment: str) -> Cluster:
        """Return the running twin's for `local`, a description's, or the stacks' settings'."""
        if not is_description(environment):
            return find(environment)
        known = find_kafka(environment)
        return Cluster(known, aws.session(region=known.region))

    @property
    def own_spec(self) -> ClusterSpec:
        """Return the spec of a cluster that our stacks made; raise InvalidInput of another."""
        if isinstance(self.spec, ClusterSpec):
            return self.spec
        raise InvalidInput(
            [f"{self.spec.prefix} is a cluster that exists; this is for those our stacks made."]
        )

    @cached_property
    def _clients(self) -> aws.Clients:
        return aws.Clients(partial(self.session.client, endpoint_url=self.endpoint_url))

    def client(self, service: str, config: Config | None = None) -> Any:
        return self._clients(service) if config is None else self._clients(service, config=config)

    @property
    def table(self) -> str:
        return naming.ledger_table(self.spec.prefix)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.table, self.spec.name, self.spec.region, client=self.client("dynamodb"))

    def incidents(self, *, closed: bool) -> list[Incident]:
        """Return the open incidents, or all the table still holds; the newest last."""
        if not closed:
            return sorted(self.ledger.open_incidents(), key=lambda each: each.opened_at)
        pages = (
            self.client("dynamodb")
            .get_paginator("scan")
            .paginate(
                TableName=self.table,
                FilterExpression="begins_with(pk, :prefix)",
                ExpressionAttributeValues={":prefix": {"S": "incident#"}},
            )
        )
        found = [incident_in(item) for page in pages for item in page["Items"]]
        return sorted(found, key=lambda each: each.opened_at)

    def latest(self, incident_or_instance: str) -> Incident:
        """Return an incident by its id, or the latest of an instance."""
        exact = self.ledger.get(incident_or_instance)
        is_incident = "." in incident_or_instance or exact is None
        found = exact if is_incident else rounds(self.ledger, incident_or_instance)[-1]
        if found is not None:
            return found
        what = "instance" if instance_in(incident_or_instance) else "incident"
        problem = (
            f"The ledger {self.table} knows no {what} {incident_or_instance}; "
            f"`stillwater incidents {self.spec.environment} --all` lists what it holds."
        )
        raise InvalidInput([problem])

    def wish(self, incident_or_instance: str, change: Callable[[Incident], Incident]) -> Incident:
        """Write what a person wants over the newest version, and have the loop look at once."""
        for _ in range(MOST_ATTEMPTS):
            current = self.latest(incident_or_instance)
            try:
                written = self.ledger.put(change(current))
            except Conflict:
                # A tick was faster, unless it is the wish itself that comes too late.
                if self.latest(incident_or_instance).version == current.version:
                    raise
                continue
            self.send_tick(tick_message(written.id, written.version))
            return written
        raise Conflict(f"Incident {incident_or_instance} kept changing; try again in a moment.")

    def send_tick(self, message: str) -> None:
        """Have the loop look at once."""
        sqs = self.client("sqs")
        queue = naming.queue(self.spec.prefix, "ticks")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=message)

    @property
    def records(self) -> Records:
        """Return the single documents of the ledger's table."""
        return Records(self.table, self.spec.region, client=self.client("dynamodb"))

    @property
    def pauses(self) -> Pauses:
        return Pauses(self.records, self.spec.name)

    @property
    def actor(self) -> str:
        """Return who asks, as AWS knows them: the last part of the caller's ARN."""
        if self.asker is not None:
            return self.asker
        arn = str(self.client("sts").get_caller_identity()["Arn"])
        return arn.rpartition("/")[2].rpartition(":")[2]

    def invoke(self, role: str, event: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return what a function answers; raise StillwaterError without an answer of ours."""
        name = naming.function(self.spec.prefix, role)
        try:
            answer = self.client("lambda", PATIENCE).invoke(
                FunctionName=name, Payload=json.dumps(event or {}).encode()
            )
            decoded = json_object(answer["Payload"].read())
        except NO_ANSWER as error:
            raise StillwaterError(
                f"λ {name} could not be invoked: {one_line(error)}. {self.maker} makes it, and you "
                f"need lambda:InvokeFunction on it."
            ) from None
        if answer.get("FunctionError"):
            said = decoded.get("errorMessage", "it said nothing")
            raise StillwaterError(f"λ {name} failed ({said}); its log is /aws/lambda/{name}.")
        if not decoded:
            raise self.unreadable(role)
        return decoded

    def unreadable(self, role: str) -> StillwaterError:
        """Return the error of an answer that no function of this release gives."""
        return StillwaterError(
            f"λ {naming.function(self.spec.prefix, role)} answered in a form that this release "
            f"cannot read. It may have another version; {self.maker} brings it to this one."
        )

    @property
    def maker(self) -> str:
        """Return the command that makes its functions: our stacks', or of a cluster that exists."""
        own = isinstance(self.spec, ClusterSpec)
        return "`stillwater up`" if own else "`pulumi up` of its operations stack"


@dataclass(frozen=True)
class Target(Cluster):
    """A cluster that our stacks made, or make."""

    spec: ClusterSpec


def find(environment: str) -> Target:
    """Return the running twin for `local`, else what the stacks' settings describe."""
    return find_twin() if environment == TWIN_ENVIRONMENT else find_described(environment)


def find_described(environment: str) -> Target:
    """Return an environment as its stacks' settings describe it, under the caller's identity."""
    found = stack_settings.read_described(environment)
    return Target(found.spec, aws.session(found.profile, found.spec.region))


def find_twin() -> Target:
    """Return the twin that `up` keeps, or that STILLWATER_TWIN names, as its administrator."""
    from local import environment  # noqa: PLC0415 - a real account needs no twin
    from local.demo import spec as demo_spec  # noqa: PLC0415
    from local.twin import meant_place  # noqa: PLC0415

    place = meant_place()
    variables = environment.with_credentials(place)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    spec = parse(specs.content(demo_spec.path(place)))
    return Target(spec, session, variables["AWS_ENDPOINT_URL"])


def is_description(named: str) -> bool:
    """Say whether a file is named, where else an environment is."""
    return Path(named.partition("#")[0]).suffix in SUFFIXES


def find_kafka(named: str) -> DescribedKafka:
    """Return the Kafka that is meant; raise InvalidInput where a file has several."""
    file, _, prefix = named.partition("#")
    found = load_yaml(Path(file))
    adopted = adoption.parse(found.content, found.locate)
    known = {
        called: DescribedKafka(
            named,
            called,
            each.name,
            adopted.region,
            adopted.timings,
            adopted.eks_cluster,
            each.namespace,
        )
        for each in adopted.kafkas
        if (called := adopted.called(each))
    }
    if prefix in known:
        return known[prefix]
    if len(known) == 1 and not prefix:
        return next(iter(known.values()))
    listed = ", ".join(f"{file}#{each}" for each in known)
    what = f"names no {prefix}" if prefix else f"has {len(known)} Kafkas"
    raise InvalidInput([f"{file} {what}; name one of {listed}."])


@contextmanager
def readable_ledger() -> Iterator[None]:
    """Turn what AWS refuses of the ledger into a sentence."""
    try:
        yield
    except NO_ANSWER as error:
        raise StillwaterError(
            out_of_reach("The ledger could not be read or written.", error)
        ) from None


def json_object(written: bytes | str) -> Mapping[str, Any]:
    """Return a JSON object, or nothing where it is none."""
    try:
        found = json.loads(written)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def has_shape(answer: object, shape: Shape) -> bool:
    """Say whether an answer, or a part of one, has all of a shape.

    >>> has_shape({"said": "Done."}, {"said": str}), has_shape({"said": None}, {"said": str})
    (True, False)
    """
    return isinstance(answer, dict) and all(
        key in answer and isinstance(answer[key], kind) for key, kind in shape.items()
    )
