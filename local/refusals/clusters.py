"""Refuses what EKS does not take of a cluster, its add-ons and who may enter it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.cidrs import is_within, network
from local.refusals.documents import parse_yaml
from local.refusals.fields import values
from local.refusals.limits import first_of, limit, outside
from local.refusals.refusal import Refusal, Wanted

_EKS = "https://docs.aws.amazon.com/eks/latest/"
_TYPES = frozenset(
    {
        *("STANDARD", "FARGATE_LINUX", "EC2_LINUX", "EC2_WINDOWS", "EC2"),
        *("HYBRID_LINUX", "HYPERPOD_LINUX"),
    }
)
# EKS user guide, "Create access entries": how no group of Kubernetes' may begin.
_RESERVED = ("system:", "eks:", "aws:", "amazon:", "iam:")
MOST_PUBLIC_CIDRS = 40
# RFC 5737's, which Python calls private.
_DOCUMENTED = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
# RFC 1918, and RFC 6598's for carriers, which EKS takes of sites as well.
_SITES = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
# EKS Auto Mode is all of these, or none.
_AUTO_MODE = (
    *("computeConfig", "kubernetesNetworkConfig.elasticLoadBalancing"),
    "storageConfig.blockStorage",
)
# EKS user guide, "Kubernetes versions": the oldest in extended support, and further than EKS will
# be for years; what lies between, only DescribeClusterVersions knows.
MINORS = (31, 45)
# EKS user guide, "AWS add-ons"; those of the marketplace and of partners bear an underscore.
ADDONS = frozenset(
    {
        *("adot", "amazon-cloudwatch-observability", "amazon-sagemaker-hyperpod-observability"),
        *(
            "amazon-sagemaker-hyperpod-taskgovernance",
            "amazon-sagemaker-hyperpod-training-operator",
        ),
        *("amazon-sagemaker-spaces", "aws-ebs-csi-driver"),
        *("aws-efs-csi-driver", "aws-fsx-csi-driver", "aws-guardduty-agent"),
        *("aws-mountpoint-s3-csi-driver", "aws-network-flow-monitoring-agent"),
        *("aws-privateca-connector-for-kubernetes", "aws-secrets-store-csi-driver-provider"),
        *("cert-manager", "coredns", "eks-node-monitoring-agent", "eks-pod-identity-agent"),
        *("external-dns", "fluent-bit", "kube-proxy", "kube-state-metrics", "metrics-server"),
        *("prometheus-node-exporter", "snapshot-controller", "vpc-cni"),
    }
)


@limit("eks/cluster:Cluster", source=f"{_EKS}APIReference/API_VpcConfigRequest.html")
def doors_of_a_cluster(wanted: Wanted) -> Iterator[Refusal]:
    """Forty public networks; Secrets alone are encrypted; versions have two numbers."""
    config = wanted.inputs.get("vpcConfig") or {}
    blocks = [str(each) for each in config.get("publicAccessCidrs") or ()]
    private = [each for each in blocks if _is_private(each)]
    encrypted = (wanted.inputs.get("encryptionConfig") or {}).get("resources")
    version = str(wanted.inputs.get("version") or "1.35")
    family = (wanted.inputs.get("kubernetesNetworkConfig") or {}).get("ipFamily")
    networks = values(wanted.inputs, "remoteNetworkConfig.remoteNodeNetworks.cidrs.*")
    networks += values(wanted.inputs, "remoteNetworkConfig.remotePodNetworks.cidrs.*")
    remote = [str(e) for e in networks if not is_within(network(e, strict=True), *_SITES)]
    auto = [bool(values(wanted.inputs, f"{path}.enabled") == [True]) for path in _AUTO_MODE]
    yield from first_of(
        "CreateCluster",
        "InvalidParameterException",
        (
            private,
            f"The following CIDRs are not allowed in publicAccessCidrs: [{', '.join(private)}]",
            "vpcConfig",
        ),
        (
            family != "ipv6" and any(":" in each for each in blocks),
            "IPv6 CIDRs in publicAccessCidrs are of clusters with the IP family ipv6 alone",
            "vpcConfig",
        ),
        (
            len(blocks) > MOST_PUBLIC_CIDRS,
            f"publicAccessCidrs has {len(blocks)} entries; the maximum is {MOST_PUBLIC_CIDRS}",
            "vpcConfig",
        ),
        (
            family == "ipv6" and values(wanted.inputs, "kubernetesNetworkConfig.serviceIpv4Cidr"),
            "serviceIpv4Cidr cannot be specified when ipFamily is ipv6",
            "kubernetesNetworkConfig",
        ),
        (
            len(set(auto)) > 1,
            (
                "For EKS Auto Mode, compute_config.enabled, kubernetes_networking_config."
                "elastic_load_balancing.enabled and storage_config.block_storage.enabled must all "
                "be set to either true or false"
            ),
            "computeConfig",
        ),
        (
            remote,
            f"The CIDR {remote[:1]} of a remote network must be a private one.",
            "remoteNetworkConfig",
        ),
        (
            encrypted is not None and list(encrypted) != ["secrets"],
            "Encryption config resources can only contain secrets",
            "encryptionConfig",
        ),
        (
            re.fullmatch(r"1\.\d{2}", version) is None or outside(version[2:], *MINORS),
            f"unsupported Kubernetes version {version}",
            "version",
        ),
    )


def _is_private(block: str) -> bool:
    found = network(block)
    if found is None:
        # No block at all is refused in the same words.
        return True
    private = found.is_private or found.is_link_local or found.is_loopback
    return private and not is_within(found, *_DOCUMENTED)


@limit("eks/addon:Addon", source=f"{_EKS}APIReference/API_CreateAddon.html")
def name_and_configuration_of_an_addon(wanted: Wanted) -> Iterator[Refusal]:
    """One that there is, configured by a mapping, in JSON or in YAML."""
    name = str(wanted.inputs.get("addonName"))
    if "_" not in name and name not in ADDONS:
        message = f"Addon {name} specified is not supported"
        yield Refusal("CreateAddon", "InvalidParameterException", message, "addonName")
    given = wanted.inputs.get("configurationValues")
    if given and not isinstance(parse_yaml(given), dict):
        message = "ConfigurationValue is not in valid JSON or YAML format."
        code, at = "InvalidParameterException", "configurationValues"
        yield Refusal("CreateAddon", code, message, at)


@limit("eks/accessEntry:AccessEntry", source=f"{_EKS}APIReference/API_CreateAccessEntry.html")
def kind_of_an_access_entry(wanted: Wanted) -> Iterator[Refusal]:
    """One of seven; only STANDARD ones have a name and groups, and none of Kubernetes' own."""
    given = wanted.inputs.get("type")
    kind = "STANDARD" if given is None else given
    groups = wanted.inputs.get("kubernetesGroups") or ()
    reserved = [each for each in groups if str(each).startswith(_RESERVED)]
    yield from first_of(
        "CreateAccessEntry",
        "InvalidParameterException",
        (kind not in _TYPES, f"The type {kind} is invalid.", "type"),
        (
            kind != "STANDARD" and wanted.inputs.get("userName"),
            "username can only be set for access entries of type STANDARD",
            "userName",
        ),
        (
            kind != "STANDARD" and groups,
            "kubernetesGroups can only be set for access entries of type STANDARD",
            "kubernetesGroups",
        ),
        (
            reserved,
            (
                f"The kubernetes group name {''.join(reserved[:1])} is invalid, it cannot start "
                "with system:, eks:, aws:, amazon: or iam:"
            ),
            "kubernetesGroups",
        ),
    )
