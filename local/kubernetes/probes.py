"""Probes of a container: when the next one is due, what a run of results means, and asking.

The schedule takes the time as an argument. Source: kubernetes/pkg/kubelet/prober.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from local.kubernetes.client import Object
from local.processes import kill_group

# (success, what was seen), in a while.
Answer = Future[tuple[bool, str]]


class ProbeKind(StrEnum):
    """Which question a probe answers; the value is the container's field."""

    STARTUP = "startupProbe"
    LIVENESS = "livenessProbe"
    READINESS = "readinessProbe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The figures of one probe, with the API's defaults."""

    initial_delay_seconds: float = 0.0
    period_seconds: float = 10.0
    timeout_seconds: float = 1.0
    failure_threshold: int = 3
    success_threshold: int = 1

    @classmethod
    def of(cls, probe: Mapping[str, Any]) -> Schedule:
        return cls(
            initial_delay_seconds=float(probe.get("initialDelaySeconds") or 0),
            period_seconds=float(probe.get("periodSeconds") or 10),
            timeout_seconds=float(probe.get("timeoutSeconds") or 1),
            failure_threshold=int(probe.get("failureThreshold") or 3),
            success_threshold=int(probe.get("successThreshold") or 1),
        )


class ProbeRun:
    """One probe over one run of a container: its verdict so far and when to ask again."""

    def __init__(self, role: ProbeKind, schedule: Schedule, *, started_at: float) -> None:
        self.role, self.schedule = role, schedule
        # A container lives until shown otherwise; it is neither started nor ready until shown so.
        self.passing = role is ProbeKind.LIVENESS
        self.failed = False
        self.message = ""
        self.next_at = started_at + schedule.initial_delay_seconds
        self._run_of: bool | None = None
        self._run_length = 0

    def is_due(self, now: float) -> bool:
        return now >= self.next_at

    def record(self, *, ok: bool, now: float, message: str = "") -> None:
        """Take in one answer; the verdict turns after a threshold of equal answers in a row."""
        self.next_at = now + self.schedule.period_seconds
        self.message = message
        self._run_length = self._run_length + 1 if self._run_of is ok else 1
        self._run_of = ok
        threshold = self.schedule.success_threshold if ok else self.schedule.failure_threshold
        if self._run_length < threshold:
            return
        self.passing = ok
        self.failed = not ok


class ProbeSet:
    """The probes of one run of a container; liveness and readiness wait for startup.

    `ask` starts a probe somewhere else and returns its answer to come.
    """

    def __init__(
        self, container: Object, *, started_at: float, ask: Callable[[ProbeRun], Answer]
    ) -> None:
        self._ask = ask
        self._asked: dict[ProbeRun, Answer] = {}
        self.tracks = {
            role: ProbeRun(role, Schedule.of(container[role]), started_at=started_at)
            for role in ProbeKind
            if container.get(role)
        }

    @property
    def started(self) -> bool:
        startup = self.tracks.get(ProbeKind.STARTUP)
        return startup is None or startup.passing

    @property
    def ready(self) -> bool:
        readiness = self.tracks.get(ProbeKind.READINESS)
        return self.started and (readiness is None or readiness.passing)

    def asking(self) -> list[ProbeRun]:
        """Return the probes that are asked at present: startup alone until it passes."""
        startup = self.tracks.get(ProbeKind.STARTUP)
        if startup is not None and not startup.passing:
            return [startup]
        return [track for role, track in self.tracks.items() if role is not ProbeKind.STARTUP]

    def step(self, now: float) -> float:
        """Take in answers, ask what is due; return when the next probe is due at the latest.

        An answer that is awaited sets no time: whoever gives it calls again.
        """
        for track, answer in list(self._asked.items()):
            if answer.done():
                del self._asked[track]
                ok, message = answer.result()
                track.record(ok=ok, now=now, message=message)
        for track in self.asking():
            if track.is_due(now) and track not in self._asked:
                self._asked[track] = self._ask(track)
        return min(
            (track.next_at for track in self.asking() if track not in self._asked),
            default=float("inf"),
        )

    def failure(self) -> ProbeRun | None:
        """Return the probe that demands a restart, or None."""
        return next(
            (t for t in self.asking() if t.role is not ProbeKind.READINESS and t.failed),
            None,
        )


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Where a container answers: its loopback address, its ports and its environment."""

    host: str
    container: Object
    environment: Mapping[str, str]
    # Ports its process was told to use instead of those in the spec.
    moved_ports: Mapping[int, int]
    # Ports that another process answers, and its address.
    answered_at: Mapping[int, str] = field(default_factory=dict)

    def address(self, asked: Mapping[str, Any]) -> tuple[str, int]:
        """Return where a port of the spec, possibly a name, is listened on."""
        port = asked["port"]
        number = port
        if isinstance(port, str) and not port.isdigit():
            named = [p for p in self.container.get("ports") or [] if p.get("name") == port]
            if not named:
                raise ValueError(f"the container has no port named {port}")
            number = named[0]["containerPort"]
        host = asked.get("host") or self.answered_at.get(int(number), self.host)
        return host, self.moved_ports.get(int(number), int(number))


def ask(probe: Mapping[str, Any], target: ProbeTarget, timeout_seconds: float) -> tuple[bool, str]:
    """Run one probe; return (success, what was seen). Never raises."""
    try:
        if "exec" in probe:
            return _exec(probe["exec"]["command"], target.environment, timeout_seconds)
        if "httpGet" in probe:
            return _http(probe["httpGet"], target, timeout_seconds)
        if "tcpSocket" in probe:
            socket.create_connection(target.address(probe["tcpSocket"]), timeout_seconds).close()
            return True, ""
    except (OSError, ValueError, http.client.HTTPException) as error:
        return False, f"{type(error).__name__}: {error}"
    return False, f"the twin knows no probe of the kind {', '.join(probe)}"


def _exec(
    command: list[str], environment: Mapping[str, str], timeout_seconds: float
) -> tuple[bool, str]:
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        return False, f"no answer within {timeout_seconds:g} s"
    finally:
        # A shell's children hold the pipe open; the whole session goes with the probe.
        kill_group(process.pid)
        process.wait()
        if process.stdout:
            process.stdout.close()
    said = output.decode(errors="replace").strip()[-500:]
    return process.returncode == 0, said or f"exit code {process.returncode}"


def _http(spec: Mapping[str, Any], target: ProbeTarget, timeout_seconds: float) -> tuple[bool, str]:
    host, port = target.address(spec)
    connection: http.client.HTTPConnection
    if spec.get("scheme") == "HTTPS":
        # The kubelet does not verify certificates of what it probes either.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection = http.client.HTTPSConnection(
            host, port, timeout=timeout_seconds, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_seconds)
    try:
        headers = {h["name"]: h["value"] for h in spec.get("httpHeaders") or []}
        connection.request("GET", spec.get("path") or "/", headers=headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    return 200 <= status < 400, f"HTTP status {status}"
