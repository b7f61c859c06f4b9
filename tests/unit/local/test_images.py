"""Which program stands behind an image."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.settings.codec import SETTINGS
from core.settings.prometheus import AUTHORITY_DIRECTORY
from local.kubernetes import environment, images
from local.kubernetes.environment import SERVICE_ACCOUNT_DIRECTORY
from local.kubernetes.images import ContainerLaunch, ContainerRequest, launch, repository
from local.place import Place, dial

NTH = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.1"


def request(
    tmp_path: Path, image: str, mounts: dict[str, Path] | None = None, **container: Any
) -> ContainerRequest:
    return ContainerRequest(
        place=Place(11, tmp_path),
        cluster="demo",
        pod={"metadata": {"name": "p", "namespace": "kafka", "uid": "u"}, "spec": {}},
        container={"name": "main", "image": image, **container},
        environment={"PROBES_SERVER_PORT": "8080", "NAME": "value"},
        mounts=mounts or {},
        pod_ip="10.11.5.6",
    )


@pytest.fixture
def nth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContainerLaunch:
    """Return how NTH runs on a machine with name spaces and an administrator's key."""
    (tmp_path / "aws-credentials.json").write_text(
        json.dumps({"access_key_id": "AKIA", "secret_access_key": "s"})
    )
    monkeypatch.setattr(images, "pod_credentials", lambda *_: {"AWS_ACCESS_KEY_ID": "ASIA"})
    monkeypatch.setattr(images, "_free_port", lambda: 40123)
    monkeypatch.setattr(environment, "namespace_support", lambda: ("unshare", "-rm"))
    mounts = {SERVICE_ACCOUNT_DIRECTORY: tmp_path / "sa"}
    return launch(request(tmp_path, NTH, mounts, args=["--log-level=$(NAME)"]))


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("stillwater/process", "stillwater/process"),
        (NTH, "public.ecr.aws/aws-ec2/aws-node-termination-handler"),
        ("localhost:5000/strimzi/kafka:1.2.0-kafka-4.2.0", "localhost:5000/strimzi/kafka"),
        ("quay.io/strimzi/kafka@sha256:0123", "quay.io/strimzi/kafka"),
        ("quay.io/strimzi/kafka:v1@sha256:0123", "quay.io/strimzi/kafka"),
    ],
)
def test_tag_and_digest_are_no_part_of_an_images_name(image: str, name: str) -> None:
    assert repository(image) == name


def test_a_process_runs_its_command_and_finds_its_mounts(tmp_path: Path) -> None:
    found = launch(
        request(
            tmp_path,
            "stillwater/process:1",
            {"/data": tmp_path / "vol-1"},
            command=["run", "$(NAME)"],
            args=["$(UNKNOWN)"],
        )
    )
    assert found.argv == ["run", "value", "$(UNKNOWN)"]
    assert json.loads(found.environment["STILLWATER_MOUNTS"]) == {"/data": str(tmp_path / "vol-1")}
    assert found.probed


def test_nth_runs_in_its_own_mounts_with_the_twins_aws_and_its_pods_role(
    nth: ContainerLaunch, tmp_path: Path
) -> None:
    assert nth.argv[:2] == ["unshare", "-rm"]
    assert nth.argv[-3:] == [
        str(tmp_path / "sa"),
        str(tmp_path / "bin" / "node-termination-handler"),
        "--log-level=value",
    ]
    assert nth.environment["AWS_ENDPOINT"] == "http://127.11.250.2:4566"
    assert nth.environment["AWS_ACCESS_KEY_ID"] == "ASIA"
    assert nth.environment["AWS_EC2_METADATA_DISABLED"] == "true"
    assert nth.moved_ports == {8080: 40123}
    assert nth.environment["PROBES_SERVER_PORT"] == "40123"


