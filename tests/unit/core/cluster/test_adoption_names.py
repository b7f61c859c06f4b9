"""core.cluster.adoption: names that nobody's cluster can have, with the place they stand at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from core.cluster import adoption
from core.ground.errors import InvalidInput
from infra import spec

QUEUE = "https://sqs.eu-north-1.amazonaws.com/111122223333/Drains"
THEIRS: dict[str, Any] = {
    "level": "act",
    "eks_cluster": "shop",
    "region": "eu-north-1",
    "kafkas": [{"namespace": "streams", "name": "orders", "bootstrap": "orders:9093"}],
    "scaling_groups": ["kafka-a"],
    "pool_label": "pool",
    "queue_url": QUEUE,
    "subnets": ["subnet-01234567"],
    "security_groups": ["sg-01234567"],
}


def kafka(**changed: Any) -> dict[str, Any]:
    return {"kafkas": [{**THEIRS["kafkas"][0], **changed}]}


def read(path: Path, changed: dict[str, Any]) -> adoption.Adoption:
    path.write_text(yaml.safe_dump({"adopt": {**THEIRS, **changed}}, sort_keys=False))
    found = spec.load_yaml(path)
    return adoption.parse(found.content, found.locate)


@pytest.mark.parametrize(
    ("changed", "line", "words"),
    [
        (kafka(bootstrap="orders:99999"), 8, "names orders:99999, and ports are 1 to 65535"),
        (kafka(bootstrap="a:9093,b:0"), 8, "names b:0, and ports are 1 to"),
        (kafka(namespace="a.b"), 6, "kafkas.0.namespace is 'a.b'"),
        (kafka(namespace="a" * 64), 6, "kafkas.0.namespace is"),
        (kafka(name="a..b"), 7, "kafkas.0.name is 'a..b'"),
        (kafka(bootstrap="a/b:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap="ü.example:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap=f"{'a' * 254}:9093"), 8, "kafkas.0.bootstrap is"),
        (kafka(bootstrap="A.B.SVC:9093"), 8, "which is known inside the cluster alone"),
        (kafka(called="sthree-x"), 9, "AWS keeps 'sthree-' at the beginning of a bucket's name"),
        ({"pool_label": "a..b/pool"}, 11, "pool_label is"),
        ({"pool_label": "-a/pool"}, 11, "pool_label is"),
        ({"scaling_groups": ["a\nb"]}, 10, "scaling_groups.0 is"),
        ({"scaling_groups": ["a:b"]}, 10, "scaling_groups.0 is 'a:b'"),
        (kafka(bootstrap="orders-kafka-bootstrap.streams:9093"), 8, "inside the cluster alone"),
        ({"scaling_groups": ["kafka-\u200ba"]}, 9, "U+200B, which nobody sees"),
        ({"scaling_groups": ["kafka-a "]}, 10, "without a space at either end"),
        ({"node_pools": ["n" * 64]}, 18, "which is the value of a label"),
        (kafka(bootstrap="127.0.0.1:9094"), 8, "the machine that asks, or nobody's address"),
        (kafka(bootstrap="a.example:1,localhost:9094"), 8, "names localhost:9094"),
        (kafka(bootstrap="[::1]:9094"), 8, "names [::1]:9094"),
        (kafka(bootstrap="169.254.1.1:9094"), 8, "names 169.254.1.1:9094"),
        (kafka(bootstrap="10.0.1:9094"), 8, "names 10.0.1:9094"),
        (kafka(name="orders.eu"), 7, "Strimzi's Services are called by it"),
        (kafka(name="o" * 48), 7, "at most 47"),
        ({"managed_node_groups": ["n" * 64]}, 18, "managed_node_groups.0 is"),
        ({"queue_url": f"{QUEUE}.fifo"}, 12, "queue_url is"),
        ({"queue_url": "https://sqs.evil.example/111122223333/Q"}, 12, "queue_url is"),
        ({"queue_url": QUEUE.replace("north", "west")}, 12, "adopt.queue_url is in eu-west-1"),
        ({"subnets": ["subnet-01234567"] * 2}, 14, "adopt.subnets names subnet-01234567 twice"),
        ({"region": "us-gov-west-1", "queue_url": None}, 4, "AWS GovCloud (US)"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_its_place(
    changed: dict[str, Any], line: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path / "a.yaml", changed)
    (problem,) = (each for each in caught.value.problems if words in each)
    assert int(problem.split(":")[1]) == line, problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"scaling_groups": ["Kafka nodes/eu (a)"]},
        {"managed_node_groups": ["n" * 63]},
        {"pool_label": f"{'a' * 253}/{'b' * 63}"},
        kafka(bootstrap="10.0.0.7:9093,b_1.example:9093", called="internal-x"),
        kafka(bootstrap="a:1,b:65535", namespace="a" * 63, called="orders"),
    ],
    ids=str,
)
def test_what_people_have_is_taken(changed: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path / "a.yaml", changed).region == "eu-north-1"
