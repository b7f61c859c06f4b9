"""Helm releases for the provider: real helm on the twin's API server, charts from local folders.

A chart that the program names by its registry (oci://…/<chart>) is taken from the module of the
program it deploys: the twin runs the binary of that module, and no registry is asked.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.ground.errors import StillwaterError
from local.kubernetes.client import write_kubeconfig
from local.place import PLACE_VARIABLE
from local.processes import forget, record
from local.pulumi.kubernetes_login import Login
from local.tools import chart_path, tool_path
from local.values import Properties

RELEASE_TYPE = "kubernetes:helm.sh/v3:Release"
# What a chart renders to, without a release of it.
TEMPLATE = "kubernetes:helm:template"
# A chart whose pods do not become ready has failed; real clusters are given 5 minutes for pulling
# images, which the twin never does.
WAIT_SECONDS = 120
COMMAND_MARGIN_SECONDS = 60
_FLAGS = {"createNamespace": "--create-namespace", "skipCrds": "--skip-crds"}


def chart_folder(chart: str) -> Path:
    """Return the folder of a chart, given as a folder or by the registry it comes from."""
    if "://" not in chart and Path(chart).is_dir():
        return Path(chart)
    name = chart.rstrip("/").rpartition("/")[2]
    try:
        return chart_path(name)
    except (KeyError, StillwaterError) as error:
        raise StillwaterError(
            f"The twin has no chart {name} for {chart}; its charts come with the modules of "
            f"local/tools."
        ) from error


def helm_binary() -> Path:
    """Return the helm that this twin was given, else the one that was built for twins."""
    given = _place_directory() / "bin" / "helm"
    return given if given.exists() else tool_path("helm")


@dataclass(frozen=True, slots=True)
class HelmRelease:
    """Which release is meant."""

    namespace: str
    name: str

    @classmethod
    def of(cls, inputs: Properties) -> HelmRelease:
        return cls(inputs.get("namespace") or "default", inputs["name"])

    @property
    def id(self) -> str:
        return f"{self.namespace}/{self.name}"


class Releases:
    """The Helm releases of one cluster."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def install(self, inputs: Properties) -> Properties:
        """Install or upgrade a release, wait for its pods unless told not to; return its status."""
        release = HelmRelease.of(inputs)
        seconds = int(inputs.get("timeout") or WAIT_SECONDS)
        flags = [flag for name, flag in _FLAGS.items() if inputs.get(name)]
        if not inputs.get("skipAwait"):
            flags.append("--wait")
        with self._home(inputs) as home:
            answer = self._helm(
                home,
                [
                    *("upgrade", "--install", release.name, str(chart_folder(inputs["chart"]))),
                    *("--namespace", release.namespace, "--values", str(home / "values.yaml")),
                    *("--timeout", f"{seconds}s", "--history-max", "5", "--output", "json"),
                    *flags,
                ],
                limit_seconds=seconds + COMMAND_MARGIN_SECONDS,
            )
        return _status(json.loads(answer))

    def render(self, inputs: Properties) -> None:
        """Render a release without installing it, so that wrong values are found in a preview."""
        self._manifest(HelmRelease.of(inputs), inputs)

    def template(self, options: Properties) -> list[Properties]:
        """Return every object a chart renders to, its definitions among them."""
        release = HelmRelease(options.get("namespace") or "default", options["release_name"])
        flags = [] if options.get("skip_crd_rendering") else ["--include-crds"]
        documents = self._manifest(release, options, flags)
        return [each for each in yaml.load_all(documents, Loader=yaml.CSafeLoader) if each]

    def _manifest(self, release: HelmRelease, inputs: Properties, flags: Sequence[str] = ()) -> str:
        with self._home(inputs) as home:
            return self._helm(
                home,
                [
                    *("template", release.name, str(chart_folder(inputs["chart"]))),
                    *("--namespace", release.namespace, "--values", str(home / "values.yaml")),
                    # Without it a helm built from source takes the cluster for 1.20 and renders
                    # kinds that are long gone.
                    *("--kube-version", str(self._login.api.get("/version")["gitVersion"])),
                    *flags,
                ],
            )

    def status(self, release: HelmRelease) -> Properties | None:
        """Return a release's status, or None when there is no such release."""
        with self._home({}) as home:
            try:
                answer = self._helm(
                    home,
                    ["status", release.name, "--namespace", release.namespace, "--output", "json"],
                )
            except StillwaterError as error:
                if "not found" in str(error):
                    return None
                raise
        return _status(json.loads(answer))

    def uninstall(self, release: HelmRelease) -> None:
        """Remove a release and wait until its objects are gone."""
        with self._home({}) as home:
            self._helm(
                home,
                [
                    *("uninstall", release.name, "--namespace", release.namespace),
                    *("--wait", "--ignore-not-found", "--timeout", f"{WAIT_SECONDS}s"),
                ],
                limit_seconds=WAIT_SECONDS + COMMAND_MARGIN_SECONDS,
            )

    @contextmanager
    def _home(self, inputs: Properties) -> Iterator[Path]:
        """Give helm a home of its own: the user's plugins and repositories are none of ours."""
        self._login.api  # noqa: B018 - a refused login is explained here, and not by helm
        home = Path(tempfile.mkdtemp(prefix="helm-", dir=_place_directory()))
        try:
            cluster, token = self._login.cluster, self._login.token()
            authority = base64.b64encode(cluster.ca_pem.encode()).decode()
            reached = {"server": cluster.server, "certificate-authority-data": authority}
            write_kubeconfig(home / "kubeconfig", "twin", reached, token=token)
            # The engine passes its own null for what the program left out.
            (home / "values.yaml").write_text(yaml.safe_dump(inputs.get("values") or {}))
            yield home
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def _helm(
        self, home: Path, arguments: Sequence[str], *, limit_seconds: float = COMMAND_MARGIN_SECONDS
    ) -> str:
        environment = {
            **{k: v for k, v in os.environ.items() if "proxy" not in k.lower()},
            **{f"HELM_{what}_HOME": str(home / what) for what in ("CACHE", "CONFIG", "DATA")},
            "KUBECONFIG": str(home / "kubeconfig"),
        }
        command = [str(helm_binary()), *arguments]
        with _recorded_process(command, environment) as running:
            try:
                output, errors = running.communicate(timeout=limit_seconds)
            except subprocess.TimeoutExpired as error:
                raise StillwaterError(
                    f"helm {arguments[0]} did not end within {limit_seconds:.0f} s."
                ) from error
        if running.returncode != 0:
            reason = " ".join(errors.split()).removeprefix("Error: ")
            raise StillwaterError(f"helm {arguments[0]} failed: {reason or running.returncode}")
        return output


@contextmanager
def _recorded_process(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a command that ends with the block, or with the twin if this process is killed first."""
    running = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    record(_place_directory() / "pids", running.pid)
    try:
        with running:
            try:
                yield running
            finally:
                if running.poll() is None:
                    running.kill()
    finally:
        forget(_place_directory() / "pids", running.pid)


def _place_directory() -> Path:
    return Path(os.environ[PLACE_VARIABLE])


def _status(answer: Mapping[str, Any]) -> Properties:
    """Return the status as pulumi-kubernetes shows it, from helm's own description of a release."""
    chart = (answer.get("chart") or {}).get("metadata") or {}
    return {
        "name": answer["name"],
        "namespace": answer["namespace"],
        "revision": answer["version"],
        "status": answer["info"]["status"],
        "chart": chart.get("name", ""),
        "version": chart.get("version", ""),
        "appVersion": chart.get("appVersion", ""),
    }
