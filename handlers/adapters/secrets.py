"""One secret of Secrets Manager: read when first needed, kept in memory, never anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable

import boto3
from botocore.config import Config

# Somebody who sends wrong tokens must not make us ask AWS for each of them.
LEAST_AGE_SECONDS = 60.0


class Secret:
    """The string of a secret, by name or ARN."""

    def __init__(
        self, name: str, region: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        client = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard"})
        self._secrets = boto3.client("secretsmanager", region_name=region, config=client)
        self._clock = clock
        self._known: tuple[str, float] | None = None

    def value(self) -> str:
        """Return the secret, as first read."""
        return self._read() if self._known is None else self._known[0]

    def renew(self) -> str:
        """Return the secret read again, unless that was done a moment ago."""
        if self._known is not None and self._clock() - self._known[1] < LEAST_AGE_SECONDS:
            return self._known[0]
        return self._read()

    def _read(self) -> str:
        found: str = self._secrets.get_secret_value(SecretId=self._name)["SecretString"]
        self._known = (found, self._clock())
        return found
