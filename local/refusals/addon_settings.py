"""Judges an add-on's settings by the schema that EKS validates them with.

EKS answers with the whole of it in DescribeAddonConfiguration; here are the keys and kinds of the
add-ons that a cluster has by default. Of others nothing is known, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

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
# The network plugin's grow with each of its versions: of these the kind alone is known.
_OPEN: Mapping[str, Mapping[str, Any]] = {"vpc-cni": {"env": {"*": str}}}


@limit("eks/addon:Addon", source=SOURCE)
def settings_of_an_addon(wanted: Wanted) -> Iterator[Refusal]:
    """Keys that its schema has, each of its kind."""
    name, given = str(wanted.inputs.get("addonName")), wanted.inputs.get("configurationValues")
    schema = SCHEMAS.get(name) or _OPEN.get(name)
    told = _content(given) if given and schema is not None else None
    if not isinstance(told, dict) or schema is None:
        return
    wrong = next(_wrongs(told, schema, "$", whole=name in SCHEMAS), "")
    if wrong:
        message = "ConfigurationValue provided in request is not supported: Json schema validation "
        message += f"failed with error: [{wrong}]"
        code, at = "InvalidParameterException", "configurationValues"
        yield Refusal("CreateAddon", code, message, at)


def _content(written: Any) -> Any:
    try:
        # Every JSON is YAML as well.
        return yaml.safe_load(str(written))
    except yaml.YAMLError:
        return None


def _wrongs(
    told: Mapping[str, Any], schema: Mapping[str, Any], at: str, *, whole: bool = True
) -> Iterator[str]:
    for key, value in told.items():
        kind = schema.get(key, schema.get("*"))
        where = f"{at}.{key}"
        if kind is None:
            if whole:
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
