"""Runs a survey and shows it: a finding per line for people, one object for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cli.answers import answer_or_reason, then, then_any
from cli.aws import PATIENCE, Clients, open_session
from cli.survey import balancers, draft, kafka, machines, others, page, tools, webhooks
from cli.survey.account import fargate_profiles
from cli.survey.account_parts import (
    account_id,
    around,
    cluster_of,
    data_below,
    joining_below,
    machines_below,
    queues,
)
from cli.survey.tools import served_versions
from cli.terminal import counted, write_page
from core.checks.facts import ClusterFacts, every_kafka
from core.checks.finding import Finding, exit_code
from core.checks.rights import UNREAD
from core.checks.table import findings
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown, known_items, mapping_of
from infra.eks.access import connect, files
from infra.eks.api import Api

# Services that answer in one region of a partition for all of it, by how its regions begin.
GLOBAL = {"health": {"": "us-east-1", "us-gov-": "us-gov-west-1", "cn-": "cn-northwest-1"}}


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
    session: Any = open_session(profile, region)

    def client(service: str, nodes_region: str | None) -> Any:
        where = region_of(service, region or nodes_region or session.region_name)
        return session.client(service, region_name=where, config=PATIENCE)

    seen = read(api, client, namespace, name)
    if seen.kafkas == () and not known_items(seen.other_kafkas):
        raise StillwaterError(_nothing(f"namespace {namespace} of {name}" if namespace else name))
    titles = tuple(each.title for each in every_kafka(seen))
    description = answer_or_reason(draft.draft, seen, name)
    if isinstance(description, Unknown):
        why = f"The survey wrote no description: {description.why}."
        return Survey(name, titles, findings(seen), undescribed=why)
    return Survey(name, titles, findings(seen), description=description)


def region_of(service: str, region: str | None) -> str | None:
    """Return where a service is asked about a region: some answer in one of each partition."""
    places = GLOBAL.get(service)
    if places is None:
        return region
    return next(
        place
        for begins, place in sorted(places.items(), reverse=True)
        if (region or "").startswith(begins)
    )


def _nothing(where: str) -> str:
    return (
        f"Kubernetes has no Kafka resource of Strimzi's in {where}, and no other Kafka was found "
        "by its image or operator. Name another cluster with --context or --namespace."
    )


def read(
    api: Api, client: Callable[[str, str | None], Any], namespace: str | None, context: str = ""
) -> ClusterFacts:
    """Read every part, each of which may fail by itself."""
    now = time.time()
    strimzis = answer_or_reason(machines.pods, api, namespace)
    beside = answer_or_reason(others.others, api, namespace)
    pods = then(
        strimzis,
        lambda found: (*found, *(pod for each in known_items(beside) for pod in each.pods)),
    )
    spaces = then(pods, lambda found: {pod.namespace for pod in found})
    placed = then(pods, lambda found: machines.nodes(api, found))
    nodes = placed if isinstance(placed, Unknown) else placed[0]
    workloads = answer_or_reason(tools.workloads, api)
    handlers = then(workloads, tools.handlers)
    balanced = answer_or_reason(balancers.read_balanced, api, namespace)
    region = None if isinstance(placed, Unknown) else placed[1]

    @Clients
    def aws(service: str) -> Any:
        return client(service, region)

    machinery = machines_below(aws, nodes)
    classes = answer_or_reason(machines.node_classes, api)
    more = {name for each in mapping_of(classes).values() for name in each.subnets}
    account = around(aws, machinery, cluster_of(machinery, context), region, more)
    volumes = then(pods, lambda found: kafka.volumes(api, found))
    strangers = then(
        pods, lambda found: others.pods_of_others(api, {(pod.namespace, pod.name) for pod in found})
    )

    return ClusterFacts(
        kafkas=answer_or_reason(kafka.kafkas, api, namespace),
        pools=answer_or_reason(kafka.pools, api, namespace),
        pod_sets=answer_or_reason(kafka.pod_sets, api, namespace),
        rebalances=answer_or_reason(kafka.rebalances, api, namespace),
        kafka_versions=answer_or_reason(served_versions, api, kafka.GROUP),
        pod_set_versions=answer_or_reason(served_versions, api, kafka.POD_SETS),
        topics=answer_or_reason(kafka.topics, api, namespace),
        other_kafkas=then(beside, lambda found: tuple(each.kafka for each in found)),
        pods=pods,
        lost_images=then(
            pods,
            lambda found: machines.lost_images(
                aws("ecr"),
                {pod.image for pod in found},
                region,
                account_id(account["control_plane"]),
            ),
        ),
        neighbours=then(
            strangers,
            lambda found: others.neighbours(found, {p.node for p in known_items(pods) if p.node}),
        ),
        rivals=then(strangers, others.rivals),
        zookeepers=answer_or_reason(others.zookeepers, api, namespace),
        nodes=nodes,
        idle_nodes=placed if isinstance(placed, Unknown) else placed[2],
        slots=then(placed, lambda found: machines.slots(api, {*found[0], *found[2]})),
        **machinery,
        **account,
        fargate_profiles=then(
            account["control_plane"], lambda found: fargate_profiles(aws("eks"), found.name)
        ),
        **joining_below(aws, api, machinery["templates"], account["control_plane"]),
        **data_below(aws, volumes, machinery["templates"], account["control_plane"]),
        # Of every namespace: on Kafka's nodes stand pods of others too.
        budgets=answer_or_reason(tools.budgets, api, namespace),
        handlers=handlers,
        queues=then(handlers, lambda found: queues(aws, found)),
        cleaners=then(workloads, tools.cleaners),
        eviction_webhooks=answer_or_reason(webhooks.eviction_webhooks, api, now),
        admission_policies=answer_or_reason(webhooks.policies, api),
        operators=then(workloads, tools.operators),
        pending_releases=then(workloads, lambda found: tools.pending_releases(api, found)),
        autoscalers=then(workloads, tools.autoscalers),
        size_scalers=answer_or_reason(balancers.size_scalers, api, namespace),
        evictors=then(workloads, lambda found: tools.evictors([*found, *tools.cron_jobs(api)])),
        entitled=then(
            workloads,
            lambda found: webhooks.evictors(
                api, [*found, *tools.cron_jobs(api)], known_items(spaces)
            ),
        ),
        node_pools=answer_or_reason(machines.node_pools, api, mapping_of(nodes)),
        node_classes=classes,
        balanced=balanced,
        target_groups=then_any(
            then(balanced, lambda found: {b.target_group for b in found if b.target_group}),
            lambda named: balancers.target_groups(aws("elbv2"), named),
        ),
        gated_namespaces=answer_or_reason(balancers.gated_namespaces, api),
        ending_namespaces=answer_or_reason(tools.ending_namespaces, api),
        injected_namespaces=answer_or_reason(tools.injected_namespaces, api),
        enforced_levels=answer_or_reason(tools.enforced_levels, api),
        essentials=then(workloads, balancers.essentials),
        quotas=then(spaces, lambda found: tools.quotas(api, found)),
        limit_ranges=then(spaces, lambda found: tools.limit_ranges(api, found)),
        pod_webhooks=answer_or_reason(webhooks.pod_webhooks, api, now),
        node_provisioners=then(workloads, balancers.node_provisioners),
        volume_controllers=then(workloads, balancers.volume_controllers),
        balancer_controllers=then(workloads, balancers.balancer_controllers),
        ingress_controllers=then(workloads, lambda held: balancers.ingress_controllers(api, held)),
        read_at=now,
    )


def as_json(done: Survey) -> str:
    """Return a survey as one JSON object."""
    found = [asdict(each) for each in done.findings]
    shown = {
        "context": done.context,
        "kafkas": done.kafkas,
        "findings": found,
        "not_looked_at": UNREAD,
    }
    return json.dumps({"exit_code": done.exit_code, **shown}, indent=2, ensure_ascii=False)


def write_files(done: Survey, html: Path | None, adopt: Path | None) -> None:
    """Write the page and the description that were asked for; raise where one cannot be."""
    if html is not None:
        write_page(html, page.render(done, time.time()))
    if adopt is not None and done.undescribed:
        raise StillwaterError(done.undescribed)
    if adopt is not None:
        write_page(adopt, done.description)


def verdict(done: Survey) -> str:
    """Return the last line: of which cluster, and how much of what."""
    where = f"{done.context} ({', '.join(done.kafkas) or 'its Kafkas could not be read'})"
    return f"{where}: {counted(done.findings) or 'nothing was found'}."
