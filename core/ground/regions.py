"""Knows AWS's regions: which are served, the letters of their zones, and where EKS has no place.

Zones: DescribeAvailabilityZones as recorded in moto 5.2.5; which letter is which zone differs per
account, and some accounts have more letters, so that an unknown one is doubted and not refused.
EKS's exclusions: EKS user guide, "Subnet requirements and considerations"; they are by zone id, so
only the account can say which letter it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Commercial regions in which EKS runs (botocore's endpoints), and the letters of their zones.
ZONES = {
    "af-south-1": "abc",
    "ap-east-1": "abc",
    "ap-east-2": "abc",
    "ap-northeast-1": "acd",
    "ap-northeast-2": "abcd",
    "ap-northeast-3": "abc",
    "ap-south-1": "abc",
    "ap-south-2": "abc",
    "ap-southeast-1": "abc",
    "ap-southeast-2": "abc",
    "ap-southeast-3": "abc",
    "ap-southeast-4": "abc",
    "ap-southeast-5": "abc",
    "ap-southeast-6": "abc",
    "ap-southeast-7": "abc",
    "ca-central-1": "abd",
    "ca-west-1": "abc",
    "eu-central-1": "abc",
    "eu-central-2": "abc",
    "eu-north-1": "abc",
    "eu-south-1": "abc",
    "eu-south-2": "abc",
    "eu-west-1": "abc",
    "eu-west-2": "abc",
    "eu-west-3": "abc",
    "il-central-1": "abc",
    "me-central-1": "abc",
    "me-south-1": "abc",
    "mx-central-1": "abc",
    "sa-east-1": "abc",
    "us-east-1": "abcdef",
    "us-east-2": "abc",
    "us-west-1": "abc",
    "us-west-2": "abcd",
}
# Zones in which EKS places no control plane: none of a cluster's subnets may stand there.
WITHOUT_EKS = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
# Regions of other partitions begin with these.
OTHER_PARTITIONS = {
    "us-gov-": "AWS GovCloud (US)",
    "cn-": "the China partition",
    "us-iso": "an isolated partition",
    "eu-iso": "an isolated partition",
    "eusc-": "the European Sovereign Cloud",
}


def refusal(region: str) -> str | None:
    """Say why a region is not served; None for a commercial one, known or not."""
    for beginning, partition in OTHER_PARTITIONS.items():
        if region.startswith(beginning):
            return (
                f"region {region} is of {partition}, which this release does not serve; choose a "
                "commercial region."
            )
    return None


def doubts(region: str, zones: Iterable[str]) -> list[str]:
    """Return a sentence for a region, else for each of its zones, that is in no table of ours."""
    if region not in ZONES:
        close = difflib.get_close_matches(region, ZONES, n=1)
        meant = f"; did you mean {close[0]}?" if close else "; correct it."
        said = (
            f"region {region} is not among the {len(ZONES)} commercial regions with EKS that this "
            f"release knows{meant}"
        )
        return [said]
    return [
        f"availability zone {zone} is not among those that accounts commonly have in {region} "
        f"({', '.join(region + letter for letter in ZONES[region])}); see `aws ec2 "
        f"describe-availability-zones --region {region}`."
        for zone in zones
        if zone[:-1] == region and zone[-1] not in ZONES[region]
    ]
