"""Limits on names that their models do not state."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

BALANCER_NAME = 32
QUEUE_NAME = 80


@limit(
    "lb/loadBalancer:LoadBalancer",
    "lb/targetGroup:TargetGroup",
    source="https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateTargetGroup.html",
)
def name_of_a_balancer_or_group(wanted: Wanted) -> Iterator[Refusal]:
    """32 letters, digits and hyphens, none at either end; a balancer's does not begin internal-."""
    name = str(wanted.inputs.get("name") or "")
    balancer = wanted.type.endswith(":LoadBalancer")
    kind, operation = (
        ("Load balancer", "CreateLoadBalancer")
        if balancer
        else ("Target group", "CreateTargetGroup")
    )
    wrong = ""
    if len(name) > BALANCER_NAME:
        wrong = f"cannot be longer than '{BALANCER_NAME}' characters"
    elif re.fullmatch(r"[A-Za-z0-9-]*", name) is None:
        wrong = "can only contain characters that are alphanumeric characters or hyphens(-)"
    elif name.startswith("-") or name.endswith("-"):
        wrong = "cannot begin or end with a hyphen(-)"
    elif balancer and name.startswith("internal-"):
        wrong = "cannot begin with 'internal-'"
    if wrong:
        yield Refusal(operation, "ValidationError", f"{kind} name '{name}' {wrong}", "name")


@limit(
    "sqs/queue:Queue",
    source="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html",
)
def name_of_a_queue(wanted: Wanted) -> Iterator[Refusal]:
    """80 letters, digits, hyphens and underscores; of a FIFO queue, .fifo at the end."""
    name, fifo = str(wanted.inputs.get("name") or ""), bool(wanted.inputs.get("fifoQueue"))
    stem = name.removesuffix(".fifo") if fifo else name
    if len(name) > QUEUE_NAME or re.fullmatch(r"[A-Za-z0-9_-]+", stem) is None:
        message = (
            "Can only include alphanumeric characters, hyphens, or underscores. "
            f"1 to {QUEUE_NAME} in length"
        )
        yield Refusal("CreateQueue", "InvalidParameterValue", message, "name")
    if fifo and not name.endswith(".fifo"):
        message = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
        message += "underscores, must end with .fifo suffix and be 1 to 80 in length."
        yield Refusal("CreateQueue", "InvalidParameterValue", message, "name")


def _bucket_problem(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        address = False
    else:
        address = True
    forbidden = name.startswith(("xn--", "sthree-", "amzn-s3-demo-")) or name.endswith(
        # -an is of names in an account's own namespace, which the provider asks for nowhere.
        ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3", "-an")
    )
    formed = re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", name) is not None
    return not formed or ".." in name or address or forbidden


@limit(
    "s3/bucket:Bucket",
    source="https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html",
)
def name_of_a_bucket(wanted: Wanted) -> Iterator[Refusal]:
    """3 to 63 of a-z, 0-9, dots and hyphens, no address, none of S3's own endings."""
    if _bucket_problem(str(wanted.inputs.get("bucket") or "")):
        message = "The specified bucket is not valid."
        yield Refusal("CreateBucket", "InvalidBucketName", message, "bucket")


@limit(
    "ec2/securityGroup:SecurityGroup",
    source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateSecurityGroup.html",
)
def name_of_a_security_group(wanted: Wanted) -> Iterator[Refusal]:
    """Not like an id, and not as the group that every VPC has."""
    name = str(wanted.inputs.get("name") or "")
    if name.startswith("sg-"):
        message = f"Value ({name}) for parameter GroupName is invalid. Group names may not be in "
        message += "the format sg-*."
        yield Refusal("CreateSecurityGroup", "InvalidParameterValue", message, "name")
    if name.lower() == "default":
        message = f"Cannot use reserved security group name: {name}"
        yield Refusal("CreateSecurityGroup", "InvalidGroup.Reserved", message, "name")


@limit(
    "kms/alias:Alias",
    source="https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateAlias.html",
)
def name_of_an_alias(wanted: Wanted) -> Iterator[Refusal]:
    """Begins alias/, and not alias/aws/."""
    name = str(wanted.inputs.get("name") or "")
    if not name.startswith("alias/"):
        message = 'Alias must start with the prefix "alias/". Please see '
        message += "https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html"
        yield Refusal("CreateAlias", "ValidationException", message, "name")
    elif name.startswith("alias/aws/"):
        yield Refusal("CreateAlias", "NotAuthorizedException", "", "name")


@limit(
    "route53/zone:Zone",
    "route53/record:Record",
    source="https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DomainNameFormat.html",
)
def name_of_a_zone_or_record(wanted: Wanted) -> Iterator[Refusal]:
    """Labels of 63 characters, 255 in all, no white space."""
    name = str(wanted.inputs.get("name") or "")
    labels = name.removesuffix(".").split(".")
    zone = wanted.type.endswith(":Zone")
    operation = "CreateHostedZone" if zone else "ChangeResourceRecordSets"
    code = "InvalidDomainName" if zone else "InvalidChangeBatch"
    wrong = ""
    if any(len(each) > 63 for each in labels):
        wrong = "DomainLabelTooLong (Domain label is too long)"
    elif not all(labels):
        wrong = "DomainLabelEmpty (Domain label is empty)"
    elif len(name) > 255:
        wrong = "DomainNameTooLong (Domain name is too long)"
    elif re.search(r"\s|[^\x00-\x7f]", name):
        wrong = "UnsupportedCharacter (Value contains unsupported characters)"
    if wrong:
        yield Refusal(operation, code, f"FATAL problem: {wrong} encountered with '{name}'", "name")
