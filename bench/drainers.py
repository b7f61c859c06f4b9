"""Shows what clients see when a broker's node is drained while another is out of sync.

    python -m bench.drainers [--only WAY]

The lagging broker of bench.rotation (Ready, unfenced and behind), with the node termination
handler, a person's `kubectl drain` and real Karpenter in turn: each alone, and each before the
eviction gate, which runs as its pods do on EKS. The same load for each way in one run. Writes
out/bench/drainers.json.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console

from bench import record, rotation
from bench.fleet import measured, ways
from bench.fleet.ground import FleetTwin, provision
from bench.fleet.karpenters import karpenters
from bench.fleet.ways import LAGGING, LEAVING, WATCHED_SECONDS, Told
from bench.waiting import is_seen_within
from core.ground.errors import StillwaterError
from handlers.eviction.certificate import WEBHOOKS
from local.tools import tool_path
from local.tools.build import build
from local.tools.catalogue import FOR_LONG_TESTS, KUBECTL

LOGS = Path("out/bench/drainers-logs")
IMAGE = "stillwater-gate:bench"
DRAIN_SECONDS = 300.0


def handler_alone(ground: FleetTwin) -> Told:
    """The node termination handler, and neither the toolkit nor its gate."""
    with lift_gate(ground):
        return ways.evict_beside_a_lagging_broker(ground)


def kubectl_alone(ground: FleetTwin) -> Told:
    """A person's drain, and neither the toolkit nor its gate."""
    with lift_gate(ground), ground.alone():
        with Drain(ground) as drain:
            with ground.slow_follower(LAGGING):
                since = time.monotonic()
                drain.start()
                done = drain.over(WATCHED_SECONDS)
                # Back as soon as can be: its group has no other node in the zone.
                drain.kubectl("uncordon", drain.node)
                time.sleep(max(0.0, since + WATCHED_SECONDS - time.monotonic()))
                # Each broker is told itself that the throttle is off.
                ground.wait(lambda: ground.ready(LEAVING), f"broker {LEAVING} is back")
            drain.finish()
        ground.settle()
    return Told(
        [f"broker {LEAVING} {'was drained' if done else 'was not drained'}", *drain.sentences()]
    )


def kubectl_gate(ground: FleetTwin) -> Told:
    """The same drain before the gate, with the toolkit at work."""
    with Drain(ground) as drain:
        with ground.slow_follower(LAGGING):
            drain.start()
            done = drain.over(WATCHED_SECONDS)
        drain.finish()
        instance_id = drain.instance_id
        ground.wait(lambda: not ground.cluster.ledger.open_incidents(), "its incident is over")
        # The room that was made for it goes with the node that the person has emptied.
        ground.cluster.twin.aws("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
        )
        ground.settle()
    waited = "was drained" if done else "waited"
    return Told([f"broker {LEAVING} {waited}", *drain.sentences()])


def karpenter_alone(ground: FleetTwin) -> Told:
    """Karpenter ends its NodeClaim, and neither the toolkit nor its gate is asked."""
    with karpenters(ground) as machine, lift_gate(ground), ground.alone():
        with ground.slow_follower(LAGGING):
            since = time.monotonic()
            machine.delete()
            done = machine.over(WATCHED_SECONDS)
            machine.finish(DRAIN_SECONDS)
            machine.end(replaced=True)
            time.sleep(max(0.0, since + WATCHED_SECONDS - time.monotonic()))
            # Each broker is told itself that the throttle is off.
            ground.wait(lambda: ground.ready(LEAVING), f"broker {LEAVING} is back")
        told = machine.sentences()
    ground.settle()
    return Told([f"broker {LEAVING} {'was drained' if done else 'was not drained'}", *told])


