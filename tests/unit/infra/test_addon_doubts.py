"""infra.versions: an add-on of a minor version that is not ours is doubted."""

from __future__ import annotations

import pytest

from infra.versions import ADDONS, ADDONS_KUBERNETES, doubts, problems

MAJOR, MINOR, _ = ADDONS["coredns"].split(".", 2)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({}, 0),
        ({"coredns": f"{MAJOR}.{MINOR}.99-eksbuild.1"}, 0),
        ({"coredns": f"{MAJOR}.{int(MINOR) - 4}.7-eksbuild.1"}, 1),
        ({"snapshot-controller": "v6.3.0-eksbuild.1"}, 1),
        # Of it the gate knows what fits.
        ({"kube-proxy": "v1.34.0-eksbuild.2"}, 0),
    ],
    ids=["ours", "another patch", "an old minor", "an old major", "kube-proxy"],
)
def test_a_version_nobody_tried_is_named_with_who_knows(chosen: dict[str, str], said: int) -> None:
    assert problems(ADDONS_KUBERNETES, chosen) == []
    found = doubts(ADDONS_KUBERNETES, chosen)
    assert len(found) == said
    assert all("preflight" in sentence for sentence in found)
