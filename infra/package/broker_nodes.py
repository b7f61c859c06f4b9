"""Serves `BrokerNodes` and `Hooks` to programs in any language, and checks what they were passed.

Pulumi reads the annotations and the sentences below them into the schema, so annotations here are
types and never strings. A schema binds the languages with types, but the engine hands over whatever
was written: a number is always a float, and a name may be an output that is not known yet.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi

from core.cluster import tagging
from core.cluster.adopted_names import CALLED
from core.cluster.operation import Timings
from core.ground.constants import HOOKS
from core.ground.errors import InvalidInput
from core.ground.naming import CLUSTER_TAG, kafka_node_pool
from infra.eks.launch import ClusterAccess
from infra.nodes import groups
from infra.tags import Tags

# A resource of Pulumi's and a key of ours stand in its name.
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KEYS = "letters, digits, '.', '_' and '-'"
EKS_CLUSTER = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


def text(
    given: Mapping[str, Any],
    key: str,
    form: re.Pattern[str],
    example: str,
    default: str | None = None,
) -> str:
    """Return a value that names what is made, and so must be known before anything is."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be like {example}."])
    return value


def optional(given: Mapping[str, Any], key: str) -> str | None:
    """Return a text that may be left out."""
    value = plain_value(given.get(key), key)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be a text."])
    return value


def one_of(
    given: Mapping[str, Any], key: str, choices: Sequence[str], default: str | None = None
) -> str:
    """Return one of a few words."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    if value not in choices:
        raise InvalidInput(
            [f"{_argument(key)} is {value!r}; it must be one of {', '.join(choices)}."]
        )
    return str(value)


def whole_number(
    given: Mapping[str, Any], key: str, least: int, most: int, default: int | None = None
) -> int:
    """Return a whole number within its limits."""
    value = plain_value(given[key] if default is None else given.get(key, default), key)
    # The engine writes 900 as 900.0.
    whole_number = int(value) if isinstance(value, float) and value.is_integer() else value
    sized = isinstance(whole_number, int) and not isinstance(whole_number, bool)
    if not sized or not least <= whole_number <= most:
        problem = f"it must be a whole number from {least} to {most}."
        raise InvalidInput([f"{_argument(key)} is {whole_number!r}; {problem}"])
    return int(whole_number)


def yes(given: Mapping[str, Any], key: str) -> bool:
    """Return a switch, which is off unless it was set."""
    value = plain_value(given.get(key, False), key)
    if not isinstance(value, bool):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be true or false."])
    return value


def names(given: Mapping[str, Any], key: str) -> list[pulumi.Input[str]]:
    """Return names or ids, at least one; each may be known later."""
    value = plain_value(given[key], key)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must have at least one entry."])
    problems = [
        f"{_argument(key)}[{place}] is {each!r}; it must be a name."
        for place, each in enumerate(value)
        if not _is_name(each)
    ]
    if problems:
        raise InvalidInput(problems)
    return list(value)


def tags(given: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return tags of the program's own, which may be left out."""
    value = plain_value(given.get(key), key) or {}
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InvalidInput([f"{_argument(key)} is {value!r}; it must be texts by name."])
    if problems := tagging.problems(value):
        raise InvalidInput([f"{each}." for each in problems])
    return dict(sorted(value.items()))


