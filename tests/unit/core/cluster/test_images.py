"""core.cluster.images: names of images, as a registry and a node's runtime take them."""

from __future__ import annotations

import pytest

from core.cluster.images import image_name
from tests.every_case import every_case

DIGEST = f"@sha256:{'a' * 64}"


@every_case(
    "name",
    [
        "connect",
        "connect:1.4",
        f"connect{DIGEST}",
        f"team/connect:1{DIGEST}",
        "registry.example:5000/a/b_c/d--e/f.g__h:V1",
        "123456789012.dkr.ecr.eu-west-1.amazonaws.com/kafka/connect:4.2.0",
        "localhost:65535/x",
        "Registry.Example/x:1",
        f"x:{'t' * 128}",
    ],
)
def test_an_image_is_taken(name: str) -> None:
    assert image_name(name) == name


@every_case(
    "name",
    [
        *("", "Connect", "a//b", "a/", "/a", "a..b", "a._b", "a___b", "a-", "-a.example/b"),
        *("a.example-/b", "r.example:99999/b", "r.example:0/b", "r.example:/b", "https://r/b:1"),
        *(f"x:{'t' * 129}", "x:-1", "x@sha256:abc", "x:1:2", "x y", "x:1\n", "ü/x", "x:\u0661"),
    ],
)
def test_what_is_none_is_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="is no image: write"):
        image_name(name)
