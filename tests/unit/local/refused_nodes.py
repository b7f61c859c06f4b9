"""What nodes and clusters are made of: interfaces, templates, add-ons, versions, access."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    ADDON,
    ASSOCIATED,
    ASSOCIATION,
    DETAILS,
    GROUPS,
    KEPT,
    OF_NODES,
    RULE_OF_SNAPSHOTS,
    SNAPSHOTS,
)
from tests.unit.local.refused_watching import PARAMETER, POD, PODS
from tests.unit.local.seeded_inputs import FUNCTION, LAMBDA, SCALING, TEMPLATE, template
from tests.unit.local.test_refused_parts import (
    CLUSTER,
    KUBERNETES,
    NODE_GROUP,
)

GROUP, SUBNET = "sg-0123456789abcdef0", "subnet-0123456789abcdef0"
TOGETHER, VALUE = "InvalidParameterCombination", "InvalidParameterValue"
ACCESS = "arn:aws:eks::aws:cluster-access-policy/"
NETWORK_INTERFACE = {"deviceIndex": 0, "networkInterfaceId": "eni-0123456789abcdef0"}


def launching(*interfaces: Mapping[str, Any]) -> Mapping[str, Any]:
    return template(networkInterfaces=list(interfaces))


def interface(**told: Any) -> Mapping[str, Any]:
    return launching({"deviceIndex": 0, **told})


def addon(name: str, told: Any) -> Mapping[str, Any]:
    written = told if isinstance(told, str) else json.dumps(told)
    version = "v1.11.1-eksbuild.1"
    return {
        "clusterName": "c",
        "addonName": name,
        "addonVersion": version,
        "configurationValues": written,
    }


def cluster(**changed: Any) -> Mapping[str, Any]:
    return {**KUBERNETES, **changed}


def services(block: str) -> Mapping[str, Any]:
    return cluster(kubernetesNetworkConfig={"serviceIpv4Cidr": block})


def sites(block: str) -> Mapping[str, Any]:
    return cluster(remoteNetworkConfig={"remoteNodeNetworks": {"cidrs": [block]}})


def nodes(**changed: Any) -> Mapping[str, Any]:
    return {**OF_NODES, **changed}


def tagged(*kinds: str) -> Mapping[str, Any]:
    return template(tagSpecifications=[{"resourceType": k, "tags": {"a": "b"}} for k in kinds])


def shown(key: str) -> Mapping[str, Any]:
    told = [{"resourceType": "instance", "tags": {key: "c"}}]
    return template(metadataOptions={"instanceMetadataTags": "enabled"}, tagSpecifications=told)


def mixed(kind: str) -> Mapping[str, Any]:
    named = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    return {
        "launchTemplate": {
            "launchTemplateSpecification": named,
            "overrides": [{"instanceType": kind}],
        }
    }


HOOKED = {"name": "a", "lifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}


def reserved(preference: str) -> Mapping[str, Any]:
    target = {"capacityReservationId": "cr-0123456789abcdef0"}
    told = {"capacityReservationPreference": preference, "capacityReservationTarget": target}
    return template(capacityReservationSpecification=told)


DRIVER = "aws-ebs-csi-driver"
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    **{f"tags of a {kind} at launch": (TEMPLATE, tagged(kind), VALUE) for kind in ("vpc", "disk")},
    **{
        f"an add-on {name} told {json.dumps(told)}": (ADDON, addon(name, told), PARAMETER)
        for name, told in (
            *((DRIVER, {"nodes": {"enableMetrics": True}}), (DRIVER, {"node": "all"})),
            *((DRIVER, {"node": {"enableMetrics": "yes"}}), (DRIVER, {"replicas": 2})),
            *((DRIVER, {"controller": {"replicaCount": "two"}}), ("coredns", {"replicas": 2})),
            *(("coredns", {"replicaCount": "2"}), ("kube-proxy", {"modes": "ipvs"})),
            *(("kube-proxy", {"mode": "nft"}), ("vpc-cni", {"env": {"WARM_IP_TARGET": 5}})),
            ("coredns", {"resources": {"limits": {"memory": 170}}}),
        )
    },
    **{
        f"services of a cluster in {block}": (CLUSTER, services(block), PARAMETER)
        for block in ("127.0.0.0/16", "192.0.2.0/24", "100.64.0.0/16", "172.16.0.0/11")
    },
    "nodes of a public site": (CLUSTER, sites("8.8.8.0/24"), PARAMETER),
    "an image of one's own without a template": (
        NODE_GROUP,
        nodes(amiType="CUSTOM", instanceTypes=None),
        PARAMETER,
    ),
    "a type that EC2 does not have": (NODE_GROUP, nodes(instanceTypes=["m7i.hugest"]), PARAMETER),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a tag in the metadata": (TEMPLATE, shown("a-b")),
    "a snapshot of a function of Python": (
        LAMBDA,
        {**FUNCTION, "snapStart": {"applyOn": "PublishedVersions"}},
    ),
    "an override of a type": (
        GROUPS,
        {**SCALING, "mixedInstancesPolicy": mixed("m7i.large")},
    ),
    "a snapshot's own tags": (
        SNAPSHOTS,
        {
            **KEPT,
            "policyDetails": {
                **DETAILS,
                "schedules": [{**RULE_OF_SNAPSHOTS, "tagsToAdd": {"a": "b"}}],
            },
        },
    ),
    "an interface with a public address": (
        TEMPLATE,
        interface(associatePublicIpAddress="true", securityGroups=[GROUP], subnetId=SUBNET),
    ),
    "interfaces of two cards": (
        TEMPLATE,
        launching({"deviceIndex": 0}, {"deviceIndex": 1, "networkCardIndex": 1}),
    ),
    "tags of what a launch makes": (
        TEMPLATE,
        tagged("instance", "volume", "network-interface", "spot-instances-request"),
    ),
    "a reservation that is asked for": (TEMPLATE, reserved("capacity-reservations-only")),
    "as many vCPUs at least as at most": (
        TEMPLATE,
        template(
            instanceRequirements={"vcpuCount": {"min": 2, "max": 2}, "memoryMib": {"min": 1024}}
        ),
    ),
    **{
        f"an add-on {name} told {json.dumps(told)}": (ADDON, addon(name, told))
        for name, told in (
            (
                DRIVER,
                {"node": {"enableMetrics": True}, "controller": {"extraVolumeTags": {"a": "b"}}},
            ),
            ("coredns", {"replicaCount": 3, "autoScaling": {"enabled": True, "minReplicas": 2}}),
            ("coredns", "replicaCount: 3\ntolerations:\n- operator: Exists\n"),
            ("kube-proxy", {"mode": "ipvs", "ipvs": {"scheduler": "rr"}}),
            ("vpc-cni", {"env": {"WARM_PREFIX_TARGET": "1"}, "enableNetworkPolicy": "true"}),
            ("metrics-server", {"whatever": 1}),
        )
    },
    **{
        f"an access policy {name}": (
            ASSOCIATION,
            {**ASSOCIATED, "policyArn": f"{ACCESS}{name}"},
        )
        for name in (
            *("AmazonEKSAdminViewPolicy", "AmazonEKSClusterAdminPolicy", "AmazonEKSEditPolicy"),
            "AmazonAIOpsAssistantPolicy",
        )
    },
    "an access policy on many namespaces": (
        ASSOCIATION,
        {**ASSOCIATED, "accessScope": {"type": "namespace", "namespaces": ["kafka-*"]}},
    ),
    **{
        f"services of a cluster in {block}": (CLUSTER, services(block))
        for block in ("172.16.0.0/12", "192.168.1.0/24", "10.100.0.0/16")
    },
    "nodes of a site": (CLUSTER, sites("100.64.0.0/16")),
    "a pod's namespace of 63 characters": (PODS, {**POD, "namespace": "n" * 63}),
    "a pod's account with a dot": (PODS, {**POD, "serviceAccount": "a.b"}),
}
