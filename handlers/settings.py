"""What a function is told by its environment, read once: infra renders it from the ClusterSpec."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import InvalidInput
from core.incidents.observation import Policy
from core.naming import managed_tag
from core.timing import FACTS
from core.window import DAYS, Window

# A tick takes seconds. One that takes longer than this is taken for dead and its incident carried
# on; where it was only slow, versions in the ledger and idempotent effects keep that harmless.
LONGEST_TICK_SECONDS = 45.0
AWS_HOOK_LIMIT_SECONDS = float(FACTS["aws_hook_limit_seconds"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Frozen settings of every handler."""

    prefix: str
    cluster: str
    namespace: str
    region: str
    ledger_table: str
    ticks_queue_url: str
    nth_queue_url: str
    eks_cluster: str
    eks_endpoint: str
    eks_ca_pem: str
    kafka_bootstrap: tuple[str, ...]
    # None: Slack is off.
    stories_queue_url: str | None = None
    # None: the alerts are off.
    alerts_topic_arn: str | None = None
    archive_bucket: str
    policy: Policy

    @property
    def managed_tag(self) -> str:
        """The tag key that says an instance or group belongs to this cluster."""
        return managed_tag(self.prefix)

    @property
    def lease_seconds(self) -> float:
        """How long a lease outlives its last renewal.

        A holder that has not ticked for a whole heartbeat timeout has lost its hooks, too.
        """
        return self.policy.heartbeat_timeout_seconds

    @property
    def late_seconds(self) -> float:
        """How late a tick is when it is taken for lost."""
        return max(3 * self.policy.tick_interval_seconds, LONGEST_TICK_SECONDS)

    @classmethod
    def from_env(
        cls, environment: Mapping[str, str] = os.environ, *, speaks_to_kubernetes: bool = True
    ) -> Settings:
        """Read the environment; raises InvalidInput with one sentence per problem.

        A function that does not speak to the API server is not told its certificate.
        """
        reader = Reader(environment)
        settings = _read(cls, reader, reader.pem("EKS_CA") if speaks_to_kubernetes else "")
        reader.check()
        return settings


class Reader:
    """Reads variables and collects every problem, so that one deployment fixes them all."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def check(self) -> None:
        """Raise InvalidInput with every problem found so far."""
        if self.problems:
            raise InvalidInput(self.problems)

    def optional(self, name: str) -> str | None:
        """Return a variable that is left out where what it names is off."""
        return self._environment.get(f"STILLWATER_{name}") or None

    def text(self, name: str, *, or_else: str | None = None) -> str:
        full = f"STILLWATER_{name}"
        value = self._environment.get(full) or (self._environment.get(or_else) if or_else else None)
        if not value:
            missing = f"Neither {full} nor {or_else} is set"
            if or_else is None:
                missing = f"Environment variable {full} is not set"
            self.problems.append(
                f"{missing}; the operations stack renders it, so run `pulumi up` on it again."
            )
            return ""
        return value

    def number(self, name: str) -> float:
        value = self.text(name)
        if not value:
            return 0.0
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            self.problems.append(
                f"STILLWATER_{name} is {value!r}, and must be a number that is not negative."
            )
            return 0.0
        return number

    def choice(self, name: str, *allowed: str) -> str:
        value = self.text(name)
        if value and value not in allowed:
            self.problems.append(
                f"STILLWATER_{name} is {value!r}, and must be {' or '.join(allowed)}."
            )
        return value

    def window(self, name: str) -> Window | None:
        """Read a maintenance window: "any", or days, start and minutes as in "sat,sun 180 120"."""
        value = self.text(name)
        if value in {"", "any"}:
            return None
        days, _, rest = value.partition(" ")
        minutes = [int(m) for m in rest.split() if m.isascii() and m.isdigit()]
        named = frozenset(days.split(","))
        if not named <= set(DAYS) or len(minutes) != 2:
            self.problems.append(
                f"STILLWATER_{name} is {value!r}, and must be days, the minute after midnight and "
                f"a number of minutes, as in 'sat,sun 180 120', or 'any'."
            )
            return None
        return Window(days=named, start_minute=minutes[0], duration_minutes=minutes[1])

    def pem(self, name: str) -> str:
        value = self.text(name)
        try:
            return base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            self.problems.append(
                f"STILLWATER_{name} is not base64 of a PEM certificate, as EKS gives it."
            )
            return ""


def _read(cls: type[Settings], reader: Reader, ca_pem: str) -> Settings:
    return cls(
        prefix=reader.text("PREFIX"),
        cluster=reader.text("CLUSTER"),
        namespace=reader.text("NAMESPACE"),
        region=reader.text("REGION", or_else="AWS_REGION"),
        ledger_table=reader.text("LEDGER_TABLE"),
        ticks_queue_url=reader.text("TICKS_QUEUE_URL"),
        nth_queue_url=reader.text("NTH_QUEUE_URL"),
        eks_cluster=reader.text("EKS_CLUSTER"),
        eks_endpoint=reader.text("EKS_ENDPOINT"),
        eks_ca_pem=ca_pem,
        kafka_bootstrap=tuple(
            address.strip() for address in reader.text("KAFKA_BOOTSTRAP").split(",")
        ),
        stories_queue_url=reader.optional("STORIES_QUEUE_URL"),
        alerts_topic_arn=reader.optional("ALERTS_TOPIC_ARN"),
        archive_bucket=reader.text("ARCHIVE_BUCKET"),
        policy=Policy(
            drain_route=reader.choice("DRAIN_ROUTE", "held", "direct"),
            scale_in=reader.choice("SCALE_IN", "restore", "release"),
            isr_margin=int(reader.number("ISR_MARGIN")),
            tick_interval_seconds=reader.number("TICK_INTERVAL_S"),
            hold_limit_seconds=reader.number("HOLD_LIMIT_S"),
            heartbeat_timeout_seconds=reader.number("HEARTBEAT_TIMEOUT_S"),
            # A shorter hold could not tell a broker that froze: it is fenced only by then.
            post_condition_hold_seconds=max(
                reader.number("POST_CONDITION_HOLD_S"), reader.number("SESSION_TIMEOUT_S")
            ),
            post_condition_wait_seconds=reader.number("POST_CONDITION_WAIT_S"),
            hook_limit_seconds=min(reader.number("HOOK_LIMIT_S"), AWS_HOOK_LIMIT_SECONDS),
            forward_again_seconds=reader.number("FORWARD_AGAIN_S"),
            drain_life_seconds=reader.number("DRAIN_LIFE_S"),
            planned_margin_seconds=reader.number("PLANNED_MARGIN_S"),
            gate=reader.choice("GATE", "isr", "ready"),
            maintenance=reader.window("MAINTENANCE"),
        ),
    )
