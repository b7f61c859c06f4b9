"""Every version the program pins, in one place."""

from __future__ import annotations

NTH_CHART = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
NTH_CHART_VERSION = "0.27.6"  # node termination handler 1.25.6

# The functions are pure Python; boto3 comes with the runtime.
LAMBDA_RUNTIME = "python3.13"
LAMBDA_ARCHITECTURE = "arm64"

# Spark 4.1: the version the jobs are written against (EMR's 7.x line still ships Spark 3.5).
EMR_RELEASE = "emr-spark-8.2.0"

STRIMZI_API = "kafka.strimzi.io/v1"
