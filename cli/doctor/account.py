"""Reads AWS and Kubernetes for the doctor into a Snapshot: Describe, Get and List calls alone.

Every reader yields the parts it names as it gets them, so that a refusal costs only what comes
after it. Kubernetes is nine lists, with an EKS token. docs/how-to/doctor.md lists the calls; a test
compares.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from cli.aws import pages
from cli.survey import account, balancers, kafka, surroundings, tools
from cli.survey.machines import strimzis_pod
from cli.survey.tools import going, items, labels, name_of, status_of, title_of
from cli.target import Target
from core.checks import facts
from core.checks.balancing import name_in
from core.checks.drift import Expectation
from core.checks.facts import TargetGroup
from core.ground import constants, naming
from core.ground.constants import HOOKS
from core.model.kafka import Volume
from core.model.nodes import LifecycleHook
from handlers.adapters.calls import portions
from handlers.adapters.eks import eks_token
from infra.eks.api import Api, Object

T = TypeVar("T")
Found = tuple[str, Mapping[str, Any]]
# The parts that a reader yields, as it gets them, and the reader.
Reader = tuple[tuple[str, ...], Callable[..., Iterator[Found]]]

# Load balancers answer questions about attributes one group and one listener at a time.
CONNECTIONS = 8
CLIENT = Config(
    connect_timeout=5,
    read_timeout=15,
    retries={"mode": "standard", "total_max_attempts": 5},
    max_pool_connections=4 * CONNECTIONS,
)
NAMES_PER_CALL = 50


def eks_api(session: boto3.Session, eks: Any, name: str, region: str) -> Api:
    """Return the API server that EKS names, asked as the caller."""
    found = eks.describe_cluster(name=name)["cluster"]
    return Api(
        str(found["endpoint"]),
        lambda: eks_token(name, region, session),
        ca_pem=base64.b64decode(found["certificateAuthority"]["data"]).decode(),
    )


def _reader_of(part: str, read: Callable[..., Mapping[str, Any]]) -> Reader:
    """Return a reader of one part alone."""

    def reader(*given: Any) -> Iterator[Found]:
        yield part, read(*given)

    return (part,), reader


class LiveAccount:
    """One account in one region, through the session of a target."""

    def __init__(self, target: Target, expected: Expectation) -> None:
        self._target, self._expected = target, expected.snapshot
        clients: dict[str, Any] = {
            service: target.session.client(service, endpoint_url=target.endpoint_url, config=CLIENT)
            for service in ("autoscaling", "ec2", "elbv2", "sqs", "cloudwatch", "eks", "sts")
        }
        self._scaling, self._ec2 = clients["autoscaling"], clients["ec2"]
        self._balancing, self._sqs = clients["elbv2"], clients["sqs"]
        self._alarms, self._eks, self._sts = (clients[s] for s in ("cloudwatch", "eks", "sts"))

    def number(self) -> str:
        """Return the account's id; the call needs no permission."""
        return str(self._sts.get_caller_identity()["Account"])

    def api(self) -> Api:
        """Return the API server of the target's cluster."""
        spec = self._target.spec
        return eks_api(self._target.session, self._eks, spec.prefix, spec.region)

    def readers(self) -> list[Reader]:
        """Return each reader with the parts it yields."""
        return [
            _reader_of("groups", self._groups),
            _reader_of("hooks", self._hooks),
            (("balancers", "listeners"), self._balancer),
            _reader_of("target_groups", self._target_groups),
            _reader_of("queues", self._queues),
            _reader_of("alarms", self._metric_alarms),
        ]

    def _groups(self) -> Mapping[str, Any]:
        described = account.described_groups(self._scaling, self._expected.groups or ())
        found = [account.scaling_group(each) for each in described]
        subnets = surroundings.subnets(self._ec2, {s for group in found for s in group.subnets})
        zones = {name: subnet.zone for name, subnet in subnets.items()}
        # Where its nodes will really be.
        return {
            g.name: replace(g, zones=frozenset(zones.get(s, s) for s in g.subnets)) for g in found
        }

    def _hooks(self) -> Mapping[str, Any]:
        groups = list(self._expected.groups or ())
        return {
            facts.hook_of(hook.name, group): hook
            for group, hooks in zip(groups, _map_parallel(self._hooks_of, groups), strict=True)
            for hook in hooks
            if hook.name in HOOKS
        }

    def _hooks_of(self, group: str) -> list[LifecycleHook]:
        try:
            return account.hooks(self._scaling, group)
        except ClientError as error:
            return _absent(error, "ValidationError", [])

    def _balancer(self) -> Iterator[Found]:
        (name,) = self._expected.balancers or ("",)
        try:
            found = self._balancing.describe_load_balancers(Names=[name])["LoadBalancers"]
        except ClientError as error:
            found = _absent(error, "LoadBalancerNotFound", [])
        yield (
            "balancers",
            {
                b["LoadBalancerName"]: facts.Balancer(
                    zones=frozenset(zone["ZoneName"] for zone in b["AvailabilityZones"])
                )
                for b in found
            },
        )
        listeners = [
            listener
            for balancer in found
            for listener in pages(
                self._balancing,
                "describe_listeners",
                "Listeners",
                LoadBalancerArn=balancer["LoadBalancerArn"],
            )
        ]
        read = _map_parallel(self._listener, listeners)
        yield (
            "listeners",
            {str(each["Port"]): seen for each, seen in zip(listeners, read, strict=True)},
        )

    def _listener(self, listener: Mapping[str, Any]) -> facts.BalancerListener:
        answer = self._balancing.describe_listener_attributes(ListenerArn=listener["ListenerArn"])
        idle = balancers.attributes(answer).get("tcp.idle_timeout.seconds")
        arns = [a["TargetGroupArn"] for a in listener["DefaultActions"] if "TargetGroupArn" in a]
        return facts.BalancerListener(
            target_group=name_in(arns[0]) if len(arns) == 1 else None,
            idle_timeout_seconds=None if idle is None else int(idle),
        )

    def _target_groups(self) -> Mapping[str, Any]:
        # All of the region's: naming one that is gone would refuse the whole call.
        every = pages(self._balancing, "describe_target_groups", "TargetGroups")
        wanted = self._expected.target_groups or {}
        groups = [group for group in every if group["TargetGroupName"] in wanted]
        return {g.name: g for g in _map_parallel(self._target_group, groups)}

    def _target_group(self, group: Mapping[str, Any]) -> TargetGroup:
        return replace(
            balancers.target_group(self._balancing, group),
            interval_seconds=group["HealthCheckIntervalSeconds"],
            timeout_seconds=group["HealthCheckTimeoutSeconds"],
            healthy_threshold=group["HealthyThresholdCount"],
            unhealthy_threshold=group["UnhealthyThresholdCount"],
        )

    def _queues(self) -> Mapping[str, Any]:
        names = list(self._expected.queues or ())
        read = zip(names, _map_parallel(self._queue, names), strict=True)
        return {name: queue for name, queue in read if queue is not None}

    def _queue(self, name: str) -> facts.Queue | None:
        try:
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs.exceptions.QueueDoesNotExist:
            # By its class: the code is the query protocol's, or JSON's, as the endpoint pleases.
            return None
        found = self._sqs.get_queue_attributes(
            QueueUrl=url,
            AttributeNames=["MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy"],
        )["Attributes"]
        redrive = json.loads(found.get("RedrivePolicy") or "{}")
        dead_letters = str(redrive.get("deadLetterTargetArn", "")).rpartition(":")[2]
        # Nobody receives from dead letters but a person: any visibility timeout will do.
        wanted = (self._expected.queues or {})[name].visibility_seconds
        return facts.Queue(
            retention_seconds=int(found["MessageRetentionPeriod"]),
            visibility_seconds=None if wanted is None else int(found["VisibilityTimeout"]),
            dead_letters=dead_letters or None,
            max_receive_count=int(redrive["maxReceiveCount"]) if redrive else None,
        )

    def _metric_alarms(self) -> Mapping[str, Any]:
        return {
            alarm["AlarmName"]: facts.Alarm(
                acts=bool(alarm["ActionsEnabled"] and alarm["AlarmActions"])
            )
            for names in portions(self._expected.alarms or (), NAMES_PER_CALL)
            for alarm in pages(self._alarms, "describe_alarms", "MetricAlarms", AlarmNames=names)
        }


