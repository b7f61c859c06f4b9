"""`Operations` and `EvictionGate` for programs in any language: what operates a Kafka that exists.

Their arguments are a description with the key `adopt` in other words, and are read by its reader:
the same limits, and the same sentences, with the arguments' names.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from core.cluster.adopted import operated_kafka
from core.cluster.adoption import Adoption, parse
from core.cluster.operated import Operated
from core.ground.errors import InvalidInput
from infra import adopt, gate
from infra.adopt import refuse_others
from infra.functions.definition import Scope
from infra.functions.function import server_addresses
from infra.iam import Account
from infra.package import broker_nodes

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
    """How that listener authenticates clients: `none`, `tls` or `scram-sha-512`. `none` by
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
        "eks_cluster": broker_nodes.plain_value(args["eks_cluster"], "eks_cluster"),
        "region": region,
        "kafkas": [
            {
                "called": broker_nodes.plain_value(args["cluster"], "cluster"),
                **_known_values(args, "kafka"),
            }
        ],
        **_known_values(args, "machines"),
        **{key: value for key, value in more.items() if value is not None},
    }
    try:
        adopted = parse({"adopt": section})
    except InvalidInput as error:
        raise InvalidInput([_argument_words(each) for each in error.problems]) from None
    return adopted, operated_kafka(adopted, adopted.kafkas[0])


def gate_section(
    args: Mapping[str, Any], key: str, operators: Sequence[str] | None = None
) -> dict[str, Any] | None:
    """Return the description's section of the eviction gate, where there is an image."""
    image = broker_nodes.plain_value(args.get(key), key)
    if image is None:
        return None
    return {
        "image": image,
        "operators": list(broker_nodes.plain_value(operators, "operators") or ()),
    }


