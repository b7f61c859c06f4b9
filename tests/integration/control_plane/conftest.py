"""The twin's AWS and Kubernetes control plane, real, without nodes: one for all tests here."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.credentials import ReadOnlyCredentials

from local import environment
from local.kubernetes import authenticator, control_plane
from local.kubernetes.client import Api, ApiError
from local.kubernetes.eks_token import token
from local.place import Place, claimed
from local.processes import Processes
from local.tools import build, tool_path

REPOSITORY = Path(__file__).resolve().parents[3]
READY_SECONDS = 30.0
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@dataclass(frozen=True)
class Plane:
    """What runs, and who is who in it."""

    place: Place
    processes: Processes
    api: Api
    admin: ReadOnlyCredentials
    cluster: str = "plane"

    def aws(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.place.url("moto"),
            region_name=environment.REGION,
            aws_access_key_id=self.admin.access_key,
            aws_secret_access_key=self.admin.secret_key,
        )

    def api_as(self, credentials: ReadOnlyCredentials, cluster: str | None = None) -> Api:
        """Return the API as an AWS identity meets it."""
        bearer = token(cluster or self.cluster, credentials, environment.REGION)
        server = self.place.url("apiserver", "https")
        return Api(server, bearer, control_plane.ca_file(self.place))

    def user(
        self, credentials: ReadOnlyCredentials, cluster: str | None = None
    ) -> dict[str, Any] | int:
        """Return the Kubernetes user an AWS identity is taken for, or the status of the refusal."""
        api = self.api_as(credentials, cluster)
        try:
            answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)
        except ApiError as error:
            return error.status
        return dict(answer["status"]["userInfo"])


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    build.build_all()
    return {name: tool_path(name) for name in build.BINARIES}


@pytest.fixture(scope="session")
def plane(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with claimed() as claim:
        place = Place(claim.number, tmp_path_factory.mktemp("plane"))
        place.save()
        place.path("bin").mkdir()
        for name, path in programs.items():
            place.path("bin", name).symlink_to(path)
        processes = Processes(place.path("pids"), place.path("logs"))
        try:
            yield _started(place, processes, programs)
        finally:
            processes.close()


def _started(place: Place, processes: Processes, programs: dict[str, Path]) -> Plane:
    aws = processes.start(
        "aws",
        [sys.executable, "-m", "local.aws.server"],
        environment={
            **environment.base(place),
            "STILLWATER_EKS_ENDPOINT_URL": place.url("apiserver", "https"),
            "STILLWATER_EKS_CA_FILE": str(control_plane.ca_file(place)),
        },
        directory=REPOSITORY,
    )
    running = control_plane.start(processes, place, programs)
    processes.wait_until(
        aws,
        lambda: environment.credentials_file(place).exists() and _answers(place, "moto"),
        within_seconds=READY_SECONDS,
        what="its port answers",
    )
    authenticator.start(processes, place, programs)
    stored = environment.with_credentials(place)
    admin = ReadOnlyCredentials(stored["AWS_ACCESS_KEY_ID"], stored["AWS_SECRET_ACCESS_KEY"], None)
    plane = Plane(place, processes, running.api, admin)
    plane.aws("eks").create_cluster(
        name=plane.cluster,
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": []},
    )
    deadline = time.monotonic() + READY_SECONDS
    while plane.user(admin) == 401 and time.monotonic() < deadline:
        time.sleep(0.2)
    return plane


def _answers(place: Place, service: str) -> bool:
    where = (place.host(service), place.port(service))
    with contextlib.suppress(OSError), socket.create_connection(where, timeout=1):
        return True
    return False