def _absent(error: ClientError, code: str, instead: T) -> T:
    """Return `instead` for the answer that there is no such thing; raise any other."""
    if error.response["Error"]["Code"] == code:
        return instead
    raise error


def _map_parallel(read: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(read, items))


Item = Mapping[str, Any]


def _listed(api: Api, path: str, **query: object) -> Iterator[Object]:
    prefix, _, kind = path.rpartition("/")
    return items(api, prefix, kind, None, **query)


class KubernetesCluster:
    """What Kubernetes holds of the cluster that is expected; `api` connects to it."""

    def __init__(self, expected: Expectation, api: Callable[[], Api]) -> None:
        self._expected, self.api = expected, api
        self._kafka = quote(expected.namespace)

    def readers(self) -> list[Reader]:
        """Return each reader with the part it yields."""
        return [
            _reader_of("namespaces", self._namespaces),
            _reader_of("bindings", self._bindings),
            _reader_of("services", self._services),
            _reader_of("pods", self._pods),
            _reader_of("volumes", self._volumes),
            _reader_of("budgets", self._budgets),
            (("termination_handlers", "drain_cleaners", "second_handlers"), self._workloads),
            _reader_of("kafkas", self._kafkas),
            _reader_of("connect_bindings", self._connect_bindings),
        ]

    def _namespaces(self, api: Api) -> Mapping[str, Any]:
        listed = _listed(
            api, "/api/v1/namespaces", fieldSelector=f"metadata.name={self._expected.namespace}"
        )
        return {
            name_of(item): facts.Namespace(gate_label=labels(item).get(naming.READINESS_GATE_LABEL))
            for item in listed
        }

    def _bindings(self, api: Api) -> Mapping[str, Any]:
        path = f"/apis/elbv2.k8s.aws/v1beta1/namespaces/{self._kafka}/targetgroupbindings"
        return {name_of(item): _binding(item["spec"]) for item in _listed(api, path)}

    def _services(self, api: Api) -> Mapping[str, Any]:
        return {
            name_of(item): frozenset(
                str(port.get("name", port["port"])) for port in item["spec"].get("ports") or ()
            )
            for item in _listed(api, f"/api/v1/namespaces/{self._kafka}/services")
        }

    def _pods(self, api: Api) -> Mapping[str, Any]:
        listed = _listed(
            api,
            f"/api/v1/namespaces/{self._kafka}/pods",
            labelSelector=f"{naming.CLUSTER_LABEL}={self._expected.cluster}",
        )
        return {name_of(item): strimzis_pod(item) for item in listed if _runs_kafka(item)}

    def _connect_bindings(self, api: Api) -> Mapping[str, Any]:
        name = naming.connect_init_binding(self._expected.namespace, self._expected.cluster)
        listed = _listed(
            api,
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            fieldSelector=f"metadata.name={name}",
        )
        return {name_of(item): True for item in listed}

    def _volumes(self, api: Api) -> Mapping[str, Any]:
        ours = re.compile(rf"data-\d+-{re.escape(self._expected.cluster)}-.+-\d+")
        found = {}
        for item in _listed(api, "/api/v1/persistentvolumes"):
            claim = item["spec"].get("claimRef") or {}
            space, name = str(claim.get("namespace")), str(claim.get("name", ""))
            if space == self._expected.namespace and ours.fullmatch(name):
                reclaim = str(item["spec"].get("persistentVolumeReclaimPolicy"))
                found[name_of(item)] = Volume(namespace=space, claim=name, reclaim=reclaim)
        return found

    def _budgets(self, api: Api) -> Mapping[str, Any]:
        found = tools.budgets_in(api, self._expected.namespace)
        return {each.name: each for each in found}

    def _workloads(self, api: Api) -> Iterator[Found]:
        """Read what drains or rolls beside us, wherever it was installed."""
        listed = list(_listed(api, "/apis/apps/v1/deployments"))
        title = f"{constants.NTH_NAMESPACE}/{constants.NTH_RELEASE}"
        yield (
            "termination_handlers",
            {
                name_of(item): replace(each, down=each.down or not _is_wanted(item))
                for item in listed
                if title_of(item) == title
                for each in tools.handlers([item])
            },
        )
        yield (
            "drain_cleaners",
            {
                each.title: each
                for each in tools.cleaners(listed)
                if each.namespaces is None or self._expected.namespace in each.namespaces
            },
        )
        # Last: a handler whose settings stand in another object costs no other part.
        beside = [item for item in listed if title_of(item) != title]
        beside += _listed(api, "/apis/apps/v1/daemonsets")
        # One that is scaled to none drains nobody.
        found = tools.handlers(filter(_is_wanted, beside))
        yield "second_handlers", {each.title: each for each in found}

    def _kafkas(self, api: Api) -> Mapping[str, Any]:
        found = kafka.kafkas(api, self._expected.namespace)
        return {each.name: each for each in found if each.name == self._expected.cluster}


def _binding(spec: Item) -> facts.Binding:
    named = spec.get("targetGroupARN") or spec.get("targetGroupName", "")
    return facts.Binding(
        target_group=name_in(str(named)),
        service=str(spec["serviceRef"]["name"]),
        port=str(spec["serviceRef"]["port"]),
        target_type=str(spec.get("targetType")),
    )


def _runs_kafka(item: Object) -> bool:
    """Say whether a pod is a node of Kafka's that runs; one that goes or has not begun does not."""
    return (
        status_of(item).get("phase") == "Running"
        and not going(item)
        and naming.node_id_of_pod(name_of(item)) is not None
        and naming.POOL_LABEL in labels(item)
    )


def _is_wanted(workload: Item) -> bool:
    return bool(workload["spec"].get("replicas", 1))
