"""Writes kubeconfigs: one cluster, one user, and the context of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml


def write(path: Path, user: str, cluster: Mapping[str, str], **credentials: str) -> Path:
    """Write how a user reaches a cluster to a file that nobody else reads."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "twin", "cluster": dict(cluster)}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "twin", "context": {"cluster": "twin", "user": user}}],
        "current-context": "twin",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
