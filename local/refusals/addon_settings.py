"""Judges an add-on's settings by the schema that EKS validates them with.

EKS answers with the whole of it in DescribeAddonConfiguration; here are the keys and kinds of the
add-ons that a cluster has by default. Of others nothing is known, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.documents import parse_yaml
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

SOURCE = "https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html"
# A kind is a type, a tuple of words, or a mapping of what is below; None: whatever.
_RESOURCES = {
    "limits": {"cpu": str, "memory": str},
    "requests": {"cpu": str, "memory": str},
}
_PODS = {
    "affinity": dict,
    "nodeSelector": dict,
    "podAnnotations": dict,
    "podLabels": dict,
    "tolerations": list,
}
# The volume driver's are those of its chart: values.schema.json of aws-ebs-csi-driver.
_OF_VOLUMES = {
    **_PODS,
    "additionalArgs": list,
    "containerSecurityContext": dict,
    "dnsConfig": dict,
    "enableMetrics": bool,
    "enablePrometheusAnnotations": bool,
    "env": list,
    "envFrom": list,
    "initContainers": list,
    "logLevel": int,
    "loggingFormat": ("text", "json"),
    "otelTracing": {"otelExporterEndpoint": str, "otelServiceName": str},
    "priorityClassName": str,
    "resources": dict,
    "revisionHistoryLimit": int,
    "securityContext": dict,
    "serviceAccount": dict,
    "serviceMonitor": dict,
    "updateStrategy": dict,
    "volumeMounts": list,
    "volumes": list,
}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "aws-ebs-csi-driver": {
        "a1CompatibilityDaemonSet": bool,
        "additionalDaemonSets": dict,
        "awsAccessSecret": dict,
        "controller": {
            **_OF_VOLUMES,
            "batching": bool,
            "defaultFsType": str,
            "deploymentAnnotations": dict,
            "enableNodeLocalVolumes": bool,
            "extraCreateMetadata": bool,
            "extraVolumeTags": dict,
            "httpEndpoint": str,
            "k8sTagClusterId": str,
            "nameOverride": str,
            "podDisruptionBudget": dict,
            "region": str,
            "replicaCount": int,
            "sdkDebugLog": bool,
            "socketDirVolume": dict,
            "topologySpreadConstraints": list,
            "userAgentExtra": str,
            "volumeModificationFeature": {"enabled": bool},
        },
        "customLabels": dict,
        "debugLogs": bool,
        "defaultStorageClass": {"enabled": bool},
        "enabled": bool,
        "fips": bool,
        "fullnameOverride": str,
        "global": dict,
        "helmTester": dict,
        "image": dict,
        "imagePullSecrets": list,
        "nameOverride": str,
        "node": {
            **_OF_VOLUMES,
            "daemonSetAnnotations": dict,
            "enableLinux": bool,
            "enableWindows": bool,
            "hostNetwork": bool,
            "kubeletPath": str,
            "legacyXFS": bool,
            "metadataSources": str,
            "namespaceOverride": str,
            "probeDirVolume": dict,
            "reservedVolumeAttachments": int,
            "selinux": bool,
            "terminationGracePeriodSeconds": int,
            "tolerateAllTaints": bool,
            "volumeAttachLimit": int,
            "windowsHostProcess": bool,
        },
        "nodeAllocatableUpdatePeriodSeconds": int,
        "nodeComponentOnly": bool,
        "proxy": {"http_proxy": str, "no_proxy": str},
        "sidecars": dict.fromkeys(
            (
                *("attacher", "livenessProbe", "metadataLabeler", "nodeDriverRegistrar"),
                *("provisioner", "resizer", "snapshotter", "volumemodifier"),
            ),
            dict,
        ),
        "storageClasses": list,
        "useOldCSIDriver": bool,
        "volumeSnapshotClasses": list,
    },
    "coredns": {
        **_PODS,
        "autoScaling": {"enabled": bool, "maxReplicas": int, "minReplicas": int},
        "computeType": str,
        "corefile": str,
        "podDisruptionBudget": dict,
        "replicaCount": int,
        "resources": _RESOURCES,
        "topologySpreadConstraints": list,
        "volumeMounts": list,
        "volumes": list,
    },
    "kube-proxy": {
        **_PODS,
        "ipvs": {"scheduler": str},
        "mode": ("iptables", "ipvs", "nftables"),
        "resources": _RESOURCES,
    },
}
_UNDEFINED = "is not defined in the schema and the schema does not allow additional properties"
# The network plugin's own variables (README of amazon-vpc-cni-k8s), all of them strings.
_OF_NETWORK = (
    *("ADDITIONAL_ENI_TAGS", "ANNOTATE_POD_IP", "AWS_EC2_ENDPOINT", "AWS_EXTERNAL_SERVICE_CIDRS"),
    *("AWS_MANAGE_ENIS_NON_SCHEDULABLE", "AWS_REGION", "AWS_VPC_CNI_NODE_PORT_SUPPORT"),
    *("AWS_VPC_ENI_MTU", "AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER"),
    *("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS"),
    *("AWS_VPC_K8S_CNI_EXTERNALSNAT", "AWS_VPC_K8S_CNI_LOGLEVEL", "AWS_VPC_K8S_CNI_LOG_FILE"),
    *("AWS_VPC_K8S_CNI_RANDOMIZESNAT", "AWS_VPC_K8S_CNI_VETHPREFIX"),
    *("AWS_VPC_K8S_PLUGIN_LOG_FILE", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "CLUSTER_ENDPOINT"),
    *("CLUSTER_NAME", "CNI_MTU", "DISABLE_CONTAINER_V6", "DISABLE_INTROSPECTION"),
    *("DISABLE_LEAKED_ENI_CLEANUP", "DISABLE_METRICS", "DISABLE_NETWORK_RESOURCE_PROVISIONING"),
    *("DISABLE_POD_V6", "DISABLE_TCP_EARLY_DEMUX", "ENABLE_BANDWIDTH_PLUGIN", "ENABLE_IMDS_ONLY"),
    *("ENABLE_IMDS_ONLY_MODE", "ENABLE_IPv4", "ENABLE_IPv6", "ENABLE_MULTI_NIC", "ENABLE_NFTABLES"),
    *("ENABLE_POD_ENI", "ENABLE_PREFIX_DELEGATION", "ENABLE_SUBNET_DISCOVERY", "ENABLE_V4_EGRESS"),
    *("ENABLE_V6_EGRESS", "ENI_CONFIG_ANNOTATION_DEF", "ENI_CONFIG_LABEL_DEF"),
    *("INTROSPECTION_BIND_ADDRESS", "IP_COOLDOWN_PERIOD", "MAX_ENI", "MINIMUM_IP_TARGET"),
    *("NETWORK_POLICY_ENFORCING_MODE", "POD_MTU", "POD_SECURITY_GROUP_ENFORCING_MODE", "VPC_ID"),
    *("WARM_ENI_TARGET", "WARM_IP_TARGET", "WARM_PREFIX_TARGET"),
)
_TOLD_AS_TEXT = ("true", "false")
_NETWORK: Mapping[str, Any] = {
    **_PODS,
    "branchENICooldown": object,
    "cniConfig": dict,
    "enableNetworkPolicy": _TOLD_AS_TEXT,
    "enableWindowsIpam": _TOLD_AS_TEXT,
    "enableWindowsPrefixDelegation": _TOLD_AS_TEXT,
    "eniConfig": {"create": bool, "region": str, "subnets": dict},
    "env": dict.fromkeys(_OF_NETWORK, str),
    "extraVolumeMounts": list,
    "extraVolumes": list,
    "init": dict,
    "livenessProbe": dict,
    "livenessProbeTimeoutSeconds": int,
    "minimumWindowsIPTarget": object,
    "nodeAgent": dict,
    "originalMatchLabels": bool,
    "podMonitor": dict,
    "priorityClassName": str,
    "readinessProbe": dict,
    "readinessProbeTimeoutSeconds": int,
    "resources": dict,
    "securityContext": dict,
    "serviceAccount": dict,
    "terminationGracePeriodSeconds": int,
    "updateStrategy": dict,
    "warmWindowsIPTarget": object,
    "warmWindowsPrefixTarget": object,
}


@limit("eks/addon:Addon", source=SOURCE)
def settings_of_an_addon(wanted: Wanted) -> Iterator[Refusal]:
    """Keys that its schema has, each of its kind."""
    name, given = str(wanted.inputs.get("addonName")), wanted.inputs.get("configurationValues")
    schema = _NETWORK if name == "vpc-cni" else SCHEMAS.get(name)
    told = parse_yaml(given) if given and schema is not None else None
    if not isinstance(told, dict) or schema is None:
        return
    wrong = next(_wrongs(told, schema, "$"), "")
    if wrong:
        message = "ConfigurationValue provided in request is not supported: Json schema validation "
        message += f"failed with error: [{wrong}]"
        code, at = "InvalidParameterException", "configurationValues"
        yield Refusal("CreateAddon", code, message, at)


def _wrongs(told: Mapping[str, Any], schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for key, value in told.items():
        kind, where = schema.get(key), f"{at}.{key}"
        if kind is None:
            yield f"{where}: {_UNDEFINED}"
        elif isinstance(kind, Mapping):
            if isinstance(value, dict):
                yield from _wrongs(value, kind, where)
            elif value is not None:
                yield f"{where}: {_kind(value)} found, object expected"
        elif isinstance(kind, tuple):
            if value not in kind:
                yield f"{where}: does not have a value in the enumeration {list(kind)}"
        elif value is not None and not _fits(value, kind):
            yield f"{where}: {_kind(value)} found, {_NAMES[kind]} expected"


_NAMES: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
}


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), "null")


def _fits(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
