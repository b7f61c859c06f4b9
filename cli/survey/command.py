"""Runs a survey and shows it: a finding per line for people, one object for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from cli.preflight.asked import sentence
from cli.survey import account, kubernetes
from core.errors import StillwaterError
from core.survey.facts import Surveyed, Unread
from core.survey.finding import Finding, Weight, exit_code
from core.survey.judge import findings
from infra.eks.access import connect, files
from infra.eks.api import Api

STYLES = {
    Weight.BROKER: "red",
    Weight.PRODUCER: "red",
    Weight.EXPOSED: "yellow",
    Weight.UNKNOWN: "yellow",
}
CLIENT = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Survey:
    """What one survey found."""

    context: str
    kafkas: tuple[str, ...]
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        return exit_code(self.findings)


def examine(
    *,
    context: str | None,
    kubeconfig: Path | None,
    namespace: str | None,
    region: str | None,
    profile: str | None,
) -> Survey:
    """Read a cluster and judge it; raise StillwaterError where there is nothing to judge."""
    name, api = connect(files(kubeconfig), context)
    try:
        session: Any = boto3.Session(profile_name=profile, region_name=region)
    except BotoCoreError as error:
        raise StillwaterError(f"The AWS profile cannot be used: {sentence(error)}.") from None

    def client(of_nodes: str | None) -> Any:
        where = region or of_nodes or session.region_name
        return session.client("autoscaling", region_name=where, config=CLIENT)

    seen = read(api, client, namespace)
    if seen.kafkas == ():
        where = f"namespace {namespace} of {name}" if namespace else name
        raise StillwaterError(
            f"There is no Kafka resource of Strimzi's in {where}; name another with --context or "
            f"--namespace."
        )
    titles = () if isinstance(seen.kafkas, Unread) else tuple(k.title for k in seen.kafkas)
    return Survey(name, titles, findings(seen))


def read(api: Api, client: Callable[[str | None], Any], namespace: str | None) -> Surveyed:
    """Read every part, each of which may fail by itself."""
    pods = known(lambda: kubernetes.pods(api, namespace))
    placed = on(pods, lambda found: kubernetes.nodes(api, found))
    nodes = placed if isinstance(placed, Unread) else placed[0]
    region = None if isinstance(placed, Unread) else placed[1]
    instances = on(nodes, lambda found: [n.instance_id for n in found.values() if n.instance_id])
    group_of = on(instances, lambda found: account.group_of(client(region), found) if found else {})
    workloads = known(lambda: kubernetes.workloads(api))
    return Surveyed(
        kafkas=known(lambda: kubernetes.kafkas(api, namespace)),
        pods=pods,
        nodes=nodes,
        group_of=group_of,
        groups=on(
            group_of,
            lambda found: account.groups(client(region), found.values()) if found else {},
        ),
        budgets=known(lambda: kubernetes.budgets(api, namespace)),
        handlers=on(workloads, kubernetes.handlers),
        cleaners=on(workloads, kubernetes.cleaners),
        eviction_webhooks=known(lambda: kubernetes.eviction_webhooks(api)),
        node_pools=known(lambda: kubernetes.node_pools(api)),
        volumes=on(pods, lambda found: kubernetes.volumes(api, found)),
        balanced=known(lambda: kubernetes.balanced(api, namespace)),
        gated_namespaces=known(lambda: kubernetes.gated_namespaces(api)),
        balancer_controllers=on(workloads, kubernetes.balancer_controllers),
    )


def known(ask: Callable[[], T]) -> T | Unread:
    """Return an answer, or why there is none."""
    try:
        return ask()
    except (BotoCoreError, ClientError, StillwaterError, OSError) as error:
        return Unread(sentence(error))
    except Exception as error:  # noqa: BLE001 - one answer nobody foresaw costs no other part
        return Unread(f"the answer is not as documented ({type(error).__name__}: {error})")


F = TypeVar("F")


def on(found: F | Unread, ask: Callable[[F], T]) -> T | Unread:
    """Ask on the strength of an earlier answer; without it nothing is known here either."""
    return found if isinstance(found, Unread) else known(lambda: ask(found))


def as_json(done: Survey) -> str:
    """Return a survey as one JSON object."""
    return json.dumps({"exit_code": done.exit_code, **asdict(done)}, indent=2, ensure_ascii=False)


def show(done: Survey, console: Console) -> None:
    """Print each finding with its evidence and remedy, worst first, then a verdict."""
    for each in done.findings:
        line = f"{each.weight}: {each.subject}: {each.evidence}; {each.remedy}."
        console.print(Text(line, STYLES[each.weight]), soft_wrap=True)
    console.print(Text(verdict(done)), soft_wrap=True)


def verdict(done: Survey) -> str:
    """Return the last line: of which cluster, and how much of what."""
    where = f"{done.context} ({', '.join(done.kafkas) or 'its Kafkas could not be read'})"
    counts = {weight: sum(e.weight is weight for e in done.findings) for weight in Weight}
    said = [f"{count} x {weight}" for weight, count in counts.items() if count]
    return f"{where}: {', '.join(said) or 'nothing was found'}."
