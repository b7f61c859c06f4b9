"""Judges a load balancer's target as AWS does: states, thresholds and draining.

Pure: answers of checks and the time come in. local.aws.loadbalancing asks and keeps the time.
Source: ELBv2's DescribeTargetHealth and the health check settings of its target groups.
"""

from __future__ import annotations

from dataclasses import dataclass

# Where the twin's AWS says which listener forwards to which targets, for the NLB's proxy.
FORWARDING_PATH = "/stillwater/load-balancers"
# Registration takes AWS minutes at times, and nobody promises a figure (LBC#1834).
REGISTRATION_SECONDS = 1.0

REGISTERING = "Elb.RegistrationInProgress"
FIRST_CHECKS = "Elb.InitialHealthChecking"
FAILED_CHECKS = "Target.FailedHealthChecks"
DEREGISTERING = "Target.DeregistrationInProgress"
NOT_REGISTERED = "Target.NotRegistered"
NOT_IN_USE = "Target.NotInUse"
DESCRIPTIONS = {
    REGISTERING: "Target registration is in progress",
    FIRST_CHECKS: "Initial health checks in progress",
    FAILED_CHECKS: "Health checks failed",
    DEREGISTERING: "Target deregistration is in progress",
    NOT_REGISTERED: "Target is not registered to the target group",
    NOT_IN_USE: (
        "Target group is not configured to receive traffic from the load balancer, or the target "
        "is in an Availability Zone that is not enabled for it"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """A target group's health check and deregistration settings."""

    interval_seconds: float
    timeout_seconds: float
    healthy_threshold: int
    unhealthy_threshold: int
    deregistration_seconds: float


@dataclass(slots=True)
class RegisteredTarget:
    """One registered address and port; a target group keeps one per pair."""

    id: str
    port: int
    registered_at: float
    state: str = "initial"
    reason: str | None = REGISTERING
    next_check_at: float = 0.0
    gone_at: float | None = None
    checking: bool = False
    passed: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self.next_check_at = self.registered_at + REGISTRATION_SECONDS

    @property
    def draining(self) -> bool:
        return self.state == "draining"

    def is_due(self, now: float) -> bool:
        return not self.draining and not self.checking and now >= self.next_check_at

    def over(self, now: float) -> bool:
        """Say whether a draining target has drained."""
        return self.gone_at is not None and now >= self.gone_at

    def drain(self, checks: Checks, now: float) -> None:
        """Begin to drain; existing connections have the group's delay to end."""
        if not self.draining:
            self.state, self.reason = "draining", DEREGISTERING
            self.gone_at = now + checks.deregistration_seconds

    def record(self, checks: Checks, now: float, *, ok: bool) -> bool:
        """Take in one check's answer; return whether the state changed."""
        self.checking = False
        self.next_check_at = now + checks.interval_seconds
        if self.draining:
            return False
        self.passed, self.failed = (self.passed + 1, 0) if ok else (0, self.failed + 1)
        before = self.state
        if self.passed >= checks.healthy_threshold:
            self.state, self.reason = "healthy", None
        elif self.failed >= checks.unhealthy_threshold:
            self.state, self.reason = "unhealthy", FAILED_CHECKS
        elif self.state == "initial":
            self.reason = FIRST_CHECKS
        return self.state != before
