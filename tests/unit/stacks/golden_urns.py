"""Writes the golden lists: `python -m tests.unit.stacks.golden_urns`.

A list holds the URN of every resource of one cluster. What Pulumi does not find under its URN it
deletes and makes again, so a URN that goes is a broker's node, a queue or a table that goes. Behind
a URN stands what keeps the resource: `protected`, or left where it is when it leaves the program.
The example's list is whole; that of another cluster holds what differs from it, `+` and `-`.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from infra.analytics import report_job
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.variants import EVERYTHING

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).resolve().parent / "golden"
EXAMPLE = "example"
PROTECTED, RETAINED = "protected", "retained-on-delete"
COMMAND = "python -m tests.unit.stacks.golden_urns"


def example() -> dict[str, Any]:
    """Return the description that README and tutorial start from."""
    read: dict[str, Any] = yaml.safe_load(
        (ROOT / "stacks/config/clusters/example.yaml").read_text()
    )
    return read


def clusters() -> Mapping[str, dict[str, Any]]:
    """Return the clusters with a golden list: the example, and what it leaves out."""
    plain = example()
    optional = {key: value for key, value in EVERYTHING.items() if key != "pools"}
    optional["load_balancer"] = {**optional["load_balancer"], **plain["load_balancer"]}
    secured = {**plain["kafka"], "internal_listener": {"authentication": "tls"}}
    full = {**plain, **optional, "kafka": secured}
    return {
        EXAMPLE: plain,
        "example-with-every-option": full,
        "example-on-karpenter": {**plain, "node_provisioner": "karpenter"},
    }


def lines(layers: Mapping[str, Recorded]) -> list[str]:
    """Return a line per resource of all layers, sorted: its URN, and what keeps it."""
    return sorted(_line(resource) for run in layers.values() for resource in run.resources)


def _line(resource: Resource) -> str:
    kept = {PROTECTED: resource.protect, RETAINED: resource.retain_on_delete}
    return " ".join([resource.urn, *(word for word, holds in kept.items() if holds)])


def golden(name: str) -> list[str]:
    read = (FOLDER / f"{name}.txt").read_text().splitlines()
    if name == EXAMPLE:
        return read
    of = {sign: {line[2:] for line in read if line[0] == sign} for sign in "+-"}
    return sorted((set(golden(EXAMPLE)) - of["-"]) | of["+"])


def urns(of: list[str]) -> list[str]:
    return [line.split(" ")[0] for line in of]


def kept(of: list[str]) -> set[str]:
    return {line for line in of if " " in line}


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STILLWATER_CACHE"] = cache
        # As in the tests: EMR's packages are there where pip finds them.
        os.environ[report_job.SWITCH] = report_job.NEVER
        now = {name: set(lines(run_layers(raw))) for name, raw in clusters().items()}
    plain = now[EXAMPLE]
    for name, every in now.items():
        changed = [f"+ {line}" for line in sorted(every - plain)]
        changed += [f"- {line}" for line in sorted(plain - every)]
        listed = sorted(every) if name == EXAMPLE else changed
        (FOLDER / f"{name}.txt").write_text("\n".join(listed) + "\n")


if __name__ == "__main__":
    _write()
