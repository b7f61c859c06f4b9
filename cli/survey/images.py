"""Reads which images of Kafka's pods ECR has no more, and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

from cli.aws_pages import pages

# As in 111122223333.dkr.ecr.eu-north-1.amazonaws.com/strimzi/kafka:1.2.0-kafka-4.3.1.
IMAGE = re.compile(
    r"(\d{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"([^:@]+)(?::([^@]+))?(?:@(.+))?"
)
GONE = ("ImageNotFoundException", "RepositoryNotFoundException")
DENIED = "AccessDeniedException"


def lost_images(
    ecr: Any, images: Iterable[str], region: str | None, account: str | None
) -> frozenset[str]:
    """Return images of ECR's in a region that are not there, and that it fetches from nowhere."""
    named = {image: found for image in images if (found := IMAGE.fullmatch(image))}
    return frozenset(
        image
        for image, found in named.items()
        if found[2] == region and _is_lost(ecr, found, account)
    )


def _is_lost(ecr: Any, found: re.Match[str], account: str | None) -> bool:
    registry, name, tag, digest = found.group(1, 3, 4, 5)
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag or "latest"}
    try:
        ecr.describe_images(registryId=registry, repositoryName=name, imageIds=[wanted])
    except ClientError as error:
        code = error.response["Error"]["Code"]
        # Another account shows its images to whoever may pull them, and not always their list.
        if code == DENIED and registry != account:
            return False
        if code not in GONE:
            raise
        return not _is_fetched(ecr, registry, name)
    return False


def _is_fetched(ecr: Any, registry: str, name: str) -> bool:
    """Say whether ECR fetches an image anew from another registry (a pull through cache)."""
    rules = pages(
        ecr, "describe_pull_through_cache_rules", "pullThroughCacheRules", registryId=registry
    )
    prefixes = [str(each["ecrRepositoryPrefix"]) for each in rules]
    return any(name.startswith(f"{prefix}/") or prefix == "ROOT" for prefix in prefixes)
