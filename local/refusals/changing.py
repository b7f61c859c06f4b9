"""Refuses steps from one value to another that AWS takes of a new resource alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """An input of a type, which steps it cannot take, and how AWS says so."""

    type: str
    operation: str
    code: str
    path: str
    wrong: Callable[[str, str], bool]
    # {0} is what it was, {1} what it is to be.
    message: str
    source: str


def _minor(version: str) -> int:
    found = re.fullmatch(r"1\.(\d+)", version)
    return int(found[1]) if found else -1


def _is_no_step(old: str, new: str) -> bool:
    """Say whether a version is no neighbour: a control plane goes one up, or rolls one back.

    Whether it was upgraded within seven days, and its nodes are back, only its history says.
    """
    return -1 not in (_minor(old), _minor(new)) and abs(_minor(new) - _minor(old)) > 1


def _is_further_back(old: str, new: str) -> bool:
    return -1 not in (_minor(old), _minor(new)) and _minor(new) < _minor(old) - 1


_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def _leaves_the_api(old: str, new: str) -> bool:
    return old in _MODES and new in _MODES and _MODES.index(new) < _MODES.index(old)


def _is_another(old: str, new: str) -> bool:
    return bool(old and new) and old != new


_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/"
STEPS: tuple[RefusedStep, ...] = (
    RefusedStep(
        "eks/cluster:Cluster",
        "UpdateClusterVersion",
        "InvalidParameterException",
        "version",
        _is_no_step,
        "Unsupported Kubernetes minor version update from {0} to {1}",
        f"{_EKS}rollback-cluster.html",
    ),
    RefusedStep(
        "eks/cluster:Cluster",
        "UpdateClusterConfig",
        "InvalidParameterException",
        "accessConfig.authenticationMode",
        _leaves_the_api,
        "Unsupported authentication mode update from {0} to {1}",
        f"{_EKS}setting-up-access-entries.html",
    ),
    RefusedStep(
        "eks/nodeGroup:NodeGroup",
        "UpdateNodegroupVersion",
        "InvalidParameterException",
        "version",
        _is_further_back,
        "Nodegroup Kubernetes version cannot be downgraded from {0} to {1}",
        f"{_EKS}rollback-cluster.html",
    ),
    RefusedStep(
        "dynamodb/table:Table",
        "UpdateTimeToLive",
        "ValidationException",
        "ttl.attributeName",
        _is_another,
        "TimeToLive is active on a different AttributeName: current AttributeName is {0}",
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html",
    ),
    RefusedStep(
        "s3/bucketVersioning:BucketVersioning",
        "the provider's check",
        "Invalid Attribute Value",
        "versioningConfiguration.status",
        lambda old, new: old in {"Enabled", "Suspended"} and new == "Disabled",
        "versioning_configuration.status cannot be updated from '{0}' to '{1}'",
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Versioning.html",
    ),
)


def refusals(there: Wanted, wanted: Wanted) -> Iterator[Refusal]:
    """Yield which steps AWS would refuse between a resource as it stands and as it is wanted."""
    for step in STEPS:
        if wanted.type != f"aws:{step.type}":
            continue
        old, new = values(there.inputs, step.path), values(wanted.inputs, step.path)
        if old and new and step.wrong(str(old[0]), str(new[0])):
            message, at = step.message.format(old[0], new[0]), step.path.partition(".")[0]
            found = Refusal(step.operation, step.code, message, at)
            yield replace(found, resource=wanted.name)
