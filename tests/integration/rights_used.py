"""Lists the rights that roles held and nobody used in the last run: `python -m` this module.

Over the journals that the twins of a run left in out/integration; it says something only after all
of the tests. Exit code 1: a right is held that no test needs and no reason stands for.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local.journal import FILE_NAME
from tests.unit.infra.programs import run_layers
from tests.unit.infra.rights import PREFIX

JOURNALS = Path(__file__).resolve().parents[2] / "out" / "integration"
POLICY = "iam/rolePolicy:RolePolicy"
# Roles of what does not run in the twin, by their names' ends: nothing of theirs can be used.
ABSENT = {
    "autoscaler": "the twin does not build Cluster Autoscaler",
    "report-job": "the report's job runs without EMR",
    "report-schedule": "EventBridge Scheduler is stored",
    "samples": "deployed where a Prometheus is described; tests run its code on moto's S3",
    "snapshots": "Data Lifecycle Manager is stored",
}
# Rights that are needed where no test leads.
SELDOM = {
    ("sweep", "ec2:DescribeAvailabilityZones"): "asked while a zone is in trouble",
    (
        "tick",
        "autoscaling:RecordLifecycleActionHeartbeat",
    ): "sent once a hook has waited for half of its timeout, which the fault matrix does unjudged",
}


def used_actions(journals: Iterable[Path]) -> Mapping[str, set[str]]:
    """Return the actions that each role was allowed."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in journals:
        for line in path.read_text().splitlines():
            fact: dict[str, Any] = json.loads(line)
            if fact["event"] == "iam_judged" and fact["allowed"]:
                found[fact["principal"]].add(fact["action"])
    return found


def held_rights() -> Iterator[tuple[str, set[str]]]:
    """Yield each role's end of its name, and the rights of its policy."""
    for layer in run_layers().values():
        for policy in layer.of(POLICY):
            rights = {a for each in policy.policy["Statement"] for a in each["Action"]}
            yield str(policy.inputs["role"]).removeprefix(f"{PREFIX}-"), rights


def unused_rights(actions: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield a sentence for each right that is held and was not used."""
    for role, rights in held_rights():
        mine = set().union(*(a for name, a in actions.items() if name.endswith(f"-{role}")))
        for right in sorted(rights - mine) if role not in ABSENT else ():
            if (role, right) in SELDOM:
                continue
            yield f"{role} holds {right}, which no test used."


def main() -> int:
    journals = sorted(JOURNALS.glob(f"*/{FILE_NAME}"))
    if not journals:
        sys.stderr.write(f"There are no journals in {JOURNALS}; run the integration tests.\n")
        return 2
    found = list(unused_rights(used_actions(journals)))
    sys.stdout.write("".join(f"{sentence}\n" for sentence in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
