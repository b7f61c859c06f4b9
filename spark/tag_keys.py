"""The tags by which a bill says whose a charge is, and how exports spell their keys.

CUR 2.0's map says `user_stillwater_pool`, some exports `user:stillwater:pool`, the newer `tags`
map `resourceTags/user:stillwater:pool`, FOCUS the key itself; legacy CUR and exports that flatten
a tag give it a column.
"""

from __future__ import annotations

import re

from core.naming import CLUSTER_TAG, POOL_TAG

# The EBS CSI driver's, on the volume it makes for a claim.
CLAIM_TAG = "kubernetes.io/created-for/pvc/name"
# EKS's, on the nodes of its own groups, which carry system pods and never a broker.
NODE_GROUP_TAG = "eks:nodegroup-name"
# By which a charge is somebody's.
TAGS = (CLUSTER_TAG, POOL_TAG, CLAIM_TAG, NODE_GROUP_TAG)
# On every line that no one was charged for.
SIMULATED_TAG = "stillwater:simulated"


def export_key(key: str) -> str:
    """Return how CUR 2.0's resource_tags map spells a tag's key.

    stillwater:pool -> user_stillwater_pool; aws:autoscaling:groupName ->
    aws_autoscaling_group_name.
    """
    words = re.sub(r"([A-Z])", r"_\1", key).lower()
    snake = re.sub(r"[^0-9a-z]+", "_", words).strip("_")
    return snake if key.startswith("aws:") else f"user_{snake}"


def spellings(key: str) -> tuple[str, ...]:
    """Return every spelling of a tag's key in a map, the likeliest first."""
    marked = key if key.startswith("aws:") else f"user:{key}"
    forms = (export_key(key), marked, key, f"resourceTags/{marked}", f"resourceTags/{key}")
    return tuple(dict.fromkeys(forms))


def column_spellings(key: str) -> tuple[str, ...]:
    """Return every name of the column that a tag may have for itself, in lower case."""
    snake = export_key(key)
    marked = key if key.startswith("aws:") else f"user:{key}"
    forms = (f"resource_tags_{snake}", snake, f"resourcetags/{marked.lower()}")
    return tuple(dict.fromkeys(forms))
