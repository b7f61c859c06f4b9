"""What passed as good because nobody looked: each is found, or named as unknown."""

import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from inspect import signature
from typing import Any

import pulumi_kubernetes as k8s
import pytest
from botocore import xform_name

from cli.survey import command, page
from cli.survey.kafka import ends
from core.checks.finding import Weight
from core.checks.rights import AWS_UNREAD, KUBERNETES, UNREAD
from tests.every_case import every_case
from tests.unit.certificates import issue
from tests.unit.cli.survey import worlds
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.changes import added, container_of, handler, role
from tests.unit.cli.survey.machines import managed, own_groups
from tests.unit.cli.survey.manifests import Item, meta
from tests.unit.cli.survey.others import changed, checks, every, own, rows, surveyed
from tests.unit.cli.survey.test_around import behind, both
from tests.unit.cli.survey.test_hidden_dangers import AHEAD, asked_for_pods
from tests.unit.cli.survey.test_survey import Recorded, operations
from tests.unit.cli.survey.worlds import Change, World, at, bare


class Traced(dict[str, Any]):
    """A mapping that adds the path of each field that is asked for to a set: spec.volumes."""

    def __init__(self, item: dict[str, Any], asked: set[str], path: str = "") -> None:
        super().__init__(item)
        self._asked, self._path = asked, path

    def __getitem__(self, key: str) -> Any:
        self._asked.add(f"{self._path}{key}")
        return _traced(super().__getitem__(key), self._asked, f"{self._path}{key}.")

    def get(self, key: str, default: Any = None) -> Any:
        found = super().get(key, default)
        self._asked.add(f"{self._path}{key}")
        return _traced(found, self._asked, f"{self._path}{key}.")

    def __contains__(self, key: object) -> bool:
        self._asked.add(f"{self._path}{key}")
        return super().__contains__(key)


def _traced(value: Any, asked: set[str], path: str) -> Any:
    if isinstance(value, dict):
        return Traced(value, asked, path)
    return [_traced(each, asked, path) for each in value] if isinstance(value, list) else value


NOW = datetime.now(UTC)
PORT = {"tcpSocket": {"port": 9092}, "periodSeconds": 10, "failureThreshold": 3}
SOON, OVER = (
    datetime.fromtimestamp(NOW.timestamp() + 5 * 86_400, UTC),
    datetime(2021, 1, 1, tzinfo=UTC),
)
probed = partial(at, "pods.*.spec.containers.0")
OF_HELM = {"meta.helm.sh/release-name": "strimzi", "meta.helm.sh/release-namespace": "ops"}


def handler_of(image: str) -> Change:
    return container_of("termination-handler", lambda container: container.update(image=image))


def named_by_id(world: World) -> None:
    """Nodes as nodeadm names them with InstanceIdNodeName."""
    at("instances.*", PrivateDnsName="ip-10-2-143-153.eu-north-1.compute.internal")(world)
    for node in world.kinds["nodes"]:
        node["metadata"]["labels"]["kubernetes.io/hostname"] = node["metadata"]["name"]


def spare(*, taken: int = 0, driver: str | None = "ebs.csi.aws.com") -> Change:
    """Add an idle node for Kafka with 2 slots, and let its pods ask for such nodes."""

    def made(world: World) -> None:
        worlds.node(world, "spare", "eu-north-1a", "i-spare")
        every(world, "pods", nodeSelector={"pool": "kafka"})
        for node in world.kinds["nodes"]:
            node["metadata"]["labels"]["pool"] = "kafka"
            node["status"]["allocatable"] = {"memory": "32Gi", "pods": "30"}
        drivers = [{"name": driver, "allocatable": {"count": 2}}] if driver else []
        world.kinds["csinodes"][-1]["spec"]["drivers"] = drivers
        for number in range(taken):
            attached(world, "spare", f"pv-of-others-{number}")

    return made


