"""The shared twin's Kubernetes, and who is who in it: its cluster is the one foundation made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.credentials import ReadOnlyCredentials

from handlers.adapters.eks import EksApi, eks_token
from local import environment
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError
from local.place import Place
from local.processes import Processes
from local.twin import Twin
from tests.integration.waiting import until

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@dataclass(frozen=True)
class Plane:
    """What runs, and who is who in it."""

    twin: Twin
    admin: ReadOnlyCredentials
    cluster: str

    @property
    def place(self) -> Place:
        return self.twin.place

    @property
    def processes(self) -> Processes:
        return self.twin.processes

    @property
    def api(self) -> Api:
        return self.twin.api

    def aws(self, service: str) -> Any:
        return self.twin.aws(service)

    def api_as(self, credentials: ReadOnlyCredentials, cluster: str | None = None) -> Api:
        """Return the API as an AWS identity meets it."""
        session = boto3.Session(*credentials[:3])
        bearer = eks_token(cluster or self.cluster, environment.REGION, session)
        server = self.place.url("apiserver", "https")
        return Api(server, bearer, control_plane.ca_file(self.place))

    def handlers_api(self, kind: type[EksApi] = EksApi) -> EksApi:
        """Return the handlers' own client, which signs as the administrator."""
        return kind(
            endpoint=self.place.url("apiserver", "https"),
            ca_pem=control_plane.ca_file(self.place).read_text(),
            eks_cluster=self.cluster,
            region=environment.REGION,
            session=boto3.Session(self.admin.access_key, self.admin.secret_key),
        )

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
def plane(twin: Twin, foundation: Mapping[str, Any]) -> Plane:
    stored = environment.with_credentials(twin.place)
    admin = ReadOnlyCredentials(stored["AWS_ACCESS_KEY_ID"], stored["AWS_SECRET_ACCESS_KEY"], None)
    found = Plane(twin, admin, str(foundation["eks_cluster_name"]))
    until(lambda: found.user(admin) != 401, "its administrator is known")
    return found
