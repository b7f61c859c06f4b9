"""Starts and stops everything a twin is: AWS, the control plane, nodes, volumes, operator.

Nothing of the cluster itself is made here: that is what `pulumi up` is for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from core.ground.errors import StillwaterError
from local import environment
from local.kafka import jars
from local.kubernetes import authenticator, control_plane
from local.kubernetes.client import Api
from local.place import PLACE_VARIABLE, Place, check_addresses, claim_place, taken_places
from local.processes import REPOSITORY, Child, Processes, Stopping, kill_left, listens
from local.pulumi import bin as engine_bin
from local.slack import server as slack
from local.tools import build

AWS_START_SECONDS = 60.0
KEPT = "kept"
Progress = Callable[[str], None]


@dataclass
class RunningTwin:
    """A running twin as another process of its user meets it."""

    place: Place

    def environment(self) -> dict[str, str]:
        """Return the environment in which the engine, or a person, meets this twin."""
        return engine_bin.engine_environment(self.place)

    def aws(self, service: str) -> Any:
        """Return a boto3 client of the twin's AWS, as its administrator."""
        variables = environment.with_credentials(self.place)
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=variables["AWS_ENDPOINT_URL"],
            region_name=environment.REGION,
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        )


def kept_twins() -> list[RunningTwin]:
    """Return the running twins whose starters keep them for whoever looks around.

    STILLWATER_TWIN, the directory of one, chooses.
    """
    places = [place for place in taken_places() if place.path(KEPT).exists()]
    named = os.environ.get(PLACE_VARIABLE)
    return [RunningTwin(place) for place in places if named in (None, str(place.directory))]


def meant_place() -> Place:
    """Return the place of the twin that `up` keeps, or that STILLWATER_TWIN names.

    Raises StillwaterError where there is none, or more than one.
    """
    named = os.environ.get(PLACE_VARIABLE)
    found = taken_places() if named else [reached.place for reached in kept_twins()]
    if named:
        found = [each for each in found if each.directory == Path(named).resolve()]
    if not found:
        where = f" in {named}, which {PLACE_VARIABLE} names" if named else ""
        raise StillwaterError(
            f"No twin with a cluster on it runs{where}; `python -m local up` starts one in another"
            f" terminal."
        )
    if len(found) > 1:
        homes = ", ".join(str(each.directory) for each in found)
        raise StillwaterError(
            f"Several twins run ({homes}); set {PLACE_VARIABLE} to the one you mean."
        )
    return found[0]


@dataclass
class Twin(RunningTwin):
    """A running twin and its processes, in the hands of who started it."""

    processes: Processes
    tools: Mapping[str, Path]
    api: Api

    def keep(self) -> None:
        """Let other processes of this user find the twin."""
        self.place.path(KEPT).touch()

    def start_program(self, name: str, *command: str) -> Child:
        """Start one of the twin's own Python programs, pointed at this twin."""
        return self.processes.start(
            name,
            [sys.executable, "-m", *command],
            environment=environment.with_credentials(self.place),
            directory=REPOSITORY,
        )

    def check_alive(self) -> None:
        """Raise with the last lines of the first program that has died."""
        for child in self.processes.children:
            if not child.alive:
                raise StillwaterError(
                    f"{child.name} ended with exit code {child.popen.returncode}; "
                    f"its last lines:\n{child.tail()}"
                )


def _start_aws(processes: Processes, place: Place) -> Child:
    return processes.start(
        "aws",
        [sys.executable, "-m", "local.aws.server"],
        environment={
            **environment.base(place),
            "STILLWATER_EKS_ENDPOINT_URL": place.url("apiserver", "https"),
            "STILLWATER_EKS_CA_FILE": str(control_plane.ca_file(place)),
        },
        directory=REPOSITORY,
    )


@contextlib.contextmanager
def prepared_directory(place: Place) -> Iterator[None]:
    """Keep the place's directory for the block; clear what a crashed twin left there before."""
    kill_left(place.path("pids"))
    shutil.rmtree(place.directory, ignore_errors=True)
    check_addresses(place)
    try:
        for part in ("bin", "logs", "pids", "pki", "volumes", "pods"):
            place.path(part).mkdir(parents=True)
        place.save()
        with _marked_environment(place):
            yield
    finally:
        shutil.rmtree(place.directory, ignore_errors=True)


@contextlib.contextmanager
def _marked_environment(place: Place) -> Iterator[None]:
    """Let what this process starts without us, a Spark JVM say, carry the twin's mark too."""
    before = os.environ.get(PLACE_VARIABLE)
    os.environ[PLACE_VARIABLE] = str(place.directory)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(PLACE_VARIABLE, None)
        else:
            os.environ[PLACE_VARIABLE] = before


@contextlib.contextmanager
def running(
    progress: Progress, *, keep_logs: Path | None = None, machines: bool = True
) -> Iterator[Twin]:
    """Run a twin for as long as the block lasts; whatever ends it, nothing stays behind.

    `keep_logs` receives the logs and the journal when the twin ends. Without `machines` it is AWS
    and the control plane alone: instances register no nodes, and pods do not run.
    """
    with Stopping() as stopping, claim_place() as place, prepared_directory(place):
        processes = Processes(
            place.path("pids"), place.path("logs"), held=place.held, cleared=place.directory
        )
        try:
            tools = build.tool_paths()
            place.path("kafka").mkdir()
            place.path("kafka", "jars").symlink_to(jars.directory())
            for name, path in tools.items():
                place.path("bin", name).symlink_to(path)
            twin = _start(processes, place, tools, progress)
            if machines:
                _start_machines(twin)
                progress("Nodes, volumes, operator, load balancer and Slack started")
            yield twin
        finally:
            stopping.hold()
            processes.stop_all()
            if keep_logs is not None:
                _keep(place, keep_logs)
            processes.close()


def _start(
    processes: Processes, place: Place, tools: Mapping[str, Path], progress: Progress
) -> Twin:
    started = time.monotonic()
    aws = _start_aws(processes, place)
    api = control_plane.start(processes, place, tools)
    progress(f"Kubernetes control plane ready after {time.monotonic() - started:.1f} s")
    processes.wait_until(
        aws,
        lambda: (
            environment.credentials_file(place).exists()
            and listens(place.host("moto"), place.port("moto"))
        ),
        within_seconds=AWS_START_SECONDS,
        what="its port answers",
    )
    authenticator.start(processes, place, tools)
    engine_bin.install(place)
    progress(f"AWS ready after {time.monotonic() - started:.1f} s")
    return Twin(place, processes, tools, api)


def _start_machines(twin: Twin) -> None:
    """Start what makes nodes of instances, runs pods, and stands in for what serves them."""
    for name in ("egress", "kubelet", "csi", "health", "strimzi"):
        twin.start_program(name, f"local.kubernetes.{name}")
    twin.start_program("nlb", "local.nlb")
    twin.start_program("slack", "local.slack.server")
    twin.aws("secretsmanager").create_secret(Name=slack.SECRET_NAME, SecretString=slack.TOKEN)


def _keep(place: Place, where: Path) -> None:
    """Copy the logs and the journal; what cannot be copied must not hide how the run ended."""
    shutil.rmtree(where, ignore_errors=True)
    with contextlib.suppress(OSError):
        shutil.copytree(place.path("logs"), where)
        shutil.copy(place.path("events.jsonl"), where)
