"""What the pages say to write into a ClusterSpec fits into the example they start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.cluster import ClusterSpec, parse
from core.cluster.kafka import Kafka
from infra.spec import problems_of
from infra.versions import STRIMZI_CHART_VERSION
from tests.every_case import every_case
from tests.unit.docs import markdown

EXAMPLE = markdown.REPOSITORY / "stacks" / "config" / "clusters" / "example.yaml"
KEYS = ClusterSpec.model_fields.keys()


def _pieces() -> list[Any]:
    return [
        pytest.param(piece, id=f"{markdown.name(page)}-{number}")
        for page in markdown.PAGES
        for number, block in enumerate(markdown.blocks(page))
        if block.language in ("yaml", "yml")
        # A block may hold several documents, as Kubernetes' objects do.
        for piece in yaml.safe_load_all(block.body)
        if isinstance(piece, dict) and piece.keys() <= KEYS
    ]


def merged(base: Any, piece: Any) -> Any:
    """Return the example with a piece written into it; pools are known by their names."""
    if isinstance(base, dict) and isinstance(piece, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in piece.items()}}
    if isinstance(base, list) and base and isinstance(base[0], dict) and "name" in base[0]:
        new = {each["name"]: each for each in piece}
        known = [merged(each, new.pop(each["name"], {})) for each in base]
        return [*known, *new.values()]
    return piece


@every_case("piece", _pieces())
def test_a_piece_fits_into_the_example(piece: dict[str, Any]) -> None:
    spec = parse(merged(yaml.safe_load(EXAMPLE.read_text()), piece))
    assert problems_of(spec) == []


def test_there_are_pieces_to_try() -> None:
    assert len(_pieces()) >= 5


@every_case("page", markdown.PAGES, ids=markdown.name)
def test_an_image_of_kafka_is_the_one_the_cluster_runs(page: Path) -> None:
    images = re.findall(r"quay\.io/strimzi/kafka:([\w.]+)-kafka-([\w.]+)", page.read_text())
    assert set(images) <= {(STRIMZI_CHART_VERSION, Kafka().version)}
