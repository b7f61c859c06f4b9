"""Verifies EKS tokens: the real aws-iam-authenticator as the API server's token webhook.

The API server asks the authenticator who holds a token; the authenticator asks STS (led to the
twin's accounts by local.kubernetes.sts) and maps the answer to a Kubernetes user: the
cluster's creator from its own configuration, everybody else from kube-system/aws-auth, which
stands for EKS access entries and is watched.

A token names its cluster, so the authenticator starts when the twin's EKS has one. Until then the
API server knows its static tokens and ServiceAccounts only, as it does while a cluster is created.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from core.ground.errors import StillwaterError
from local import environment
from local.kubernetes.client import Api, administrator, write_kubeconfig
from local.kubernetes.sts import MotoAccessKeys, serving
from local.place import Place
from local.processes import REPOSITORY, Child, Processes, forget, listens, record, stop_event

START_LIMIT_SECONDS = 30.0
POLL_SECONDS = 0.5
BINARY = "aws-iam-authenticator"
USER = "stillwater-authenticator"
CREATOR = "kubernetes-admin"  # the name EKS gives its cluster's creator
FIELD_MANAGER = "stillwater-twin"
RBAC = Path(__file__).with_name("authenticator_rbac.yaml")
RBAC_API = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"


def write_webhook_config(place: Place, ca: Path) -> Path:
    """Write the kubeconfig by which the API server asks the authenticator about tokens.

    The API server reads it when it starts, so it is written before either runs.
    """
    cluster = {
        "certificate-authority": str(ca),
        "server": f"{place.url('authenticator', 'https')}/authenticate",
    }
    return write_kubeconfig(place.path("pki", "token-webhook.yaml"), "apiserver", cluster)


def start(processes: Processes, place: Place, tools: Mapping[str, Path]) -> Child:
    """Start the program below on a running control plane and AWS; return when it listens."""
    child = processes.start(
        "authenticator",
        [sys.executable, "-m", "local.kubernetes.authenticator", str(tools[BINARY])],
        environment=environment.with_credentials(place),
        directory=REPOSITORY,
    )
    processes.wait_until(
        child,
        lambda: listens(place.host("sts-proxy"), place.port("sts-proxy")),
        within_seconds=START_LIMIT_SECONDS,
        what="its proxy to STS listens",
    )
    return child


def configuration(cluster_name: str, creator_arn: str) -> dict[str, Any]:
    """Return aws-iam-authenticator's configuration file.

    The creator, an IAM user or role, becomes system:masters, as EKS's
    bootstrapClusterCreatorAdminPermissions has it.
    """
    kind = creator_arn.rpartition(":")[2].partition("/")[0]
    if kind not in ("user", "role"):
        raise StillwaterError(
            f"The cluster's creator {creator_arn!r} is neither an IAM user nor a role. "
            f"Give the ARN of one, such as arn:aws:iam::123456789012:user/admin."
        )
    mapping = {f"{kind}ARN": creator_arn, "username": CREATOR, "groups": ["system:masters"]}
    return {"clusterID": cluster_name, "server": {f"map{kind.title()}s": [mapping]}}


def _allow_watching(api: Api) -> None:
    """Let the authenticator read the one ConfigMap it is for, and nothing else."""
    for item in yaml.safe_load_all(RBAC.read_text()):
        path = f"{RBAC_API}/{item['kind'].lower()}s/{item['metadata']['name']}"
        api.apply(path, item, field_manager=FIELD_MANAGER)


class Authenticator:
    """The running binary of one cluster."""

    def __init__(self, place: Place, binary: Path, cluster_name: str, creator_arn: str) -> None:
        self.cluster_name = cluster_name
        self._pids = place.path("pids")
        self._popen = subprocess.Popen(
            _command(place, binary, configuration(cluster_name, creator_arn)),
            env={
                **environment.base(place),
                # Go's default transport takes both; the cluster is reached directly, as any
                # loopback address is, and trusted by its kubeconfig's own authority.
                "HTTPS_PROXY": place.url("sts-proxy"),
                "SSL_CERT_FILE": str(place.path("pki", "sts-ca.crt")),
            },
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        record(self._pids, self._popen.pid)

    def check_alive(self) -> None:
        code = self._popen.poll()
        if code is not None:
            raise StillwaterError(
                f"{BINARY} ended with exit code {code}; its last lines are above. Without it no "
                f"AWS identity can log in to the cluster {self.cluster_name}."
            )

    def stop(self) -> None:
        """End it at once: it holds nothing, and would take SIGTERM only when sent twice."""
        self._popen.kill()
        self._popen.wait()
        forget(self._pids, self._popen.pid)


def _command(place: Place, binary: Path, config: Mapping[str, Any]) -> list[str]:
    state = place.path("authenticator")
    state.mkdir(exist_ok=True)
    # Found under these names, the pair is used as it is; the API server trusts its authority.
    shutil.copy(place.path("pki", "authenticator.crt"), state / "cert.pem")
    shutil.copy(place.path("pki", "authenticator.key"), state / "key.pem")
    config_file = state / "config.yaml"
    config_file.write_text(yaml.safe_dump(dict(config)))
    return [
        str(binary),
        "server",
        f"--config={config_file}",
        "--backend-mode=MountedFile,EKSConfigMap",
        f"--kubeconfig={place.path('pki', f'{USER}.yaml')}",
        "--kubeconfig-pregenerated=true",
        f"--state-dir={state}",
        f"--address={place.host('authenticator')}",
        f"--port={place.port('authenticator')}",
    ]


def _creator_arn(place: Place) -> str:
    """Return the twin's AWS administrator, who creates its cluster."""
    access_key = os.environ["AWS_ACCESS_KEY_ID"]
    principal = MotoAccessKeys(place.url("moto"))(access_key)
    if principal is None:
        raise StillwaterError(
            f"The twin's AWS does not know its administrator's access key {access_key}. "
            f"No user could log in to the cluster."
        )
    return principal.arn


def _cluster_names(eks: Any) -> Iterator[str]:
    with contextlib.suppress(BotoCoreError, ClientError):
        yield from eks.list_clusters()["clusters"]


def main() -> None:
    """Run the authenticator of the cluster that the twin's EKS has, for as long as it has it."""
    place, binary = Place.load(), Path(sys.argv[1])
    ended = stop_event()
    creator_arn = _creator_arn(place)
    _allow_watching(administrator(place))
    eks = boto3.client("eks")
    running: Authenticator | None = None
    with serving(place, environment.REGION):
        try:
            while not ended.wait(POLL_SECONDS):
                # There is one control plane, so the first cluster is the one it stands for, for as
                # long as that exists.
                names = list(_cluster_names(eks))
                if running is not None:
                    running.check_alive()
                    if running.cluster_name in names:
                        continue
                name = next(iter(names), None)
                if name is not None:
                    if running is not None:
                        running.stop()
                    running = Authenticator(place, binary, name, creator_arn)
        finally:
            if running is not None:
                running.stop()


if __name__ == "__main__":
    try:
        main()
    except StillwaterError as error:
        sys.exit(str(error))