def attached(world: World, node: str, volume: str, **status: Any) -> None:
    source = {"persistentVolumeName": volume}
    spec = {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": source}
    item = {"metadata": meta(f"csi-{volume}"), "spec": spec, "status": status}
    world.add("volumeattachments", item)


def detach_error(world: World) -> None:
    error = {"message": "rpc error: code = Internal desc = Could not detach volume"}
    attached(world, "node-of-orders-mains-0", "pv-data", attached=True, detachError=error)


def claim(**status: Any) -> Change:
    return at("persistentvolumeclaims.0.status", status)


def listener(end: datetime | None, *, own_chain: bool = False, **spec: Any) -> Change:
    """A listener with TLS, with the certificates that Strimzi's status shows of it."""

    above = issue("ca", None) if own_chain else None
    chain = {"secretName": "ours", "certificate": "tls.crt", "key": "tls.key"}
    asked = {"tls": True, "configuration": {"brokerCertChainAndKey": chain} if own_chain else None}
    pems = [] if end is None else [issue("it", above, end).certificate_pem]
    return both(
        at("kafkas.0.spec.kafka.listeners.0", **asked),
        lambda world: world.only("kafkas")["spec"].update(spec),
        at("kafkas.0.status", {"listeners": [{"name": "tls", "certificates": pems}]}),
    )


def pending(status: str, name: str = "strimzi") -> Change:
    marks = {"owner": "helm", "name": name, "status": status, "version": "7"}
    made = {"labels": marks, "creationTimestamp": "2026-11-28T09:00:00Z"}
    return both(
        at("deployments.0.metadata.annotations", OF_HELM),
        added("secrets", {"metadata": meta(f"sh.helm.release.v1.{name}.v7", "ops", **made)}),
    )


FOUND: dict[str, Change] = {
    "a target group without a load balancer => target-group-unused": both(
        behind(), at("around.group.LoadBalancerArns", [])),
    "a port asked before log recovery is over => liveness-brief": probed(livenessProbe=PORT),
    "a startup probe that gives up as soon => liveness-brief": probed(
        livenessProbe=PORT, startupProbe=PORT),
    "a startup probe that waits =>": probed(
        livenessProbe=PORT, startupProbe={**PORT, "failureThreshold": 90}),
    "a command that nobody knows => liveness-command": probed(
        livenessProbe={"exec": {"command": ["/opt/alive"]}}),
    "Strimzi's own command =>": probed(
        livenessProbe={"exec": {"command": ["/opt/kafka/kafka_liveness.sh"]}}),
    "a handler that completes no hook => nth-completes-none": handler_of(
        "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.21.0@sha256:0a"),
    "a handler of no version => nth-version": handler_of(
        "registry.example/aws-node-termination-handler@sha256:0a"),
    "nodes named by instance id => nth-lookup": named_by_id,
    "nodes named so, looked up by providerID =>": both(
        named_by_id, handler(USE_PROVIDER_ID="true")),
    "an access entry older than its role => node-role-older": both(
        role("shop-nodes", mode="API", known=("shop-nodes",)),
        at("role_made", datetime(2026, 11, 20, tzinfo=UTC))),
    "an access entry of people's type => node-role": both(
        role("shop-nodes", mode="API_AND_CONFIG_MAP", known=("shop-nodes",), mapped="shop-nodes"),
        at("entry", type="STANDARD")),
    "an idle node with a slot =>": spare(taken=1),
    "an idle node without a slot => node-takes-none": spare(taken=2),
    "an idle node without EBS's driver => node-takes-none": spare(driver=None),
    "a node of Kafka's without the driver => csi-node": lambda world: world.kinds["csinodes"].pop(),
    "a volume that is not taken from its node => attachment-error": detach_error,
    "a file system that has not grown => claim-resizing": claim(
        conditions=[{"type": "FileSystemResizePending", "status": "True"}]),
    "a resize that waits for the node => claim-resizing": claim(
        allocatedResourceStatuses={"storage": "NodeResizePending"}),
    "an authority that Strimzi has not renewed => certificate-ends": listener(SOON),
    "an authority with time to be renewed =>": listener(SOON, clusterCa={"renewalDays": 8}),
    "an authority of one's own => certificate-ends own-authority": listener(
        SOON, clusterCa={"generateCertificateAuthority": False, "renewalDays": 1}),
    "clients' authority of one's own => certificate-end own-authority": listener(
        AHEAD, clientsCa={"generateCertificateAuthority": False}),
    "a certificate of one's own that is over => certificate-ends": listener(OVER, own_chain=True),
    "a listener that shows no certificate => certificate-end": listener(None),
    "a webhook whose authority ends => trust-ends": asked_for_pods(None, SOON),
    "an upgrade that did not end => release-pending": pending("pending-upgrade"),
    "Secrets that nobody may list => unread": lambda world: world.refused.add("secrets"),
    "a scheduler of one's own => scheduler": at(
        "pods.*.spec", schedulerName="volcano"),
}  # fmt: skip


@every_case(("change", "said"), rows(FOUND), ids=FOUND)
def test_what_was_not_looked_at_is_found_or_named(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


@pytest.mark.parametrize(
    ("status", "name", "weight", "remedy"),
    [
        ("pending-upgrade", "strimzi", "a producer may stall", "helm rollback strimzi -n ops"),
        ("pending-install", "grafana", "worth knowing", "helm uninstall grafana -n ops"),
    ],
)
def test_a_release_left_half_says_so(status: str, name: str, weight: str, remedy: str) -> None:
    (found,) = surveyed(changed(own, pending(status, name))())
    assert (found.weight, remedy in found.remedy) == (weight, True)
    assert ("ops/strimzi-cluster-operator" in found.evidence) == (name == "strimzi")


def test_of_secrets_the_metadata_alone_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = own()
    accepted = {}
    request = world._request

    def heard(method: str, path: str, *given: Any, **named: Any) -> Item:
        accepted[path] = named.get("accept", "application/json")
        return request(method, path, *given, **named)

    monkeypatch.setattr(world, "_request", heard)
    surveyed(world)
    of_secrets = {accept for path, accept in accepted.items() if "secrets" in path}
    assert of_secrets == {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


def test_the_end_of_a_certificate_is_read_of_either_form_of_time() -> None:
    moments = [datetime(year, 5, 6, 7, 8, 9, tzinfo=UTC) for year in (2031, 2049, 2050, 2120)]
    assert ends(issue("it", None, each).certificate_pem for each in moments) == [
        each.timestamp() for each in moments
    ]
    broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
    assert ends([broken, "no PEM", ""]) == []


# Kind -> where its fields stand, and the shape that Kubernetes' own schema gives them.
SHAPES: dict[str, tuple[str, Callable[..., Any]]] = {
    "pods": ("spec.", k8s.core.v1.PodSpecArgs),
    "nodes": ("spec.", k8s.core.v1.NodeSpecArgs),
    "csinodes": ("spec.drivers.", k8s.storage.v1.CSINodeDriverArgs),
    "volumeattachments": ("spec.", k8s.storage.v1.VolumeAttachmentSpecArgs),
    "persistentvolumes": ("spec.", k8s.core.v1.PersistentVolumeSpecArgs),
    "persistentvolumeclaims": ("spec.", k8s.core.v1.PersistentVolumeClaimSpecArgs),
    "storageclasses": ("", k8s.storage.v1.StorageClassInitArgs),
    "poddisruptionbudgets": ("spec.", k8s.policy.v1.PodDisruptionBudgetSpecArgs),
    "validatingwebhookconfigurations": (
        "webhooks.",
        k8s.admissionregistration.v1.ValidatingWebhookArgs,
    ),
}
# Fields that keep no broker away, each kind's with the reason.
HARMLESS = {
    # How a pod that runs looks to itself; and names that Kubernetes makes.
    "pods": "automountServiceAccountToken enableServiceLinks ephemeralContainers hostAliases "
    "hostname hostnameOverride serviceAccount setHostnameAsFQDN shareProcessNamespace subdomain "
    # Strimzi's pods restart always; priority is read; evictions are asked of the webhook.
    "restartPolicy preemptionPolicy evictionResponders workloadRef",
    # Addresses of pods, and what nobody sets any more.
    "nodes": "configSource externalID podCIDR podCIDRs podPreemptionPolicy",
    "csinodes": "nodeID topologyKeys",
    "volumeattachments": "",
    # Not on AWS: a volume of these is named as of an unknown driver.
    "persistentvolumes": "azureDisk cinder fc flexVolume flocker gcePersistentDisk iscsi "
    "photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume "
    # The claim's is read.
    "storageClassName",
    # A claim that is bound keeps its volume whatever these say.
    "persistentvolumeclaims": "dataSource dataSourceRef resources selector",
    "storageclasses": "apiVersion kind",
    "poddisruptionbudgets": "",
    # How a webhook is asked, and what its answers do beside.
    "validatingwebhookconfigurations": "admissionReviewVersions matchPolicy sideEffects",
}


# Action -> the client, and where the objects of its answer stand.
ANSWERS = {
    "autoscaling:DescribeAutoScalingGroups": ("autoscaling", "AutoScalingGroups"),
    "autoscaling:DescribeLifecycleHooks": ("autoscaling", "LifecycleHooks"),
    "ec2:DescribeInstances": ("ec2", "Reservations.Instances"),
    "ec2:DescribeLaunchTemplateVersions": ("ec2", "LaunchTemplateVersions.LaunchTemplateData"),
    "ec2:DescribeSubnets": ("ec2", "Subnets"),
    "ec2:DescribeVolumes": ("ec2", "Volumes"),
    "eks:DescribeAccessEntry": ("eks", "accessEntry"),
    "eks:DescribeCluster": ("eks", "cluster"),
    "eks:DescribeNodegroup": ("eks", "nodegroup"),
    "elasticloadbalancing:DescribeTargetGroups": ("elbv2", "TargetGroups"),
}


# Names, times and numbers that AWS keeps of a thing, and what no machine of Kafka's has.
HARMLESS_ANSWERS = {
    "autoscaling:DescribeAutoScalingGroups": "AutoScalingGroupARN AvailabilityZoneDistribution "
    "AvailabilityZoneIds CreatedTime DefaultCooldown DeletionProtection EnabledMetrics "
    # By the health check's type; and sizes beside the wished one.
    "LoadBalancerNames TargetGroupARNs TrafficSources MinSize PredictedCapacity WarmPoolSize",
    "autoscaling:DescribeLifecycleHooks": "AutoScalingGroupName NotificationMetadata RoleARN",
    "ec2:DescribeInstances": "AmiLaunchIndex Architecture BootMode CapacityBlockId "
    "CapacityReservationId CapacityReservationSpecification ClientToken CurrentInstanceBootMode "
    "EbsOptimized ElasticGpuAssociations ElasticInferenceAcceleratorAssociations EnaSupport "
    "EnclaveOptions HibernationOptions Hypervisor IamInstanceProfile ImageId Ipv6Address KernelId "
    "KeyName LaunchTime Licenses Monitoring NetworkPerformanceOptions Platform PlatformDetails "
    "PrivateDnsNameOptions PrivateIpAddress ProductCodes PublicDnsName PublicIpAddress RamdiskId "
    "RootDeviceName RootDeviceType SecondaryInterfaces SourceDestCheck SpotInstanceRequestId "
    "SriovNetSupport StateTransitionReason TpmSupport UsageOperation UsageOperationUpdateTime "
    "VirtualizationType VpcId",
    "ec2:DescribeLaunchTemplateVersions": "CpuOptions CreditSpecification DisableApiStop "
    "EbsOptimized ElasticGpuSpecifications ElasticInferenceAccelerators EnclaveOptions KernelId "
    "LicenseSpecifications MaintenanceOptions Monitoring Operator RamDiskId SecondaryInterfaces "
    "TagSpecifications",
    "ec2:DescribeSubnets": "AssignIpv6AddressOnCreation CidrBlock CustomerOwnedIpv4Pool "
    "DefaultForAz EnableDns64 EnableLniAtDeviceIndex Ipv6CidrBlockAssociationSet "
    "MapCustomerOwnedIpOnLaunch MapPublicIpOnLaunch OutpostArn OwnerId "
    "PrivateDnsNameOptionsOnLaunch SubnetArn Tags Type",
    "ec2:DescribeVolumes": "AvailabilityZoneId CreateTime Encrypted FastRestored Operator "
    "OutpostArn OwnerId SnapshotId SourceVolumeId SseType Tags VolumeArn",
    "eks:DescribeAccessEntry": "accessEntryArn clusterName kubernetesGroups modifiedAt "
    "principalArn tags",
    "eks:DescribeCluster": "certificateAuthority clientRequestToken connectorConfig createdAt "
    "deletionProtection endpoint id identity kubeApiServerConfig kubeControllerManagerConfig "
    "kubeSchedulerConfig logging outpostConfig platformVersion remoteNetworkConfig storageConfig "
    "tags zonalShiftConfig",
    "eks:DescribeNodegroup": "amiType clusterName createdAt diskSize instanceTypes labels "
    "launchTemplate modifiedAt nodegroupArn remoteAccess resources scalingConfig tags version",
    "elasticloadbalancing:DescribeTargetGroups": "HealthCheckPath HealthCheckTimeoutSeconds "
    "Matcher Port ProtocolVersion TargetControlPort UnhealthyThresholdCount",
}


def _fields(shape: Callable[..., Any]) -> set[str]:
    def written(name: str) -> str:
        camel = re.sub(r"_(.)", lambda found: found[1].upper(), name)
        endings = ("Id", "Ip", "Pid", "Ipc", "Cidr", "Cidrs", "Fqdn", "Io")
        last = next((e for e in endings if camel.endswith(e)), None)
        return camel if last is None else camel[: -len(last)] + last.upper().replace("DRS", "DRs")

    return {written(name) for name in signature(shape).parameters}


def _asked_fields(world: World) -> dict[str, set[str]]:
    """Return by kind the fields that a survey asks for."""
    asked: dict[str, set[str]] = defaultdict(set)
    request = world._request

    def traced(method: str, path: str, *given: Any, **named: Any) -> Item:
        parts = path.strip("/").split("/")
        answer = request(method, path, *given, **named)
        if parts[0] == "apis" and len(parts) == 2:
            return answer
        kind = parts[-2] if parts[-2] in {"services", "configmaps"} else parts[-1]
        note = asked[kind]
        if "items" not in answer:
            return Traced(answer, note)
        return {**answer, "items": [Traced(each, note) for each in answer["items"]]}

    world._request = traced
    command.read(world, world.client, None, CLUSTER)
    return asked


def _full() -> World:
    world = own_groups(bare())
    behind()(world)
    detach_error(world)
    asked_for_pods(None, AHEAD)(world)
    world.kinds["validatingwebhookconfigurations"] += world.kinds["mutatingwebhookconfigurations"]
    return world


def test_each_field_that_a_survey_does_not_ask_for_is_named_or_keeps_no_broker_away() -> None:
    asked = _asked_fields(_full())
    for kind, (prefix, shape) in SHAPES.items():
        read = {
            each[len(prefix) :].partition(".")[0] for each in asked[kind] if each.startswith(prefix)
        }
        silent = _fields(shape) - read - set(KUBERNETES[kind]) - set(HARMLESS[kind].split())
        assert not silent, f"{kind}: neither read nor named in KUBERNETES: {sorted(silent)}"
        stale = read & set(KUBERNETES[kind])
        assert not stale, f"{kind}: read, and named as not looked at: {sorted(stale)}"


def _fields_of_answer(service: str, call: str, path: str) -> set[str]:
    """Return the fields that botocore's model gives an answer's objects."""
    shape = operations(service)[call].output_shape
    for part in path.split("."):
        shape = shape.members[part]
        shape = shape.member if shape.type_name == "list" else shape
    return set(shape.members)


def _answered(*surveys: World) -> dict[str, set[str]]:
    """Return by action the fields of AWS's answers that surveys ask for."""
    asked: dict[str, set[str]] = defaultdict(set)

    class Noted(Recorded):
        def _checked(self, call: str, answer: Callable[..., Any]) -> Callable[..., Any]:
            note = asked[call]

            def ask(**given: Any) -> Any:
                found = answer(**given)
                pages = found if isinstance(found, list) else [found]
                traced = [Traced(page, note) for page in pages]
                return traced if isinstance(found, list) else traced[0]

            return ask

    for world in surveys:
        command.read(world, lambda service, _, w=world: Noted(w, service, set()), None, CLUSTER)
    return asked


def test_each_field_of_awss_answers_is_read_or_named_or_keeps_no_broker_away() -> None:
    world = _full()
    role("shop-nodes", mode="API", known=("shop-nodes",))(world)
    asked = _answered(world, managed(bare()))
    for action, (service, path) in ANSWERS.items():
        call = xform_name(action.partition(":")[2])
        read = {e[len(path) + 1 :].partition(".")[0] for e in asked[call] if e.startswith(path)}
        named = set(AWS_UNREAD[action])
        silent = _fields_of_answer(service, call, path) - read - named
        silent -= set(HARMLESS_ANSWERS[action].split())
        assert not silent, f"{action}: neither read nor named in AWS_UNREAD: {sorted(silent)}"
        assert not read & named, f"{action}: read, and named: {sorted(read & named)}"
    assert set(ANSWERS) == set(AWS_UNREAD)


def test_every_kind_that_a_survey_reads_is_listed_with_what_it_leaves_unread() -> None:
    world = _full()
    role("shop-nodes", mode="CONFIG_MAP", mapped="shop-nodes")(world)
    for group in ("apps.kruise.io", "argoproj.io", "karpenter.k8s.aws", "eks.amazonaws.com"):
        world.versions[group] = "v1"
    assert set(_asked_fields(world)) == set(KUBERNETES)


def test_the_page_names_what_was_not_looked_at() -> None:
    from cli.survey.page import render  # noqa: PLC0415

    page = render(command.Survey("shop", (), []), 0.0)
    for fields in UNREAD.values():
        assert all(f"<td>{name}</td>" in page for name in fields)


def test_the_page_says_what_every_weight_means() -> None:
    assert set(page.MEANING) == set(Weight)
