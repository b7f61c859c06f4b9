"""Pins every version of the program in one place, and chooses each EKS add-on's.

Apart from the components, so that a spec is checked without starting the engine's library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NTH_CHART = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
NTH_CHART_VERSION = "0.27.6"  # node termination handler 1.25.6

LBC_REPOSITORY = "https://aws.github.io/eks-charts"
LBC_CHART = "aws-load-balancer-controller"
# Controller 3.5.0. From 3.4 on it watches pods (LBC#4678), so that a gate does not wait for the
# next requeue. The twin runs an older one: docs/twin.md.
LBC_CHART_VERSION = "3.5.0"

# The functions are pure Python; boto3 comes with the runtime.
LAMBDA_RUNTIME = "python3.13"
LAMBDA_ARCHITECTURE = "arm64"

# Spark 4.1: the version the jobs are written against (EMR's 7.x line still ships Spark 3.5).
EMR_RELEASE = "emr-spark-8.2.0"
EMR_ARCHITECTURE = "ARM64"
# The first that the release guide lists for this line (3.11, 3.13), which is its default. Another
# one cannot import wheels of this: the job then reads as it does without them, and says so.
EMR_PYTHON = "3.11"

STRIMZI_API = "kafka.strimzi.io/v1"
STRIMZI_CHART = "oci://quay.io/strimzi-helm/strimzi-kafka-operator"
STRIMZI_CHART_VERSION = "1.2.0"

# EKS add-ons, as EKS itself recommends them for Kubernetes 1.35. kube-proxy follows the minor
# version of the control plane; a spec names what another one needs in kubernetes.addon_versions.
ADDONS_KUBERNETES = "1.35"
ADDONS = {
    "vpc-cni": "v1.22.4-eksbuild.3",
    "kube-proxy": "v1.35.3-eksbuild.29",
    "eks-pod-identity-agent": "v1.3.10-eksbuild.3",
    "coredns": "v1.13.2-eksbuild.31",
    "aws-ebs-csi-driver": "v1.66.0-eksbuild.1",
    "snapshot-controller": "v8.5.0-eksbuild.3",
    "eks-node-monitoring-agent": "v1.7.0-eksbuild.1",
}

CLUSTER_AUTOSCALER_REPOSITORY = "https://kubernetes.github.io/autoscaler"
CLUSTER_AUTOSCALER_CHART = "cluster-autoscaler"
CLUSTER_AUTOSCALER_CHART_VERSION = "9.59.0"  # cluster autoscaler 1.35.0

KARPENTER_CHART = "oci://public.ecr.aws/karpenter/karpenter"
KARPENTER_CRD_CHART = "oci://public.ecr.aws/karpenter/karpenter-crd"
KARPENTER_CHART_VERSION = "1.14.1"

SNAPSHOT_API = "snapshot.storage.k8s.io/v1"
KARPENTER_API = "karpenter.sh/v1"
KARPENTER_AWS_API = "karpenter.k8s.aws/v1"


VERSION = re.compile(r"v[0-9]+\.(?P<minor>[0-9]+)\.[0-9]+-eksbuild\.[0-9]+")
OLDEST_PROXY = 3
# The one add-on whose version must be that of the control plane.
FOLLOWS_KUBERNETES = "kube-proxy"


def problems(kubernetes_version: str, chosen: Mapping[str, str]) -> list[str]:
    """Return a sentence for each add-on that is not ours, or that no version is known of."""
    found = [
        f"kubernetes.addon_versions names {addon}, which is not an add-on of this cluster: it has "
        f"{', '.join(sorted(ADDONS))}."
        for addon in sorted(chosen.keys() - ADDONS.keys())
    ]
    found += [
        f"kubernetes.addon_versions has {addon} at {asked}, and EKS's versions read like "
        f"{ADDONS[addon]}; take one of `aws eks describe-addon-versions --addon-name {addon} "
        f"--kubernetes-version {kubernetes_version}`."
        for addon, asked in sorted(chosen.items())
        if addon in ADDONS and VERSION.fullmatch(asked) is None
    ]
    found += _proxy_problems(kubernetes_version, chosen)
    if kubernetes_version != ADDONS_KUBERNETES and FOLLOWS_KUBERNETES not in chosen:
        found.append(_unknown(kubernetes_version))
    return found


def doubts(kubernetes_version: str, chosen: Mapping[str, str]) -> list[str]:
    """Return a sentence for a Kubernetes that came after this release, and for add-ons not ours."""
    return [
        *_kubernetes_doubts(kubernetes_version),
        *_untried_versions(kubernetes_version, chosen),
    ]


def _untried_versions(kubernetes_version: str, chosen: Mapping[str, str]) -> list[str]:
    """Name versions that are of another minor version than ours: EKS offers each for some alone."""
    return [
        f"kubernetes.addon_versions has {addon} at {asked}, and this release was tried with "
        f"{ADDONS[addon]}. Whether EKS offers it for {kubernetes_version} was not checked; "
        "`stillwater preflight` asks EKS."
        for addon, asked in sorted(chosen.items())
        if addon in ADDONS and addon != FOLLOWS_KUBERNETES
        if (written := VERSION.fullmatch(asked)) is not None
        if asked.split(".")[0] != ADDONS[addon].split(".")[0]
        or written["minor"] != ADDONS[addon].split(".")[1]
    ]


def _kubernetes_doubts(kubernetes_version: str) -> list[str]:
    asked, known = (
        tuple(int(part) for part in written.split("."))
        for written in (kubernetes_version, ADDONS_KUBERNETES)
    )
    if asked <= known:
        return []
    doubt = (
        f"kubernetes.version {kubernetes_version} is newer than {ADDONS_KUBERNETES}, the newest "
        "that this release was tried with. Whether it works was not checked; `stillwater "
        "preflight` asks EKS."
    )
    return [doubt]


def _proxy_problems(kubernetes_version: str, chosen: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the version of the add-on that follows the control plane's.

    Source: EKS user guide, "Manage kube-proxy in Amazon EKS clusters": no newer than the control
    plane, and three minor versions older at the most.
    """
    asked = VERSION.fullmatch(chosen.get(FOLLOWS_KUBERNETES, ""))
    if asked is None:
        return []
    minor = int(kubernetes_version.split(".")[1])
    if minor - OLDEST_PROXY <= int(asked["minor"]) <= minor:
        return []
    problem = (
        f"kubernetes.addon_versions has {FOLLOWS_KUBERNETES} at {asked[0]} with kubernetes.version "
        f"{kubernetes_version}. It may not be newer, and at most {OLDEST_PROXY} minor versions "
        f"older; take one of `aws eks describe-addon-versions --addon-name {FOLLOWS_KUBERNETES} "
        f"--kubernetes-version {kubernetes_version}`."
    )
    return [problem]


def version(addon: str, chosen: Mapping[str, str]) -> str:
    """Return the version of an add-on: the spec's, else the one this release was made with."""
    return chosen[addon] if addon in chosen else ADDONS[addon]


def _unknown(kubernetes_version: str) -> str:
    return (
        f"kubernetes.version is {kubernetes_version}, but the version of {FOLLOWS_KUBERNETES} "
        f"known here is for {ADDONS_KUBERNETES}: name one in kubernetes.addon_versions, from `aws "
        f"eks describe-addon-versions --addon-name {FOLLOWS_KUBERNETES} "
        f"--kubernetes-version {kubernetes_version}`."
    )
