"""Runs a survey and shows it: a finding per line for people, one object for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from cli.page_files import written
from cli.preflight.refusals import sentence
from cli.survey import (
    account,
    balancers,
    controllers,
    draft,
    kafka,
    machines,
    page,
    rights,
    tools,
    webhooks,
)
from cli.survey import pods as kafka_pods
from cli.survey import queues as handler_queues
from core.errors import StillwaterError
from core.survey.facts import Surveyed, Unread, of
from core.survey.finding import Finding, Weight, exit_code, listed
from core.survey.judge import findings
from core.survey.node_facts import Node
from core.survey.tool_facts import TerminationHandler, TerminationQueue
from infra.eks.access import connect, files
from infra.eks.api import Api

STYLES = {
    Weight.BROKER: "red",
    Weight.PRODUCER: "red",
    Weight.EXPOSED: "yellow",
    Weight.UNKNOWN: "yellow",
    Weight.ADVICE: "",
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
    # The description for `adopt plan`, or why there is none.
    description: str = ""
    undescribed: str = ""

    @property
    def refusals(self) -> list[str]:
        """Why `adopt plan` would not take the description."""
        return draft.refusals(self.description) if self.description else []

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

    def client(service: str, of_nodes: str | None) -> Any:
        where = region or of_nodes or session.region_name
        return session.client(service, region_name=where, config=CLIENT)

    seen = read(api, client, namespace)
    if seen.kafkas == ():
        raise StillwaterError(
            _nothing(seen, f"namespace {namespace} of {name}" if namespace else name)
        )
    titles = () if isinstance(seen.kafkas, Unread) else tuple(k.title for k in seen.kafkas)
    description = known(lambda: draft.draft(seen, name))
    if isinstance(description, Unread):
        why = f"There is no description: {description.why}."
        return Survey(name, titles, findings(seen), undescribed=why)
    return Survey(name, titles, findings(seen), description=description)


def _nothing(seen: Surveyed, where: str) -> str:
    others = [f"{each.title} ({each.image})" for each in of(seen.other_kafkas)]
    instead = f"{listed(others)} is not Strimzi's, and is not judged. Name" if others else "Name"
    return (
        f"There is no Kafka resource of Strimzi's in {where}. {instead} another cluster with "
        f"--context or --namespace."
    )


def read(api: Api, client: Callable[[str, str | None], Any], namespace: str | None) -> Surveyed:
    """Read every part, each of which may fail by itself."""
    pods = known(lambda: kafka_pods.pods(api, namespace))
    placed = on(pods, lambda found: machines.nodes(api, found))
    nodes = placed if isinstance(placed, Unread) else placed[0]
    workloads = known(lambda: tools.workloads(api))
    handlers = on(workloads, tools.handlers)

    def aws(service: str) -> Any:
        return client(service, None if isinstance(placed, Unread) else placed[1])

    return Surveyed(
        kafkas=known(lambda: kafka.kafkas(api, namespace)),
        pools=known(lambda: kafka.pools(api, namespace)),
        topics=known(lambda: kafka.topics(api, namespace)),
        other_kafkas=known(lambda: kafka.others(api)),
        pods=pods,
        nodes=nodes,
        **machinery(aws, nodes),
        budgets=known(lambda: tools.budgets(api, namespace)),
        handlers=handlers,
        queues=on(handlers, lambda found: queues(aws, found)),
        cleaners=on(workloads, tools.cleaners),
        eviction_webhooks=known(lambda: webhooks.eviction_webhooks(api)),
        operators=on(workloads, tools.operators),
        autoscalers=on(workloads, tools.autoscalers),
        evictors=on(workloads, lambda found: tools.evictors([*found, *tools.by_the_clock(api)])),
        entitled=on(
            workloads,
            lambda found: rights.evictors(
                api, [*found, *tools.by_the_clock(api)], {pod.namespace for pod in of(pods)}
            ),
        ),
        node_pools=known(
            lambda: machines.node_pools(api, {} if isinstance(nodes, Unread) else nodes)
        ),
        volumes=on(pods, lambda found: kafka.volumes(api, found)),
        balanced=known(lambda: balancers.balanced(api, namespace)),
        gated_namespaces=known(lambda: balancers.gated_namespaces(api)),
        ending_namespaces=known(lambda: tools.ending_namespaces(api)),
        restricted_namespaces=known(lambda: tools.restricted_namespaces(api)),
        essentials=on(workloads, controllers.essentials),
        quotas=on(pods, lambda found: tools.quotas(api, {pod.namespace for pod in found})),
        pod_webhooks=known(lambda: webhooks.pod_webhooks(api)),
        node_provisioners=on(workloads, controllers.node_provisioners),
        volume_controllers=on(workloads, controllers.volume_controllers),
        balancer_controllers=on(workloads, balancers.balancer_controllers),
    )


def machinery(aws: Callable[[str], Any], nodes: Mapping[str, Node] | Unread) -> dict[str, Any]:
    """Read what AWS knows of the nodes: instances, their groups, EKS's own among these."""
    wanted = on(nodes, lambda found: [n.instance_id for n in found.values() if n.instance_id])
    instances = on(wanted, lambda ids: account.instances(aws("ec2"), ids) if ids else {})
    here = not isinstance(instances, Unread)
    group_of = on(
        wanted,
        lambda ids: (
            account.seen_here(account.group_of(aws("autoscaling"), ids), known=here) if ids else {}
        ),
    )
    groups = on(
        group_of,
        lambda found: account.every_group(aws("autoscaling"), found.values()) if found else {},
    )
    return {
        "instances": instances,
        "statuses": on(
            instances, lambda found: account.statuses(aws("ec2"), found) if found else {}
        ),
        "group_of": group_of,
        "groups": groups,
        "scale_ins": on(
            groups,
            lambda found: account.scale_ins(aws("autoscaling"), found) if found else {},
        ),
        "refreshes": on(
            groups,
            lambda found: account.refreshes(aws("autoscaling"), found) if found else {},
        ),
        "managed_node_groups": on(
            groups,
            lambda found: (
                account.managed_node_groups(aws("eks"), found.values())
                if any(group.managed_node_group for group in found.values())
                else {}
            ),
        ),
    }


def queues(
    aws: Callable[[str], Any], handlers: tuple[TerminationHandler, ...]
) -> dict[str, TerminationQueue]:
    urls = {each.queue_url for each in handlers if each.queue_mode and each.queue_url}
    return {url: handler_queues.queue(aws("sqs"), aws("events"), url) for url in sorted(urls)}


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
    found = [asdict(each) for each in done.findings]
    shown = {"context": done.context, "kafkas": done.kafkas, "findings": found}
    return json.dumps({"exit_code": done.exit_code, **shown}, indent=2, ensure_ascii=False)


def write_files(done: Survey, html: Path | None, adopt: Path | None) -> None:
    """Write the page and the description that were asked for; raise where one cannot be."""
    if html is not None:
        written(html, page.render(done, time.time()))
    if adopt is not None and done.undescribed:
        raise StillwaterError(done.undescribed)
    if adopt is not None:
        written(adopt, done.description)


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
