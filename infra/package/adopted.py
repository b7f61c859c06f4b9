"""The facts of a Kafka that exists, which `Operations` and `EvictionGate` both take.

They are a description with the key `adopt` in other words, and are read by its reader: the same
limits, and the same sentences, with the arguments' names.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from core.cluster.adopted import operated_kafka
from core.cluster.adoption import Adoption, parse
from core.cluster.operated import Operated
from core.errors import InvalidInput
from infra.package import facts

# Functions stand before an id that a resource of the program's makes: it has this form.
LATE_SUBNET, LATE_SECURITY_GROUP = "subnet-{:08x}", "sg-{:08x}"


class Kafka(TypedDict):
    namespace: str
    """The namespace of Strimzi's Kafka resource."""
    name: str
    """Its name there."""
    bootstrap: str
    """HOST:PORT of a listener that can be reached from the subnets; several with commas."""
    authentication: NotRequired[str]
    """How that listener asks who somebody is: `none`, `tls` or `scram-sha-512`. `none` by
    default."""
    tls: NotRequired[bool]
    """Whether it is encrypted. On by default."""
    credentials_secret: NotRequired[str]
    """The Secret of a KafkaUser, in the same namespace, which is spoken as."""
    authority_secret: NotRequired[str]
    """The Secret with the brokers' authority. By default Strimzi's own."""


class Machines(TypedDict):
    scaling_groups: NotRequired[Sequence[str]]
    """Auto Scaling groups that hold Kafka's nodes, by name. At `act` they get hooks and a tag."""
    managed_node_groups: NotRequired[Sequence[str]]
    """EKS's managed node groups that do."""
    node_pools: NotRequired[Sequence[str]]
    """Karpenter's or Auto Mode's NodePools that do."""
    pool_label: NotRequired[str]
    """The node label that tells pools apart. Groups need it."""


# The description's places, and what they are called as arguments; the longest first.
_CALLED = {
    "adopt.eviction_gate.image": "image",
    "eviction_gate.image": "image",
    "adopt.eviction_gate": "gateImage",
    "kafkas.0.called": "cluster",
    "kafkas.0.": "kafka.",
    "slack.channel": "slackChannel",
    "slack.secret_name": "slackSecretName",
    "adopt.": "",
    "scaling_groups": "machines.scalingGroups",
    "managed_node_groups": "machines.managedNodeGroups",
    "node_pools": "machines.nodePools",
    "pool_label": "machines.poolLabel",
    "security_groups": "securityGroupIds",
    "subnets": "subnetIds",
    "eks_cluster": "eksCluster",
    "queue_url": "queueUrl",
    "credentials_secret": "credentialsSecret",
    "authority_secret": "authoritySecret",
}
_PLACES = re.compile("|".join(rf"(?<![\w.]){re.escape(place)}" for place in _CALLED))


def adoption_of(args: Mapping[str, Any], region: str, **more: Any) -> tuple[Adoption, Operated]:
    """Return the description that the arguments are, and what is operated by it."""
    section = {
        "eks_cluster": facts.plain_value(args["eks_cluster"], "eks_cluster"),
        "region": region,
        "kafkas": [
            {
                "called": facts.plain_value(args["cluster"], "cluster"),
                **_known_values(args, "kafka"),
            }
        ],
        **_known_values(args, "machines"),
        **{key: value for key, value in more.items() if value is not None},
    }
    try:
        adopted = parse({"adopt": section})
    except InvalidInput as error:
        raise InvalidInput([_in_arguments(each) for each in error.problems]) from None
    return adopted, operated_kafka(adopted, adopted.kafkas[0])


def gate(
    args: Mapping[str, Any], key: str, operators: Sequence[str] | None = None
) -> dict[str, Any] | None:
    """Return the description's section of the eviction gate, where there is an image."""
    image = facts.plain_value(args.get(key), key)
    if image is None:
        return None
    return {"image": image, "operators": list(facts.plain_value(operators, "operators") or ())}


def slack(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return its section of Slack, where there is a channel or a secret."""
    given = {
        "channel": facts.plain_value(args.get("slack_channel"), "slack_channel"),
        "secret_name": facts.plain_value(args.get("slack_secret_name"), "slack_secret_name"),
    }
    section = {key: value for key, value in given.items() if value is not None}
    return section or None


def alerts(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return its section of alerts, where there is a topic."""
    topic = facts.plain_value(args.get("alerts_topic_arn"), "alerts_topic_arn")
    return None if topic is None else {"sns_topic_arn": topic}


def ids(given: Sequence[pulumi.Input[str]], late: str) -> list[str]:
    """Return ids as far as they are known now, and what stands for the others."""
    return [
        each if isinstance(each, str) else late.format(place) for place, each in enumerate(given)
    ]


def _known_values(args: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {
        name: facts.plain_value(value, f"{key}.{name}")
        for name, value in facts.plain_value(args[key], key).items()
    }


def _in_arguments(sentence: str) -> str:
    return _PLACES.sub(lambda found: _CALLED[found[0]], sentence)
