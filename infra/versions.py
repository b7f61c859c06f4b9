"""Every version the program pins, in one place."""

from __future__ import annotations

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