def bill_tags(given: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the tags that mean a Kafka and its pools on the bill, which may be left out."""
    cluster, pool = optional(given, "cluster_tag"), optional(given, "pool_tag")
    for key, value in (("cluster_tag", cluster), ("pool_tag", pool)):
        if value is not None and tagging.bill_characters(value):
            wrong = " ".join(map(repr, tagging.bill_characters(value)))
            raise InvalidInput(
                [f"{_argument(key)} is {value!r}, and no tag has {wrong}; write it as it is."]
            )
    return cluster, pool


def names_by_key(
    given: Mapping[str, Any], key: str, form: re.Pattern[str] = KEY, allowed: str = KEYS
) -> dict[str, pulumi.Input[str]]:
    """Return names by keys of the program's own; the names may be known later."""
    value = plain_value(given[key], key)
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput(
            [f"{_argument(key)} is {value!r}; it must have at least one entry, like {{a: a-name}}."]
        )
    problems = [
        f"{_argument(key)} has the key {each!r}; keys are {allowed}."
        for each in value
        if form.fullmatch(each) is None
    ]
    problems += [
        f"{_argument(key)}.{each} is {name!r}; it must be a name."
        for each, name in value.items()
        if not _is_name(name)
    ]
    if problems:
        raise InvalidInput(problems)
    return dict(sorted(value.items()))


def plain_value(value: Any, key: str) -> Any:
    """Return a value that decides what is made; one that another resource makes comes too late."""
    if isinstance(value, pulumi.Output) or value == pulumi.UNKNOWN:
        problem = (
            f"{_argument(key)} is another resource's output; it decides what is made, so write the "
            f"value itself."
        )
        raise InvalidInput([problem])
    return value


def awaited_resources(opts: pulumi.ResourceOptions | None) -> Sequence[pulumi.Resource]:
    """Return what the program wants made first: an order does not reach a component's children."""
    found = opts.depends_on if opts is not None else None
    return [each for each in (found or []) if isinstance(each, pulumi.Resource)]  # type: ignore[union-attr]


def _is_name(value: Any) -> bool:
    return isinstance(value, pulumi.Output) or (isinstance(value, str) and bool(value))


def _argument(key: str) -> str:
    """Return an argument's name as its schema has it."""
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


HOOKS_TYPE = "stillwater:index:Hooks"
CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
# What Auto Scaling takes for a heartbeat.
SHORTEST_SECONDS, LONGEST_SECONDS = 30, 7200


class HooksArgs(TypedDict):
    scaling_groups: Mapping[str, pulumi.Input[str]]
    """Auto Scaling groups by name, each below a key of yours; another group's output may be a name.
    The keys decide which hooks there are and stand in their names."""
    cluster: str
    """Whose hooks these are: the value of the tag `stillwater:cluster` on each group."""
    heartbeat_timeout_seconds: int
    """How long a machine waits without a heartbeat before it is kept (ABANDON): 30 to 7200."""


class Hooks(pulumi.ComponentResource):
    """The lifecycle hooks `drain` and `gate` on Auto Scaling groups that stay as they are, and the
    tag that says whose they are.

    A hook without the functions that answer it keeps every machine that terminates: name those in
    `dependsOn`."""

    hook_names: pulumi.Output[list[str]]
    """The hooks' names, in the order of their completion."""

    def __init__(
        self, name: str, args: HooksArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(HOOKS_TYPE, name, None, opts)
        seconds = whole_number(args, "heartbeat_timeout_seconds", SHORTEST_SECONDS, LONGEST_SECONDS)
        groups.Hooks(
            name,
            groups.HooksArgs(
                scaling_groups=names_by_key(args, "scaling_groups"),
                heartbeat_timeout_seconds=seconds,
                cluster=text(args, "cluster", CLUSTER, "shop-orders"),
                answering=awaited_resources(opts),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.hook_names = pulumi.Output.from_input(list(HOOKS))
        self.register_outputs({"hookNames": self.hook_names})


NODES_TYPE = "stillwater:index:BrokerNodes"
POOL = re.compile(r"[a-z][a-z0-9-]{0,19}")
ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
INSTANCE_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
MOST_PER_ZONE = 100
# The kubelet keeps 60 s of it for the pods that every node needs.
SHORTEST_SHUTDOWN_SECONDS, LONGEST_SHUTDOWN_SECONDS = 61, 3600


class BrokerNodesArgs(TypedDict):
    cluster: str
    """This Kafka's name: a prefix of names, and the value of the tag `stillwater:cluster`."""
    eks_cluster: str
    """The EKS cluster's name."""
    endpoint: pulumi.Input[str]
    """Its API server: `https://` and a name."""
    certificate_authority: pulumi.Input[str]
    """Its authority as EKS gives it: base64."""
    service_cidr: pulumi.Input[str]
    """The addresses of its Services, such as 172.20.0.0/16."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """A private subnet for each availability zone, by the zone's name. The zones decide which
    groups there are."""
    security_group_ids: Sequence[pulumi.Input[str]]
    """The machines' security groups: the cluster's own at least."""
    instance_type: str
    """The type of every machine, such as r7g.xlarge."""
    image_id: pulumi.Input[str]
    """An EKS image of Amazon Linux 2023 for its processor and your version of Kubernetes."""
    nodes_per_zone: NotRequired[int]
    """How many machines in each zone: 1 to 100. 1 by default."""
    pool: NotRequired[str]
    """The pool's name: it stands in the machines' names, and is the value of the label
    `stillwater.dev/pool`. `broker` by default.
    """
    instance_profile_arn: NotRequired[pulumi.Input[str]]
    """An instance profile whose role may join the cluster: another pool's, or yours. Without it a
    role is made, with an access entry."""
    encryption_key: NotRequired[pulumi.Input[str]]
    """The ARN of the key of the root volumes. By default the account's own."""
    node_shutdown_seconds: NotRequired[int]
    """How long the kubelet holds a shutdown back for its pods: 61 to 3600. By default what our own
    stacks take."""
    tags: NotRequired[Mapping[str, str]]
    """Tags of yours, for whatever is made."""


class BrokerNodes(pulumi.ComponentResource):
    """One Auto Scaling group for each zone, on one subnet. A broker's volume stays in its zone, so
    its next machine must come from there. Twice as many machines may stand there for a while. The
    replacement comes first, and a termination that is abandoned keeps the machine. Machines
    register with the taint `dedicated=kafka:NoSchedule`.

    A new image or type reaches the machines that start from then on; none is replaced by itself."""

    group_names: pulumi.Output[dict[str, str]]
    """The groups' names by zone: what `Hooks` is given."""
    instance_profile_arn: pulumi.Output[str]
    """The machines' instance profile: what the next pool is given."""

    def __init__(
        self, name: str, args: BrokerNodesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(NODES_TYPE, name, None, opts)
        made = groups.BrokerNodes(name, _facts(args), opts=pulumi.ResourceOptions(parent=self))
        pool = text(args, "pool", POOL, "broker", "broker")
        self.group_names = pulumi.Output.all(
            **{
                zone: made.group_names[kafka_node_pool(pool, zone)]
                for zone in sorted(args["subnet_ids"])
            }
        )
        self.instance_profile_arn = made.instance_profile_arn
        self.register_outputs(
            {"groupNames": self.group_names, "instanceProfileArn": self.instance_profile_arn}
        )


def _facts(args: BrokerNodesArgs) -> groups.BrokerNodesArgs:
    cluster = text(args, "cluster", CALLED, "shop-orders")
    subnets = names_by_key(args, "subnet_ids", ZONE, "availability zones like us-east-1a")
    pool = groups.MachinePool(
        name=text(args, "pool", POOL, "broker", "broker"),
        zones=list(subnets),
        nodes_per_zone=whole_number(args, "nodes_per_zone", 1, MOST_PER_ZONE, 1),
        instance_type=text(args, "instance_type", INSTANCE_TYPE, "r7g.xlarge"),
        image_id=args["image_id"],
    )
    return groups.BrokerNodesArgs(
        prefix=cluster,
        pools=[pool],
        cluster=ClusterAccess(
            name=text(args, "eks_cluster", EKS_CLUSTER, "shop"),
            endpoint=args["endpoint"],
            ca=args["certificate_authority"],
            service_cidr=args["service_cidr"],
        ),
        security_group_ids=names(args, "security_group_ids"),
        private_subnet_ids=subnets,
        node_shutdown_seconds=whole_number(
            args,
            "node_shutdown_seconds",
            SHORTEST_SHUTDOWN_SECONDS,
            LONGEST_SHUTDOWN_SECONDS,
            Timings().node_shutdown_seconds,
        ),
        tags=Tags(cluster=cluster, environment=None, extra=tags(args, "tags")),
        encryption_key=args.get("encryption_key"),
        instance_profile_arn=args.get("instance_profile_arn"),
        not_inherited={CLUSTER_TAG},
    )
