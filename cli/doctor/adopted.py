"""Reads what a description of a cluster that exists names, for core.checks.adopted.

The readers are the survey's: a description of many names costs no more calls than one of few.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli import aws
from cli.answers import answer_or_reason, then
from cli.aws import pages
from cli.doctor.account import eks_api
from cli.doctor.examine import Diagnosis, Machines, surroundings_findings
from cli.survey import account, kafka, machines, tools
from cli.survey.account_parts import queues as queues_of
from cli.survey.kafka import lapsed_trust
from cli.survey.tools import NOT_FOUND, items, labels, one, served_versions
from core.checks.adopted import Standing, StandingGate, findings, secrets_named, unread_parts
from core.checks.finding import unknown, worst_first
from core.cluster import adoption
from core.cluster.adopted import operated_kafka
from core.cluster.adoption import Adoption, Level
from core.ground import naming
from core.ground.errors import InvalidInput
from core.ground.fields import mapping_of
from infra import spec
from infra.alerts import alarms
from infra.eks.api import Api, ApiError, Object

GATE_NAMESPACE = "kube-system"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def examine(path: Path) -> Diagnosis:
    """Read what a description names and compare; raise StillwaterError without an identity."""
    started = time.monotonic()
    found = spec.load_yaml(path)
    adopted = adoption.parse(found.content, found.locate)
    if adopted.level is Level.SURVEY:
        raise InvalidInput(
            ["adopt.level is survey, and nothing of ours is there; `stillwater survey` judges it."]
        )
    session = aws.session(region=adopted.region)
    with aws.require_login(f"the account of {adopted.eks_cluster}"):
        number = str(_client(session, "sts").get_caller_identity()["Account"])
    ours, queues = _ours(adopted)
    standing = _read(adopted, session, ours, queues)
    return Diagnosis(
        environment=str(path),
        cluster=adopted.eks_cluster,
        account=number,
        region=adopted.region,
        seconds=time.monotonic() - started,
        findings=worst_first(
            [
                *findings(adopted, standing, ours, queues),
                *(unknown(part, why) for part, why in unread_parts(standing)),
                *surroundings_findings(session, _machines(adopted, number)),
            ]
        ),
    )


def _machines(adopted: Adoption, number: str) -> Machines:
    return Machines(
        eks_cluster=adopted.eks_cluster,
        region=adopted.region,
        groups=adopted.scaling_groups,
        node_groups=adopted.managed_node_groups,
        node_pools=adopted.node_pools,
        function_subnets=adopted.subnets,
        called=_called_services(adopted, number),
    )


def _called_services(adopted: Adoption, number: str) -> frozenset[str]:
    """Return the services of AWS's that functions in the description's subnets call."""
    # Pulumi takes seconds to import, and nothing else here needs it.
    from infra import iam  # noqa: PLC0415
    from infra.functions.catalogue import functions  # noqa: PLC0415
    from infra.functions.definition import Scope  # noqa: PLC0415

    account_of = iam.Account(partition="aws", region=adopted.region, account_id=number)
    clusters = [operated_kafka(adopted, each) for each in adopted.kafkas]
    actions = (
        action
        for cluster in clusters
        for function in functions(cluster)
        # One that asks nobody in the cluster stands outside the VPC.
        if function.kubernetes is not None
        for statement in function.may(Scope(cluster=cluster, account=account_of))
        for action in statement.actions
    )
    # A key is used for them by SNS, which they ask.
    return frozenset(action.partition(":")[0] for action in actions) - {"kms"}


def _client(session: boto3.Session, service: str) -> Any:
    made: Any = session
    return made.client(service, config=aws.PATIENCE)


def _ours(adopted: Adoption) -> tuple[dict[str, str], dict[str, str]]:
    """Return the functions and queues of ours that are to be there, by name: of which Kafka."""
    ours: dict[str, str] = {}
    queues: dict[str, str] = {}
    for each in adopted.kafkas:
        cluster = operated_kafka(adopted, each)
        ours |= {
            naming.function(cluster.prefix, role): each.title for role in alarms.functions(cluster)
        }
        queues |= dict.fromkeys(alarms.queues(cluster), each.title)
    return ours, queues


def _read(
    adopted: Adoption, session: boto3.Session, ours: Iterable[str], queues: Iterable[str]
) -> Standing:
    eks = _client(session, "eks")
    api = answer_or_reason(eks_api, session, eks, adopted.eks_cluster, adopted.region)
    workloads = then(api, tools.workloads)
    handlers = then(workloads, tools.handlers)
    urls = () if adopted.queue_url is None else (adopted.queue_url,)
    groups = answer_or_reason(
        lambda: account.groups(_client(session, "autoscaling"), adopted.scaling_groups)
    )
    pools = then(api, machines.node_pools)
    kafkas = then(api, lambda found: {k.title: k for k in kafka.kafkas(found, None)})
    return Standing(
        groups=groups,
        node_groups=answer_or_reason(
            lambda: frozenset(
                pages(eks, "list_nodegroups", "nodegroups", clusterName=adopted.eks_cluster)
            )
        ),
        node_pools=then(pools, frozenset),
        node_labels=then(
            api,
            lambda found: frozenset(
                key for node in items(found, "/api/v1", "nodes") for key in labels(node)
            ),
        ),
        kafkas=then(
            kafkas, lambda found: frozenset(f"{k.namespace}/{k.name}" for k in found.values())
        ),
        secrets=then(api, lambda found: _secrets(found, secrets_named(adopted))),
        handlers=handlers,
        handler_queues=answer_or_reason(lambda: _standing_queues(session, urls, by_url=True)),
        fed=then(
            handlers if adopted.level is Level.ACT else (),
            lambda found: queues_of(lambda service: _client(session, service), found),
        ),
        operators=then(
            workloads,
            lambda found: frozenset(
                operator.account
                for operator in tools.operators(found)
                if any(operator.watches(each.namespace) for each in adopted.kafkas)
            ),
        ),
        functions=answer_or_reason(lambda: _functions(session, ours)),
        queues=answer_or_reason(lambda: _standing_queues(session, queues)),
        gates=then(api, lambda found: _gates(adopted, found)),
        pod_set_versions=then(api, lambda found: served_versions(found, kafka.POD_SETS)),
        going=frozenset(
            [each.title for each in mapping_of(groups).values() if each.deleting]
            + [f"NodePool {name}" for name, each in mapping_of(pools).items() if each.leaving]
            + [title for title, each in mapping_of(kafkas).items() if each.leaving]
        ),
    )


def _secrets(api: Api, wanted: Iterable[str]) -> frozenset[str]:
    """Return those that are there; what stands in them is not read."""
    found = set()
    for title in wanted:
        namespace, _, name = title.partition("/")
        try:
            api.metadata(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
        else:
            found.add(title)
    return frozenset(found)


def _functions(session: boto3.Session, wanted: Iterable[str]) -> frozenset[str]:
    client = _client(session, "lambda")
    found = set()
    for name in wanted:
        try:
            client.get_function_configuration(FunctionName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            continue
        found.add(name)
    return frozenset(found)


def _standing_queues(
    session: boto3.Session, wanted: Iterable[str], *, by_url: bool = False
) -> frozenset[str]:
    client = _client(session, "sqs")
    found = set()
    for each in wanted:
        try:
            if by_url:
                client.get_queue_attributes(QueueUrl=each, AttributeNames=["QueueArn"])
            else:
                client.get_queue_url(QueueName=each)
        except client.exceptions.QueueDoesNotExist:
            continue
        found.add(each)
    return frozenset(found)


def _gates(adopted: Adoption, api: Api) -> dict[str, StandingGate]:
    names = [naming.adopted_gate(adopted.called(each)) for each in adopted.kafkas]
    found = {}
    for name in names:
        deployment = one(api, f"/apis/apps/v1/namespaces/{GATE_NAMESPACE}/deployments/{name}")
        if deployment is not None:
            found[name] = _gate(deployment, one(api, f"{WEBHOOKS}/{name}"))
    return found


def _gate(deployment: Object, webhook: Mapping[str, Any] | None) -> StandingGate:
    asked = [] if webhook is None else webhook.get("webhooks") or []
    now = time.time()
    return StandingGate(
        available=int((deployment.get("status") or {}).get("availableReplicas") or 0),
        image=str(deployment["spec"]["template"]["spec"]["containers"][0]["image"]),
        trusted=bool(asked)
        and all(
            each["clientConfig"].get("caBundle") and not lapsed_trust(each["clientConfig"], now)
            for each in asked
        ),
    )