def section_of(args: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a section of the description, whose keys are these arguments; None: it is empty."""
    given = {name: broker_nodes.plain_value(args.get(key), key) for name, key in keys.items()}
    return {name: value for name, value in given.items() if value is not None} or None


def known_ids(given: Sequence[pulumi.Input[str]], late: str) -> list[str]:
    """Return ids as far as they are known now, and what stands for the others."""
    return [
        each if isinstance(each, str) else late.format(place) for place, each in enumerate(given)
    ]


def _known_values(args: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {
        name: broker_nodes.plain_value(value, f"{key}.{name}")
        for name, value in broker_nodes.plain_value(args[key], key).items()
    }


def _argument_words(sentence: str) -> str:
    return _PLACES.sub(lambda found: _CALLED[found[0]], sentence)


OPERATIONS_TYPE = "stillwater:index:Operations"
LEVELS = ("watch", "gate", "act")
SLACK = {"channel": "slack_channel", "secret_name": "slack_secret_name"}


class OperationsArgs(TypedDict):
    level: str
    """How much may be done: `watch`, `gate` or `act`."""
    cluster: str
    """The prefix of every name, such as shop-orders."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    kafka: Kafka
    """The one Kafka that is meant."""
    machines: Machines
    """What holds its nodes: one kind of machines at least."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Where the functions stand: subnets from which the API server, the listener and AWS's own
    addresses are reached."""
    security_group_ids: Sequence[pulumi.Input[str]]
    """The functions' security groups: the API server and the brokers must admit them."""
    drainer: NotRequired[str]
    """Whose termination handler drains at `act`: `theirs`, `ours`, or `none`, where the functions
    evict. `theirs` by default."""
    queue_url: NotRequired[str]
    """The queue of their termination handler. `act` with `theirs` needs it."""
    gate_image: NotRequired[str]
    """The eviction gate's image with its version. `gate` needs it; at `act` a gate is made where it
    is given."""
    gate_elsewhere: NotRequired[bool]
    """Whether an `EvictionGate` of yours is that gate, so that none is made here. Off by
    default."""
    slack_channel: NotRequired[str]
    """Slack's id of the channel for incidents."""
    slack_secret_name: NotRequired[str]
    """The secret in Secrets Manager with the bot's token. The channel needs it."""
    alerts_topic_arn: NotRequired[str]
    """A topic of SNS that hears of alarms. Without it there are none."""


class Operations(pulumi.ComponentResource):
    """The ledger, queues, rules and functions of one Kafka.

    The `operations` stack of a description makes the same. `watch` changes nothing of the
    cluster's. At `gate` an eviction gate answers. At `act` the named Auto Scaling groups get hooks
    and a tag.

    It needs a `kubernetes` provider of that cluster and one of AWS. The groups must exist
    before."""

    ledger_table: pulumi.Output[str]
    """The table in which incidents are kept."""
    events_queue_url: pulumi.Output[str]
    """The queue on which announcements arrive."""
    ticks_queue_url: pulumi.Output[str]
    """The queue that asks for the next step of an incident."""
    incidents_bucket: pulumi.Output[str]
    """The bucket in which closed incidents are filed: what `Report` is given."""

    def __init__(
        self, name: str, args: OperationsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(OPERATIONS_TYPE, name, None, opts)
        account = Account.current(pulumi.InvokeOptions(parent=self))
        subnets = broker_nodes.names(args, "subnet_ids")
        groups = broker_nodes.names(args, "security_group_ids")
        level = broker_nodes.one_of(args, "level", LEVELS)
        description, cluster = adoption_of(
            args,
            account.region,
            level=level,
            subnets=known_ids(subnets, LATE_SUBNET),
            security_groups=known_ids(groups, LATE_SECURITY_GROUP),
            drainer=args.get("drainer"),
            queue_url=args.get("queue_url"),
            eviction_gate=gate_section(args, "gate_image"),
            slack=section_of(args, SLACK),
            alerts=section_of(args, {"sns_topic_arn": "alerts_topic_arn"}),
        )
        if level != "watch":
            refuse_others(
                description.scaling_groups, {cluster.prefix}, pulumi.InvokeOptions(parent=self)
            )
        made = adopt.Operations(
            name,
            adopt.OperationsArgs(
                cluster=cluster,
                account=account,
                groups=description.matched,
                endpoint=args["endpoint"],
                authority=args["certificate_authority"],
                bootstrap=description.kafkas[0].bootstrap or "",
                subnet_ids=subnets,
                security_group_ids=groups,
                makes_gate=not broker_nodes.yes(args, "gate_elsewhere"),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.ledger_table = made.ledger_table
        self.events_queue_url = made.events_queue_url
        self.ticks_queue_url = made.ticks_queue_url
        self.incidents_bucket = made.incidents_bucket
        self.register_outputs(
            {
                "ledgerTable": self.ledger_table,
                "eventsQueueUrl": self.events_queue_url,
                "ticksQueueUrl": self.ticks_queue_url,
                "incidentsBucket": self.incidents_bucket,
            }
        )


GATE_TYPE = "stillwater:index:EvictionGate"
GATE_LEVELS = ("gate", "act")


class EvictionGateArgs(TypedDict):
    cluster: str
    """The prefix of `Operations`."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    kafka: Kafka
    """The one Kafka that is meant."""
    machines: Machines
    """What holds its nodes: the gate's pods run off them, where there are others."""
    image: str
    """The gate's image with its version: `docker build --target gate` of this repository."""
    ledger_table: pulumi.Input[str]
    """The ledger of `Operations`."""
    ticks_queue_url: pulumi.Input[str]
    """The queue of `Operations` that asks for the next step of an incident."""
    level: NotRequired[str]
    """The level of `Operations`: `gate` or `act`. `gate` by default."""
    drainer: NotRequired[str]
    """The drainer of `Operations`."""
    queue_url: NotRequired[str]
    """The queue of `Operations` of their termination handler."""
    operators: NotRequired[Sequence[str]]
    """Accounts whose deletions of Kafka's pods the webhook allows, in addition to Strimzi's own
    next to its Kafka: `system:serviceaccount:NAMESPACE:NAME`.
    """


class EvictionGate(pulumi.ComponentResource):
    """Two replicas that the API server asks before it evicts a pod of Kafka's.

    They run off Kafka's machines.

    For an `Operations` at `gate` or `act` whose `gateElsewhere` is set: in a program of its own,
    such as the one that has the cluster's `kubernetes` provider."""

    service: pulumi.Output[str]
    """The gate's name in the namespace `kube-system`."""

    def __init__(
        self, name: str, args: EvictionGateArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(GATE_TYPE, name, None, opts)
        account = Account.current(pulumi.InvokeOptions(parent=self))
        description, cluster = adoption_of(
            args,
            account.region,
            level=broker_nodes.one_of(args, "level", GATE_LEVELS, "gate"),
            # No function stands in any here.
            subnets=[LATE_SUBNET.format(0)],
            security_groups=[LATE_SECURITY_GROUP.format(0)],
            drainer=args.get("drainer"),
            queue_url=args.get("queue_url"),
            eviction_gate=gate_section(args, "image", args.get("operators")),
        )
        gate.EvictionGate(
            name,
            Scope(cluster=cluster, account=account),
            {
                "ledger_table": args["ledger_table"],
                "ticks_queue_url": args["ticks_queue_url"],
                **server_addresses(
                    cluster.eks_cluster,
                    args["endpoint"],
                    args["certificate_authority"],
                    description.kafkas[0].bootstrap or "",
                ),
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.service = pulumi.Output.from_input(cluster.gate_name)
        self.register_outputs({"service": self.service})
