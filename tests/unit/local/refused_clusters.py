"""EKS and groups of instances: what each service refuses beyond its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    ADDED,
    ADDON,
    ASSOCIATED,
    ASSOCIATION,
    GROUPS,
    KEY,
    LAUNCHING,
    OF_NODES,
)
from tests.unit.local.seeded_inputs import SCALING
from tests.unit.local.test_refused_parts import (
    CLUSTER,
    ENTERED,
    ENTRY,
    KUBERNETES,
    NODE_GROUP,
    SUBNETS,
)

REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a cluster: public private": (
        CLUSTER,
        {**KUBERNETES, "vpcConfig": {**SUBNETS, "publicAccessCidrs": ["10.0.0.0/8"]}},
        "InvalidParameterException",
    ),
    "a cluster: 41": (
        CLUSTER,
        {
            **KUBERNETES,
            "vpcConfig": {**SUBNETS, "publicAccessCidrs": [f"8.8.{n}.0/24" for n in range(41)]},
        },
        "InvalidParameterException",
    ),
    "a cluster: encrypt": (
        CLUSTER,
        {
            **KUBERNETES,
            "encryptionConfig": {"provider": {"keyArn": KEY}, "resources": ["configmaps"]},
        },
        "InvalidParameterException",
    ),
    "a cluster: version": (
        CLUSTER,
        {**KUBERNETES, "version": "1.35.2"},
        "InvalidParameterException",
    ),
    "a node group: arm": (
        NODE_GROUP,
        {**OF_NODES, "instanceTypes": ["m7g.large"]},
        "InvalidParameterException",
    ),
    "a node group: x86 on arm": (
        NODE_GROUP,
        {**OF_NODES, "amiType": "AL2023_ARM_64_STANDARD"},
        "InvalidParameterException",
    ),
    "a node group: disk+lt": (
        NODE_GROUP,
        {**OF_NODES, "diskSize": 50, "launchTemplate": {"id": "lt-1", "version": "1"}},
        "InvalidParameterException",
    ),
    "a node group: remote+lt": (
        NODE_GROUP,
        {
            **OF_NODES,
            "remoteAccess": {"ec2SshKey": "k"},
            "launchTemplate": {"id": "lt-1", "version": "1"},
        },
        "InvalidParameterException",
    ),
    "a node group: 21 types": (
        NODE_GROUP,
        {**OF_NODES, "instanceTypes": [f"m7i.{n}xlarge" for n in range(2, 23)]},
        "InvalidParameterException",
    ),
    "a node group: subnets": (
        NODE_GROUP,
        {**OF_NODES, "subnetIds": []},
        "InvalidParameterException",
    ),
    "an add-on: config": (
        ADDON,
        {**ADDED, "configurationValues": '{"a":'},
        "InvalidParameterException",
    ),
    "an add-on: config scalar": (
        ADDON,
        {**ADDED, "configurationValues": "hello"},
        "InvalidParameterException",
    ),
    "an entry: type": (ENTRY, {**ENTERED, "type": "EC2_MAC"}, "InvalidParameterException"),
    "an entry: groups dup": (
        ENTRY,
        {**ENTERED, "type": "FARGATE_LINUX", "userName": "x"},
        "InvalidParameterException",
    ),
    "a group: no template": (GROUPS, SCALING, "ValidationError"),
    "a group: lifetime": (GROUPS, {**LAUNCHING, "maxInstanceLifetime": 3600}, "ValidationError"),
    "a group: term": (GROUPS, {**LAUNCHING, "terminationPolicies": ["Newest"]}, "ValidationError"),
    "a group: suspend": (
        GROUPS,
        {**LAUNCHING, "suspendedProcesses": ["Terminating"]},
        "ValidationError",
    ),
    "a group: policy half": (
        GROUPS,
        {**LAUNCHING, "instanceMaintenancePolicy": {"minHealthyPercentage": 90}},
        "ValidationError",
    ),
    "a group: tag twice": (
        GROUPS,
        {**LAUNCHING, "tags": [{"key": "a", "value": "b", "propagateAtLaunch": True}] * 2},
        "ValidationError",
    ),
    "a group: max neg": (GROUPS, {**LAUNCHING, "minSize": -1}, "ValidationError"),
    "a group: grace": (GROUPS, {**LAUNCHING, "healthCheckGracePeriod": -5}, "ValidationError"),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a cluster: reached from an office": (
        CLUSTER,
        {
            **KUBERNETES,
            "version": "1.35",
            "vpcConfig": {**SUBNETS, "publicAccessCidrs": ["203.0.113.7/32", "8.8.8.0/24"]},
        },
    ),
    "a node group: Graviton": (
        NODE_GROUP,
        {
            **OF_NODES,
            "amiType": "AL2023_ARM_64_STANDARD",
            "instanceTypes": ["m7g.large", "im4gn.large"],
        },
    ),
    "a node group: accelerated": (
        NODE_GROUP,
        {**OF_NODES, "amiType": "AL2023_x86_64_NVIDIA", "instanceTypes": ["g5.xlarge"]},
    ),
    "an add-on: configured in YAML": (ADDON, {**ADDED, "configurationValues": "replicaCount: 2"}),
    "an add-on: configured in JSON that is indented with tabs": (
        ADDON,
        {**ADDED, "configurationValues": '{\n\t"replicaCount": 2\n}'},
    ),
    "an association: in a namespace": (
        ASSOCIATION,
        {**ASSOCIATED, "accessScope": {"type": "namespace", "namespaces": ["a"]}},
    ),
    "a group: in full": (
        GROUPS,
        {
            **LAUNCHING,
            "terminationPolicies": ["OldestInstance"],
            "suspendedProcesses": ["AZRebalance"],
            "maxInstanceLifetime": 86400,
            "instanceMaintenancePolicy": {"minHealthyPercentage": 100, "maxHealthyPercentage": 200},
        },
    ),
}
