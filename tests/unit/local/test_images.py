"""Which program stands behind an image."""

from pathlib import Path

import pytest

from local.kubernetes import images
from local.kubernetes.images import ContainerRequest, launch, repository
from local.place import Place

NTH = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.1"
LBC = "public.ecr.aws/eks/aws-load-balancer-controller:v3.5.0"


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


def test_a_container_sees_the_twins_api_server_and_none_of_the_kubelets_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the administrator's")
    pod = {"metadata": {"name": "demo-0"}, "spec": {}}
    found = images.base_environment(Place(11, tmp_path), pod)
    assert found["KUBERNETES_SERVICE_HOST"] == "127.11.250.4"
    assert found["HOSTNAME"] == "demo-0"
    assert not [name for name in found if name.startswith("AWS_")]


UNKNOWN = "registry.example/kafka-exporter:v2"
ASLEEP = [(NTH, "ServiceAccount token"), (LBC, "ServiceAccount token"), (UNKNOWN, UNKNOWN)]


@pytest.mark.parametrize(("image", "why"), ASLEEP, ids=["nth", "lbc", "unknown"])
def test_what_cannot_run_only_sleeps_and_says_why(tmp_path: Path, image: str, why: str) -> None:
    request = ContainerRequest(
        place=Place(11, tmp_path),
        cluster="demo",
        pod={"metadata": {"name": "p", "namespace": "kafka", "uid": "u"}, "spec": {}},
        container={"name": "main", "image": image},
        environment={},
        mounts={},
        pod_ip="10.11.5.6",
    )
    found = launch(request)
    assert (found.argv, found.probed) == (["sleep", "infinity"], False)
    assert why in found.note