def karpenter_gate(ground: FleetTwin) -> Told:
    """The same end of a NodeClaim before the gate, with the toolkit at work."""
    with karpenters(ground) as machine:
        with ground.slow_follower(LAGGING):
            machine.delete()
            done = machine.over(WATCHED_SECONDS)
        machine.finish(DRAIN_SECONDS)
        told = machine.sentences()
        ground.wait(lambda: not ground.cluster.ledger.open_incidents(), "its incident is over")
    # The gate has had its room made already.
    machine.end(replaced=False)
    ground.settle()
    waited = "was drained" if done else "waited"
    return Told([f"broker {LEAVING} {waited}", *told])


WAYS: Mapping[str, Callable[[FleetTwin], Told]] = {
    "handler_alone": handler_alone,
    "handler_ours": ways.ours_beside_a_lagging_broker,
    "kubectl_alone": kubectl_alone,
    "kubectl_gate": kubectl_gate,
    "karpenter_alone": karpenter_alone,
    "karpenter_gate": karpenter_gate,
}


@contextlib.contextmanager
def lift_gate(ground: FleetTwin) -> Iterator[None]:
    """Have the API server ask nobody for the block."""
    api = ground.cluster.twin.api
    found = [w for w in api.get(WEBHOOKS)["items"] if "stillwater" in w["metadata"]["name"]]
    for each in found:
        api.delete(f"{WEBHOOKS}/{each['metadata']['name']}")
    try:
        yield
    finally:
        for each in found:
            named = {k: v for k, v in each["metadata"].items() if k in {"name", "labels"}}
            api.post(WEBHOOKS, {"metadata": named, "webhooks": each["webhooks"]})


class Drain:
    """`kubectl drain` of the node on which the leaving broker runs."""

    def __init__(self, ground: FleetTwin) -> None:
        pod = ground.cluster.pods()[LEAVING]
        self.node = str(pod["spec"]["nodeName"])
        node = ground.cluster.twin.api.get(f"/api/v1/nodes/{self.node}")
        self.instance_id = str(node["spec"]["providerID"]).rpartition("/")[2]
        self._config = ground.place.path("kubeconfig")
        self._log = LOGS / f"kubectl-{time.time():.0f}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        LOGS.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        words = ("drain", self.node, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(*words, "--timeout=600s"), stdout=log, stderr=log
            )

    def over(self, seconds: float) -> bool:
        """Watch it for some seconds; say whether it has drained the node."""
        process = self._process
        return is_seen_within(seconds, lambda: process is not None and process.poll() is not None)

    def finish(self) -> None:
        if not self.over(DRAIN_SECONDS) or self._process is None or self._process.returncode:
            raise StillwaterError(f"kubectl drain did not end well:\n{self._log.read_text()}")

    def sentences(self) -> list[str]:
        """Return what it told the person, each sentence once."""
        lines = self._log.read_text().splitlines()
        return list(dict.fromkeys(line for line in lines if "evicting" in line or "error" in line))

    def kubectl(self, *words: str) -> None:
        subprocess.run(self._command(*words), check=True, capture_output=True)

    def _command(self, *words: str) -> list[str]:
        return [str(tool_path("kubectl")), f"--kubeconfig={self._config}", *words]


def main(arguments: Sequence[str]) -> None:
    """Measure, write down; end with 1 when the gate misses its target."""
    parser = argparse.ArgumentParser(prog="bench.drainers", description=__doc__)
    parser.add_argument("--only", choices=WAYS, action="append")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    for tool in (KUBECTL, *FOR_LONG_TESTS):
        build(tool)
    gate = {"eviction_gate": {"image": IMAGE}}
    with provision(console, LOGS, changes=gate) as ground:
        rows = rotation.measure(ground, given.only or list(WAYS), console, WAYS)
    parameters = {
        **measured.parameters(),
        "lagging": f"broker {LAGGING} is Ready and out of sync, broker {LEAVING} goes",
    }
    summary = {f"{row['way']}_{key}": row[key] for row in rows for key in rotation.SUMMARY}
    record.write("drainers", parameters, rows, summary)
    missed = [row for row in rows if "alone" not in row["way"] and row["below_min_isr_s"]]
    if missed:
        sys.exit(f"Below min.insync beside the gate: {[row['way'] for row in missed]}")


if __name__ == "__main__":
    main(sys.argv[1:])
