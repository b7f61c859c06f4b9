"""The AWS Load Balancer Controller, for one thing: broker pods into target groups, gates on pods.

It makes no load balancer of its own, so it gets neither the right to nor the webhooks for it. It
runs on the system nodes (it tolerates no taint of Kafka's): a broker's drain must not take with it
the program that registers the broker again. Helm makes the definitions in a chart's `crds/` folder
with the first install and never again, so that a newer controller would meet the fields of an older
one: they are rendered from the chart itself and applied with every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, limits
from core.ground import naming
from infra import iam, pods
from infra.tags import cluster_tags
from infra.versions import LBC_CHART, LBC_CHART_VERSION, LBC_REPOSITORY

KIND = "CustomResourceDefinition"
# Helm made those that stand already, and the API server keeps their fields for it.
PATCH_FORCE = "pulumi.com/patchForce"


@dataclass(frozen=True, kw_only=True)
class ChartWithDefinitions:
    chart: str
    version: str
    repository: str | None = None
    # As much as its templates need to render at all.
    values: Mapping[str, Any] = field(default_factory=dict)


def definitions(
    name: str, args: ChartWithDefinitions, parent: pulumi.Resource
) -> pulumi.Output[Sequence[pulumi.Input[pulumi.Resource]]]:
    """Apply a chart's definitions and return them: what its release must wait for."""
    chart = k8s.helm.v3.Chart(
        name,
        k8s.helm.v3.ChartOpts(
            chart=args.chart,
            version=args.version,
            fetch_opts=k8s.helm.v3.FetchOpts(repo=args.repository),
            values=dict(args.values),
            transformations=[_definitions_alone],
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return chart.ready


def _definitions_alone(rendered: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
    if rendered["kind"] != KIND:
        rendered.clear()
        rendered.update(apiVersion="v1", kind="List", items=[])
        return
    metadata = rendered["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), PATCH_FORCE: "true"}
    # With a definition goes every object of its kind, Kafka itself among them; Helm keeps it too.
    opts.retain_on_delete = True


TYPE = "stillwater:infra:LoadBalancerController"
RELEASE = "aws-load-balancer-controller"
NAMESPACE = "kube-system"
REPLICAS = 2
# Few bindings and all of them matter at once: a zone's return registers every broker of it.
CONCURRENT_RECONCILES = 10
# What a Service or an Ingress would make a load balancer with, and the gateways'.
UNUSED_FEATURES = (
    "EnableServiceController",
    "NLBGatewayAPI",
    "ALBGatewayAPI",
    "NLBSecurityGroup",
)


class LoadBalancerController(pulumi.ComponentResource):
    """The chart's release and the least it may do in AWS."""

    release_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        account: iam.Account,
        vpc_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        _, first = iam.controller_role(
            name,
            role_name=f"{spec.prefix}-lbc",
            eks_cluster=spec.prefix,
            service_account=RELEASE,
            statements=statements(spec, account),
            parent=self,
        )
        brought = definitions(
            f"{name}-definitions",
            ChartWithDefinitions(
                chart=LBC_CHART,
                version=LBC_CHART_VERSION,
                repository=LBC_REPOSITORY,
                values={"clusterName": spec.prefix},
            ),
            self,
        )
        release = k8s.helm.v3.Release(
            f"{name}-release",
            name=RELEASE,
            namespace=NAMESPACE,
            chart=LBC_CHART,
            repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo=LBC_REPOSITORY),
            version=LBC_CHART_VERSION,
            skip_crds=True,
            values=values(spec, vpc_id),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=brought.apply(lambda made: [*made, *first]),
            ),
        )
        self.release_name = release.name.apply(str)
        self.register_outputs({"release_name": self.release_name})


def values(spec: ClusterSpec, vpc_id: pulumi.Input[str]) -> dict[str, Any]:
    """Return the chart's values."""
    timings = spec.timings
    return {
        "clusterName": spec.prefix,
        # Given, so that no pod asks the metadata service.
        "region": spec.region,
        "vpcId": vpc_id,
        "serviceAccount": {"name": RELEASE},
        "podSecurityContext": pods.FILTERED_CALLS,
        "securityContext": pods.NO_CAPABILITIES,
        "resources": pods.resources(limits.LOAD_BALANCER_CONTROLLER, memory_limit_mib=512),
        "replicaCount": REPLICAS,
        "podDisruptionBudget": {"maxUnavailable": 1},
        # Kafka's namespace: the only one it watches.
        "watchNamespace": spec.kubernetes.namespace,
        "targetgroupbindingRequeueDuration": f"{timings.lbc_requeue_seconds}s",
        # Its own 16 min 40 s leaves a healthy broker unready for a quarter of an hour (LBC#3622).
        "targetgroupbindingMaxExponentialBackoffDelay": f"{timings.lbc_max_backoff_seconds}s",
        "targetgroupbindingMaxConcurrentReconciles": CONCURRENT_RECONCILES,
        # Kafka's brokers alone: a controller must never wait for a port it does not listen on.
        # A broker without its gate outruns the load balancer, one that cannot start is an outage,
        # so a controller that is down lets pods pass; `doctor` finds those without their gates.
        "podMutatorWebhookConfig": {"failurePolicy": "Ignore"},
        "objectSelector": {"matchLabels": {naming.BROKER_ROLE_LABEL: "true"}},
        # It fails closed on the Services of every namespace, Strimzi's own among them.
        "enableServiceMutatorWebhook": False,
        "webhookConfig": {"disableIngressValidation": True},
        # A certificate per render would differ with every update and break webhooks meanwhile.
        "keepTLSSecret": True,
        "createIngressClassResource": False,
        "ingressClassParams": {"create": False},
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        "enableBackendSecurityGroup": False,
        "controllerConfig": {"featureGates": dict.fromkeys(UNUSED_FEATURES, False)},
    }


def statements(spec: ClusterSpec, account: iam.Account) -> list[iam.Statement]:
    """Return what it calls for bindings without networking rules, and nothing else.

    Source: its code paths, 3.5.0 (research: load balancing 1.5).
    """
    names = naming.target_group_pattern(spec.prefix)
    return [
        iam.Statement(
            sid="MoveBrokersInAndOut",
            actions=[
                "elasticloadbalancing:RegisterTargets",
                "elasticloadbalancing:DeregisterTargets",
            ],
            # AWS ends a target group's ARN with an id of its own.
            resources=[account.arn("elasticloadbalancing", f"targetgroup/{names}/*")],
            conditions={
                "StringEquals": {
                    f"aws:ResourceTag/{key}": value
                    for key, value in cluster_tags(spec).identity.items()
                }
            },
        ),
        iam.look(
            "elasticloadbalancing:DescribeTargetGroups",
            "elasticloadbalancing:DescribeTargetHealth",
            "ec2:DescribeVpcs",
            "ec2:DescribeSecurityGroups",
        ),
    ]
