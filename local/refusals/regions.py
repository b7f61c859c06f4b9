"""One program makes its resources in one region: what names another one is not found there."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import botocore.session

from local.refusals.documents import parse
from local.refusals.fields import values
from local.refusals.limits import EVERY_TYPE
from local.refusals.limits import limit as of_one
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit

_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@dataclass(frozen=True, slots=True)
class RegionalInput:
    """An input that must be of the region it is made in, and how AWS refuses another."""

    path: str
    operation: str
    code: str
    message: str


LOCAL: Mapping[str, tuple[RegionalInput, ...]] = {
    "aws:cloudwatch/metricAlarm:MetricAlarm": tuple(
        RegionalInput(
            f"{kind}.*",
            "PutMetricAlarm",
            "ValidationError",
            "Invalid region {0} specified. Only {1} is supported.",
        )
        for kind in ("alarmActions", "insufficientDataActions", "okActions")
    ),
    "aws:cloudwatch/eventTarget:EventTarget": (
        RegionalInput(
            "deadLetterConfig.arn",
            "PutTargets",
            "ValidationException",
            "Parameter DeadLetterConfig.Arn is not valid: it is in {0}, and the rule in {1}.",
        ),
    ),
    "aws:cloudwatch/logGroup:LogGroup": (
        RegionalInput(
            "kmsKeyId",
            "CreateLogGroup",
            "InvalidParameterException",
            "The specified KMS key is in {0}, and the log group in {1}.",
        ),
    ),
    "aws:ec2/subnet:Subnet": (
        RegionalInput(
            "availabilityZone",
            "CreateSubnet",
            "InvalidParameterValue",
            "Value for parameter availabilityZone is invalid: it is of {0}, and not of {1}.",
        ),
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": (
        RegionalInput(
            "serviceName",
            "CreateVpcEndpoint",
            "InvalidServiceName",
            "The Vpc Endpoint Service of {0} does not exist in {1}",
        ),
    ),
    "aws:eks/cluster:Cluster": (
        RegionalInput(
            "encryptionConfig.provider.keyArn",
            "CreateCluster",
            "InvalidParameterException",
            "The KMS key is in {0}, and must be in the cluster's region, {1}.",
        ),
    ),
    "aws:lambda/eventSourceMapping:EventSourceMapping": (
        RegionalInput(
            "eventSourceArn",
            "CreateEventSourceMapping",
            "InvalidParameterValueException",
            "The event source is in {0}, and the function in {1}.",
        ),
    ),
    "aws:lambda/function:Function": (
        RegionalInput(
            "layers.*",
            "CreateFunction",
            "InvalidParameterValueException",
            "The layer is in {0}, and the function in {1}.",
        ),
        RegionalInput(
            "kmsKeyArn",
            "CreateFunction",
            "InvalidParameterValueException",
            "The KMS key is in {0}, and the function in {1}.",
        ),
        RegionalInput(
            "deadLetterConfig.targetArn",
            "CreateFunction",
            "InvalidParameterValueException",
            "The dead letter target is in {0}, and the function in {1}.",
        ),
    ),
    "aws:lb/listener:Listener": (
        RegionalInput(
            "certificateArn",
            "CreateListener",
            "CertificateNotFound",
            "The certificate is in {0}, and the listener in {1}.",
        ),
    ),
    "aws:sqs/queue:Queue": (
        RegionalInput(
            "redrivePolicy",
            "CreateQueue",
            "InvalidParameterValue",
            "Dead letter target is in {0}, and must be in the queue's region, {1}.",
        ),
    ),
}


@limit("https://docs.aws.amazon.com/general/latest/gr/rande.html")
def one_region(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The region that most of a program's own inputs name; with as many of two, nobody knows."""
    named = [
        (each, rule, region)
        for each in everything
        for rule in LOCAL.get(each.type, ())
        for region in _regions(each, rule.path)
    ]
    own = _most_common(named)
    for each, rule, region in named:
        if own and region != own:
            message = rule.message.format(region, own)
            yield about(each, rule.operation, rule.code, message, rule.path.partition(".")[0])


def _most_common(named: Sequence[tuple[Wanted, RegionalInput, str]]) -> str:
    most = Counter(region for *_, region in named).most_common(2)
    tied = len(most) == 2 and most[0][1] == most[1][1]
    return "" if not most or tied else most[0][0]


def _regions(wanted: Wanted, path: str) -> list[str]:
    if wanted.inputs.get("region"):
        # Made elsewhere on purpose.
        return []
    given = values(wanted.inputs, path)
    if path == "redrivePolicy":
        given = [(parse(each) or {}).get("deadLetterTargetArn") for each in given]
    found = (_REGION.search(_place(str(each))) for each in given)
    return [each[0] for each in found if each]


def _place(written: str) -> str:
    """Return the part of an ARN, a service's name or a zone that names its region."""
    if written.startswith("arn:"):
        return written.split(":")[3] if written.count(":") > 3 else ""
    return written


@of_one(EVERY_TYPE, source="https://docs.aws.amazon.com/general/latest/gr/rande.html")
def region_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """A resource that is made elsewhere is made in a region that there is."""
    region = wanted.inputs.get("region")
    if region and region not in regions():
        message = f"invalid AWS Region: {region}"
        yield Refusal("the provider's check", "Invalid Attribute Value", message, "region")


@functools.cache
def regions() -> frozenset[str]:
    """Return the regions of every partition.

    >>> "eu-central-1" in regions(), "mars-1" in regions()
    (True, False)
    """
    session = botocore.session.get_session()
    partitions = session.get_available_partitions()
    return frozenset(r for p in partitions for r in session.get_available_regions("s3", p))