def test_the_same_image_runs_the_probe_where_the_pod_names_it(tmp_path: Path) -> None:
    told = request(
        tmp_path,
        "registry.example/stillwater-gate:1.4",
        mounts={AUTHORITY_DIRECTORY: tmp_path / "authority"},
        command=["python", "-m", "stillwater.inside", "probe"],
    )
    found = launch(replace(told, environment={SETTINGS: json.dumps({"port": 8080})}))
    assert found.argv[1:3] == ["-m", "local.kubernetes.client_probe"]
    heard = json.loads(found.environment[SETTINGS])
    assert heard["authority_directory"] == str(tmp_path / "authority")
    assert (heard["host"], heard["port"]) == ("127.11.5.6", 8080)


def test_the_eviction_gate_runs_from_this_repository_on_a_port_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "pod_credentials", lambda *_: {"AWS_ACCESS_KEY_ID": "ASIA"})
    monkeypatch.setattr(images, "_free_port", lambda: 40123)
    told = request(tmp_path, "registry.example/stillwater-gate:1.4")
    told.environment["STILLWATER_SETTINGS"] = '{"port": 8443}'  # type: ignore[index]
    found = launch(told)
    assert found.argv[1:] == ["-m", "stillwater.inside", "gate"]
    assert found.environment["STILLWATER_SETTINGS"] == '{"port": 40123}'
    assert found.environment["AWS_ACCESS_KEY_ID"] == "ASIA"
    assert found.moved_ports == {8443: 40123}


def test_an_unknown_image_sleeps_answers_no_probe_and_says_so(tmp_path: Path) -> None:
    found = launch(request(tmp_path, "registry.example/kafka-exporter:v2"))
    assert found.argv == ["sleep", "infinity"]
    assert not found.probed
    assert "registry.example/kafka-exporter:v2" in found.note


def test_a_container_sees_the_twins_api_server_and_none_of_the_kubelets_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the administrator's")
    pod = {"metadata": {"name": "demo-0"}, "spec": {}}
    found = images.base_environment(Place(11, tmp_path), pod)
    assert found["KUBERNETES_SERVICE_HOST"] == "127.11.250.4"
    assert found["HOSTNAME"] == "demo-0"
    assert not [name for name in found if name.startswith("AWS_")]


LBC = "public.ecr.aws/eks/aws-load-balancer-controller:v3.5.0"


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContainerLaunch:
    """Return how the load balancer controller runs."""
    monkeypatch.setattr(images, "_free_port", lambda: 40124)
    monkeypatch.setattr(images, "pod_credentials", lambda *_: {"AWS_ACCESS_KEY_ID": "ASIA"})
    monkeypatch.setattr(environment, "namespace_support", lambda: ("unshare", "-rm"))
    mounts = {
        SERVICE_ACCOUNT_DIRECTORY: tmp_path / "sa",
        images.LBC_CERTIFICATES: tmp_path / "certificates",
    }
    return launch(request(tmp_path, LBC, mounts, args=["--cluster-name=demo"]))


def test_the_load_balancer_controller_listens_at_its_pod_where_it_can_be_told(
    controller: ContainerLaunch, tmp_path: Path
) -> None:
    assert "--health-probe-bind-addr=127.11.5.6:61779" in controller.argv
    assert "--metrics-bind-addr=127.11.5.6:8080" in controller.argv
    assert f"--webhook-cert-dir={tmp_path / 'certificates'}" in controller.argv
    assert controller.argv.index("--cluster-name=demo") < len(controller.argv) - 4
    assert controller.environment["AWS_ACCESS_KEY_ID"] == "ASIA"


def test_its_webhooks_are_found_where_they_were_moved_to(
    controller: ContainerLaunch, tmp_path: Path
) -> None:
    (moved,) = controller.moved_ports.values()
    assert f"--webhook-bind-port={moved}" in controller.argv
    place = Place(11, tmp_path)
    assert dial(place, "10.11.5.6", 9443) == ("127.0.0.1", moved)
    assert dial(place, "10.11.5.6", 8080) == ("127.11.5.6", 8080)
    assert dial(place, "192.168.1.1", 8080) is None


@pytest.mark.parametrize("image", [NTH, LBC], ids=["nth", "lbc"])
def test_without_a_token_it_only_sleeps_and_says_why(tmp_path: Path, image: str) -> None:
    found = launch(request(tmp_path, image))
    assert (found.argv, found.probed) == (["sleep", "infinity"], False)
    assert "ServiceAccount token" in found.note
