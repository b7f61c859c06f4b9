"""Lists what a survey reads, and what of the answers it leaves unread, out of reads.toml.

The reference, the page and tests follow from the one table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("reads.toml").read_text("utf-8"))
# Action -> what it tells.
READS: Mapping[str, str] = _TABLE["reads"]
# Kind of Kubernetes, or action of AWS -> the fields that are not looked at, each with what comes
# of it.
KUBERNETES: Mapping[str, Mapping[str, str]] = _TABLE["kubernetes"]
AWS_UNREAD: Mapping[str, Mapping[str, str]] = _TABLE["aws"]
# What a reader of a survey is shown: of what nothing was said.
UNREAD: Mapping[str, Mapping[str, str]] = {
    kind: fields for kind, fields in {**KUBERNETES, **AWS_UNREAD}.items() if fields
}
