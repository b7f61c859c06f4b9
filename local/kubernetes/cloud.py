"""Asks EC2 about the cluster's nodes: the instances tagged as owned by an EKS cluster.

EC2 (moto) is the only source of nodes in the twin: an Auto Scaling group launches an instance, and
the kubelet finds it here, as a booting machine would find itself. The launch template is where
labels and taints of a Kafka node come from, so the twin takes them from the same bytes the real AMI
would: nodeadm's NodeConfig in the user data, as on AL2023.
"""

from __future__ import annotations

import base64
import email
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import yaml
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from core.ground.errors import InvalidInput
from local.aws.root_volumes import BOOTED_TAG, UNBOOTABLE_TAG
from local.place import Place

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef


NODE_CONFIG_GROUP = "node.eks.aws/"
NODE_CONFIG_MEDIA_TYPE = "application/node.eks.aws"
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SECONDS_PER_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|us|ns|s)")


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str

    def as_json(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What user data decides about a node; the defaults are those of an empty NodeConfig."""

    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    shutdown_grace_seconds: float = 0.0


def parse(user_data: str) -> NodeConfig:
    """Read every NodeConfig of plain or MIME multi-part user data; later ones win.

    Raises InvalidInput with one sentence per problem: nodeadm would not join such a node.
    """
    problems: list[str] = []
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    shutdown_grace_seconds = 0.0
    for document in _documents(user_data, problems):
        kubelet = (document.get("spec") or {}).get("kubelet") or {}
        config = kubelet.get("config") or {}
        for flag in kubelet.get("flags") or []:
            name, _, value = str(flag).partition("=")
            if name == "--node-labels":
                labels.update(_labels(value, problems))
            elif name == "--register-with-taints":
                taints.extend(_taints(value, problems))
        if "shutdownGracePeriod" in config:
            shutdown_grace_seconds = _seconds(str(config["shutdownGracePeriod"]), problems)
    if problems:
        raise InvalidInput(problems)
    return NodeConfig(
        labels=labels, taints=tuple(taints), shutdown_grace_seconds=shutdown_grace_seconds
    )


def _documents(user_data: str, problems: list[str]) -> list[dict[str, Any]]:
    found = []
    for text in _texts(user_data):
        try:
            documents = list(yaml.safe_load_all(text))
        except yaml.YAMLError as error:
            problems.append(f"The user data's NodeConfig is not YAML: {error}.")
            continue
        found += [
            document
            for document in documents
            if isinstance(document, dict)
            and str(document.get("apiVersion", "")).startswith(NODE_CONFIG_GROUP)
        ]
    return found


def _texts(user_data: str) -> list[str]:
    """Return the texts that may hold a NodeConfig; shell scripts and boot hooks are not read."""
    if "multipart/" not in user_data[:500]:
        return [] if user_data.startswith("#!") else [user_data]
    message = email.message_from_string(user_data.lstrip())
    texts = []
    for part in message.walk():
        if part.get_content_type() == NODE_CONFIG_MEDIA_TYPE:
            payload = part.get_payload(decode=True)
            texts.append(payload.decode() if isinstance(payload, bytes) else "")
    return texts


def _labels(value: str, problems: list[str]) -> dict[str, str]:
    labels = {}
    for pair in filter(None, value.split(",")):
        key, separator, text = pair.partition("=")
        if not separator or not key:
            problems.append(f"--node-labels holds {pair!r}; write each label as key=value.")
            continue
        labels[key] = text
    return labels


def _taints(value: str, problems: list[str]) -> list[Taint]:
    taints = []
    for entry in filter(None, value.split(",")):
        pair, _, effect = entry.rpartition(":")
        key, _, text = pair.partition("=")
        if not key or effect not in TAINT_EFFECTS:
            problems.append(
                f"--register-with-taints holds {entry!r}; write each taint as key=value:effect "
                f"with one of the effects {', '.join(TAINT_EFFECTS)}."
            )
            continue
        taints.append(Taint(key, text, effect))
    return taints


def _seconds(duration: str, problems: list[str]) -> float:
    """Return the seconds of a Go duration: 1m30s -> 90."""
    parts = DURATION_PART.findall(duration)
    if duration != "0" and "".join(number + unit for number, unit in parts) != duration:
        problems.append(f"shutdownGracePeriod is {duration!r}; write a duration such as 1m30s.")
        return 0.0
    return float(sum(float(number) * SECONDS_PER_UNIT[unit] for number, unit in parts))


CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"
NODE_GROUP_TAG = "eks:nodegroup-name"
RUNNING = "running"
# A terminated instance stays listed for about an hour; every other state is asked for, so an
# instance that is missing has ended.
LIVING_STATES = ["pending", RUNNING, "shutting-down", "stopping", "stopped"]
DEFAULT_REGION = "us-east-1"
CloudError = (BotoCoreError, ClientError)


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What a node of this type offers, from EC2's own description."""

    vcpus: int
    memory_mib: int
    architecture: str
    max_pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningInstance:
    """One instance of the cluster that runs, and what its kubelet needs to know at boot."""

    instance_id: str
    node_name: str
    private_ip: str
    zone: str
    subnet_cidr: str
    type_name: str
    type: NodeCapacity
    cluster: str
    node_group: str | None
    config: NodeConfig

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/{self.instance_id}"


def instance_id_of(provider_id: str) -> str:
    """Return the instance id of a Node's providerID: aws:///us-east-1a/i-0abc -> i-0abc."""
    return provider_id.rpartition("/")[2]


def client(service: str, place: Place, identity: Mapping[str, str] | None = None) -> Any:
    """Return a client of the twin's AWS, as somebody or as the environment says."""
    who = identity or {}
    return boto3.client(
        service,  # type: ignore[call-overload]  # chosen at run time, so no stub fits
        aws_access_key_id=who.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=who.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=who.get("AWS_SESSION_TOKEN"),
        endpoint_url=os.environ.get("AWS_ENDPOINT_URL") or place.url("moto"),
        region_name=os.environ.get("AWS_REGION") or DEFAULT_REGION,
        config=Config(retries={"max_attempts": 2}, connect_timeout=3, read_timeout=20),
    )


class InstanceCloud:
    """The cluster's instances, read from EC2; what never changes about one is read once."""

    def __init__(self, ec2: EC2Client) -> None:
        self._ec2 = ec2
        self._types: dict[str, NodeCapacity] = {}
        self._subnets: dict[str, str] = {}
        self._known: dict[str, RunningInstance | InvalidInput] = {}

    def states(self) -> dict[str, str]:
        """Return the state of every living instance of the cluster by instance id."""
        self._listed = {
            instance["InstanceId"]: instance
            for reservation in self._ec2.describe_instances(
                Filters=[{"Name": "instance-state-name", "Values": LIVING_STATES}]
            )["Reservations"]
            for instance in reservation["Instances"]
            if _owner(_tags(instance))
        }
        return {key: str(value["State"]["Name"]) for key, value in self._listed.items()}

    def boot(self, instance_id: str) -> str | None:
        """Return what an instance of the last `states` has booted from; None: it does not boot.

        Another root volume is another boot, and so is one that EC2 failed to replace.
        """
        listed, tags = self._listed[instance_id], _tags(self._listed[instance_id])
        device = listed.get("RootDeviceName")
        root = next(
            (
                each["Ebs"]["VolumeId"]
                for each in listed.get("BlockDeviceMappings", [])
                if each["DeviceName"] == device
            ),
            None,
        )
        if root is None or UNBOOTABLE_TAG in tags:
            return None
        return f"{root} {tags.get(BOOTED_TAG, '')}"

    def describe(self, instance_id: str) -> RunningInstance:
        """Return an instance of the last `states`.

        Raises InvalidInput for user data that nodeadm refuses.
        """
        if instance_id not in self._known:
            try:
                self._known[instance_id] = self._read(self._listed[instance_id])
            except InvalidInput as error:
                self._known[instance_id] = error
        known = self._known[instance_id]
        if isinstance(known, InvalidInput):
            raise known
        return known

    def _read(self, instance: InstanceTypeDef) -> RunningInstance:
        tags = _tags(instance)
        return RunningInstance(
            instance_id=instance["InstanceId"],
            node_name=instance["PrivateDnsName"],
            private_ip=instance["PrivateIpAddress"],
            zone=instance["Placement"]["AvailabilityZone"],
            subnet_cidr=self._subnet_cidr(instance["SubnetId"]),
            type_name=str(instance["InstanceType"]),
            type=self._type(str(instance["InstanceType"])),
            cluster=_owner(tags) or "",
            node_group=tags.get(NODE_GROUP_TAG),
            config=parse(self._user_data(instance["InstanceId"], tags)),
        )

    def _user_data(self, instance_id: str, tags: dict[str, str]) -> str:
        """Return the instance's user data, or its launch template's when it was given none."""
        answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
        encoded = answer.get("UserData", {}).get("Value") or ""
        template = tags.get("aws:ec2launchtemplate:id")
        if not encoded and template:
            versions = self._ec2.describe_launch_template_versions(
                LaunchTemplateId=template, Versions=[tags["aws:ec2launchtemplate:version"]]
            )["LaunchTemplateVersions"]
            encoded = versions[0]["LaunchTemplateData"].get("UserData") or ""
        return base64.b64decode(encoded).decode(errors="replace")

    def _subnet_cidr(self, subnet_id: str) -> str:
        if subnet_id not in self._subnets:
            subnet = self._ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
            self._subnets[subnet_id] = subnet["CidrBlock"]
        return self._subnets[subnet_id]

    def _type(self, name: str) -> NodeCapacity:
        if name not in self._types:
            answer: Any = self._ec2.describe_instance_types(
                InstanceTypes=[name]  # type: ignore[list-item]  # the stub lists the known names
            )
            found = answer["InstanceTypes"][0]
            network = found["NetworkInfo"]
            # The VPC CNI's formula: each interface keeps its first address, and two pods share
            # the host's.
            max_pods = (
                network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2
            )
            arm = "arm64" in found["ProcessorInfo"]["SupportedArchitectures"]
            self._types[name] = NodeCapacity(
                vcpus=found["VCpuInfo"]["DefaultVCpus"],
                memory_mib=found["MemoryInfo"]["SizeInMiB"],
                architecture="arm64" if arm else "amd64",
                max_pods=min(max_pods, 110),
            )
        return self._types[name]


def _tags(instance: InstanceTypeDef) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in instance.get("Tags", [])}


def _owner(tags: dict[str, str]) -> str | None:
    """Return the EKS cluster that owns an instance, or None for an instance of nobody's."""
    return next(
        (
            key.removeprefix(CLUSTER_TAG_PREFIX)
            for key, value in tags.items()
            if key.startswith(CLUSTER_TAG_PREFIX) and value == "owned"
        ),
        None,
    )
