"""Builds the environment of the twin's processes: its own AWS, nothing of the user's account."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path

from infra.analytics import report_job
from local.place import PLACE_VARIABLE, Place

REGION = "us-east-1"
ACCOUNT = "123456789012"
PARTITION = "aws"
# The user whose key every client of the twin starts with.
ADMIN_USER = "stillwater-twin-admin"
# Where the twin's AWS answers calls of a function's URL, by the function's name.
FUNCTION_URL_PATH = "/stillwater/function-url/"
# Where the twin's AWS says which listener forwards to which targets, for the NLB's proxy.
FORWARDING_PATH = "/stillwater/load-balancers"
CREDENTIALS_FILE = "aws-credentials.json"
# Left out of every child: the user's identity, and proxies, since every address is this machine's.
_HIDDEN_PREFIXES = ("AWS_", "PULUMI_", "STILLWATER_", "KUBE")
# Where the user keeps built tools, by which rules Kafka is probed, how long the twin's machines
# take (Delays below), and how far what does not serve gives way (local.processes).
_KEPT = (
    "STILLWATER_CACHE",
    "STILLWATER_HEALTH_RULES",
    "STILLWATER_BOOT_SECONDS",
    "STILLWATER_GIVES_WAY",
    "STILLWATER_SHUTDOWN_SECONDS",
    "STILLWATER_HEALTH_CHECK_SECONDS",
    "STILLWATER_LAUNCH_RETRY_SECONDS",
)


def base(place: Place) -> dict[str, str]:
    """Return the user's environment without identities or proxies, pointed at the twin."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(_HIDDEN_PREFIXES) and "proxy" not in key.lower()
    }
    # The twin's programs run in directories of their own.
    if "PYTHONPATH" in kept:
        paths = [str(Path(p).resolve()) for p in kept["PYTHONPATH"].split(os.pathsep) if p]
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    return {
        **kept,
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        PLACE_VARIABLE: str(place.directory),
        **aws_environment(place),
        "PYTHONUNBUFFERED": "1",
        # No EMR would read them.
        report_job.SWITCH: report_job.NEVER,
    }


def aws_environment(place: Place) -> dict[str, str]:
    """Return where the twin's AWS is, for every SDK; the last is aws-sdk-go v1's."""
    return {
        "AWS_ENDPOINT_URL": place.url("moto"),
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        # No file of the user's is read, so no profile of theirs can leak in.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_SDK_LOAD_CONFIG": "false",
    }


def credentials_file(place: Place) -> Path:
    """Return where the twin's AWS writes its administrator's access key."""
    return place.path(CREDENTIALS_FILE)


def with_credentials(place: Place) -> dict[str, str]:
    """Return the base environment with the twin's AWS administrator in it."""
    stored = json.loads(credentials_file(place).read_text())
    return {
        **base(place),
        "AWS_ACCESS_KEY_ID": stored["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": stored["secret_access_key"],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long EC2 and Auto Scaling take in the twin; on AWS it is half a minute and more."""

    boot_seconds: float = 2.0
    shutdown_seconds: float = 1.0
    health_check_seconds: float = 2.0
    launch_retry_seconds: float = 10.0

    @staticmethod
    def from_env() -> Delays:
        """Read STILLWATER_BOOT_SECONDS and its siblings where they are set."""
        given = {
            field.name: float(value)
            for field in fields(Delays)
            if (value := os.environ.get(f"STILLWATER_{field.name.upper()}"))
        }
        return Delays(**given)
