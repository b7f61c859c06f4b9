"""Builds the EKS cluster, its add-ons, the nodes for everything that is not Kafka, and the way in.

The API server answers inside the VPC; from outside only whom the spec names. Secrets are encrypted
with a key of their own. Access is by access entries only: there is no aws-auth ConfigMap to break,
and the kubeconfig has no secret in it. Nodes join only once the network plugin is there; the other
add-ons need a node to run on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cluster.limits import NODE_MONITORING
from core.cluster.network import service_cidr
from core.ground import naming
from infra import buckets, iam
from infra.eks import launch
from infra.eks.launch import Launch, launch_template
from infra.network import Site
from infra.tags import cluster_tags
from infra.versions import ADDONS, version

VOLUME_DRIVER, NETWORK_PLUGIN = "aws-ebs-csi-driver", "vpc-cni"
BEFORE_NODES = (NETWORK_PLUGIN, "kube-proxy", "eks-pod-identity-agent")
# The agent writes what is wrong with a machine on its Node (core.incidents.sweep).
AFTER_NODES = ("coredns", VOLUME_DRIVER, "snapshot-controller", NODE_MONITORING)


@dataclass(frozen=True, slots=True)
class PodRole:
    """The AWS rights of an add-on's pods, by Pod Identity: nodes have none of them."""

    short_name: str
    service_account: str
    managed_policy: str


POD_ROLES = {
    NETWORK_PLUGIN: PodRole("vpc-cni", "aws-node", "AmazonEKS_CNI_Policy"),
    # V2 touches volumes alone that carry the driver's own tag.
    VOLUME_DRIVER: PodRole("ebs-csi", "ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"),
}


def addon_names(*, node_monitoring: bool) -> tuple[str, ...]:
    """Return the add-ons of a cluster, by name."""
    return tuple(addon for addon in ADDONS if node_monitoring or addon != NODE_MONITORING)


def configuration(addon: str, region: str, volume_tags: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what an add-on is told beyond its defaults."""
    if addon == NETWORK_PLUGIN:
        # Without it NetworkPolicies are objects that nothing enforces.
        return {"enableNetworkPolicy": "true"}
    if addon != VOLUME_DRIVER:
        return None
    return {
        "controller": {
            # Whatever class a volume comes from, it is found and billed as this cluster's.
            "extraVolumeTags": dict(sorted(volume_tags.items())),
            # Given, since no pod reaches the metadata service.
            "region": region,
        },
        "node": {
            # Says whether a volume or its instance is the limit: seconds of exceeded IOPS, bytes.
            "enableMetrics": True,
            # The metadata service alone knows how many attachments a node has left.
            "hostNetwork": True,
        },
    }


def install(
    name: str,
    addon: str,
    spec: ClusterSpec,
    cluster: aws.eks.Cluster,
    after: Sequence[pulumi.Resource],
    parent: pulumi.Resource,
) -> aws.eks.Addon:
    """Create an add-on, and before it the role of its pods: they get credentials as they start."""
    told = configuration(addon, spec.region, cluster_tags(spec).everywhere)
    return aws.eks.Addon(
        f"{name}-addon-{addon}",
        cluster_name=cluster.name,
        addon_name=addon,
        addon_version=version(addon, spec.kubernetes.addon_versions),
        configuration_values=None if told is None else json.dumps(told, sort_keys=True),
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        opts=pulumi.ResourceOptions(
            parent=parent, depends_on=[*after, *_pod_role(name, addon, spec, cluster, parent)]
        ),
    )


def _pod_role(
    name: str, addon: str, spec: ClusterSpec, cluster: aws.eks.Cluster, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    needed = POD_ROLES.get(addon)
    if needed is None:
        return []
    role, association = iam.pod_role(
        f"{name}-{needed.short_name}",
        role_name=f"{spec.prefix}-{needed.short_name}",
        eks_cluster=cluster.name,
        service_account=needed.service_account,
        parent=parent,
    )
    policy = aws.iam.RolePolicyAttachment(
        f"{name}-{needed.short_name}-policy",
        role=role.name,
        policy_arn=iam.managed_policy(needed.managed_policy, parent),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    may_encrypt = (
        buckets.grant(f"{name}-{needed.short_name}-grant", spec.encryption_key, role.arn, parent)
        if addon == VOLUME_DRIVER
        else []
    )
    return [association, policy, *may_encrypt]


def kubeconfig(name: str, region: str, endpoint: str, ca: str, profile: str | None = None) -> str:
    """Return a kubeconfig that asks `aws eks get-token` for a token each time.

    Nothing in it changes between runs, so the provider, and all it manages, is never replaced.
    `profile` is whom the AWS provider works as, where the stack names one.
    """
    environment = {"env": [{"name": "AWS_PROFILE", "value": profile}]} if profile else {}
    arguments = ["eks", "get-token", "--cluster-name", name, "--region", region]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": endpoint, "certificate-authority-data": ca},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": [*arguments, "--output", "json"],
                            "interactiveMode": "Never",
                            **environment,
                        }
                    },
                }
            ],
        },
        sort_keys=True,
    )


def kubernetes_provider(
    name: str,
    *,
    eks_cluster: str,
    region: str,
    endpoint: pulumi.Input[str],
    ca: pulumi.Input[str],
    profile: str | None,
) -> k8s.Provider:
    """Return the provider for everything inside the cluster."""
    config = pulumi.Output.all(endpoint=endpoint, ca=ca).apply(
        lambda known: kubeconfig(eks_cluster, region, known["endpoint"], known["ca"], profile)
    )
    return k8s.Provider(name, kubeconfig=config, cluster_identifier=eks_cluster)


TYPE = "stillwater:infra:Cluster"
KEY_DELETION_WINDOW_DAYS = 30
# What a node itself may do. Addresses and volumes are for the pods that manage them.
NODE_POLICIES = {
    "worker": "AmazonEKSWorkerNodePolicy",
    "registry": "AmazonEC2ContainerRegistryPullOnly",
}


class EksCluster(pulumi.ComponentResource):
    """A control plane that a Kafka node pool can join."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    ca: pulumi.Output[str]
    security_group_id: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        network: Site,
        account: iam.Account,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._spec, self._network, self._account = name, spec, network, account
        self._child = pulumi.ResourceOptions(parent=self)
        cluster = self._control_plane(self._secrets_key())
        before = self._addons(cluster, BEFORE_NODES, [])
        nodes = self._system_nodes(cluster, before)
        self._addons(cluster, AFTER_NODES, list(nodes.values()))
        self.name = cluster.name
        self.arn = cluster.arn
        self.endpoint = cluster.endpoint
        self.ca = cluster.certificate_authority.apply(lambda ca: str(ca.data))
        self.security_group_id = cluster.vpc_config.apply(
            lambda vpc: str(vpc.cluster_security_group_id)
        )
        self.register_outputs(
            {
                "name": self.name,
                "endpoint": self.endpoint,
                "ca": self.ca,
                "security_group_id": self.security_group_id,
            }
        )

    def _secrets_key(self) -> aws.kms.Key:
        key = aws.kms.Key(
            f"{self._name}-secrets",
            description=f"Kubernetes secrets of {self._spec.prefix}",
            enable_key_rotation=True,
            deletion_window_in_days=KEY_DELETION_WINDOW_DAYS,
            opts=self._child,
        )
        aws.kms.Alias(
            f"{self._name}-secrets-alias",
            name=f"alias/{self._spec.prefix}-kubernetes-secrets",
            target_key_id=key.key_id,
            opts=self._child,
        )
        return key

    def _control_plane(self, key: aws.kms.Key) -> aws.eks.Cluster:
        role, attachments = iam.service_role(
            f"{self._name}-role",
            role_name=f"{self._spec.prefix}-eks",
            service="eks.amazonaws.com",
            source=f"cluster/{self._spec.prefix}",
            managed_policies={"cluster": "AmazonEKSClusterPolicy"},
            parent=self,
        )
        # EKS makes this log group itself, for ever, unless it exists.
        logs = aws.cloudwatch.LogGroup(
            f"{self._name}-logs",
            name=f"/aws/eks/{self._spec.prefix}/cluster",
            retention_in_days=self._spec.kubernetes.control_plane_log_retention_days,
            opts=self._child,
        )
        callers = list(self._spec.kubernetes.public_access_cidrs)
        return aws.eks.Cluster(
            f"{self._name}-control-plane",
            name=self._spec.prefix,
            version=self._spec.kubernetes.version,
            role_arn=role.arn,
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(
                support_type=self._spec.kubernetes.upgrade_policy.upper()
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=list(self._network.control_plane_subnet_ids.values()),
                endpoint_private_access=True,
                endpoint_public_access=bool(callers),
                public_access_cidrs=callers or None,
            ),
            kubernetes_network_config=aws.eks.ClusterKubernetesNetworkConfigArgs(
                service_ipv4_cidr=service_cidr(self._spec.network.blocks)
            ),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=key.arn),
                resources=["secrets"],
            ),
            enabled_cluster_log_types=list(self._spec.kubernetes.control_plane_logs),
            deletion_protection=not self._spec.ephemeral,
            # The add-ons below are the only copies.
            bootstrap_self_managed_addons=False,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*attachments, logs],
                # EKS takes no other set of zones later (network-reqs.html): in a zone that is
                # added nodes stand, and the control plane has no interface. An older cluster is
                # moved to the control plane's subnets by hand (docs/how-to/eviction-gate.md).
                ignore_changes=["vpcConfig.subnetIds"],
            ),
        )

    def _addons(
        self, cluster: aws.eks.Cluster, names: Sequence[str], after: Sequence[pulumi.Resource]
    ) -> list[aws.eks.Addon]:
        wanted = addon_names(node_monitoring=self._spec.kubernetes.node_monitoring)
        chosen = [addon for addon in names if addon in wanted]
        return [install(self._name, addon, self._spec, cluster, after, self) for addon in chosen]

    def _system_nodes(
        self, cluster: aws.eks.Cluster, addons: list[aws.eks.Addon]
    ) -> dict[str, aws.eks.NodeGroup]:
        """Create a managed node group per zone: one over all would be replaced with every zone."""
        system = f"{self._spec.prefix}-system"
        role, attachments = iam.service_role(
            f"{self._name}-system-role",
            role_name=system,
            service="ec2.amazonaws.com",
            managed_policies=NODE_POLICIES,
            parent=self,
        )
        template = launch_template(
            f"{self._name}-system-template",
            Launch(
                template_name=system,
                tags=cluster_tags(self._spec).name_tags(system),
                encryption_key=self._spec.encryption_key,
            ),
            self,
        )
        # Kafka's own groups launch by the same role, in a later layer.
        may_launch = buckets.grant(
            f"{self._name}-scaling-grant",
            self._spec.encryption_key,
            buckets.scaling_role_arn(self._account),
            self,
        )
        opts = pulumi.ResourceOptions(
            parent=self,
            depends_on=[*attachments, *addons, *may_launch],
            # Cluster Autoscaler owns it once it runs.
            ignore_changes=["scalingConfig.desiredSize"],
        )
        return {
            zone: self._node_group(zone, subnet_id, (cluster, role, template), opts)
            for zone, subnet_id in self._network.private_subnet_ids.items()
        }

    def _node_group(
        self,
        zone: str,
        subnet_id: pulumi.Input[str],
        made_of: tuple[aws.eks.Cluster, aws.iam.Role, aws.ec2.LaunchTemplate],
        opts: pulumi.ResourceOptions,
    ) -> aws.eks.NodeGroup:
        cluster, role, template = made_of
        instance_type = self._spec.kubernetes.system_instance_type
        wanted = self._spec.kubernetes.system_nodes_per_zone
        return aws.eks.NodeGroup(
            f"{self._name}-{zone}-system",
            cluster_name=cluster.name,
            node_group_name=f"{self._spec.prefix}-system-{naming.zone_suffix(zone)}",
            node_role_arn=role.arn,
            subnet_ids=[subnet_id],
            ami_type=launch.managed_ami_type(instance_type),
            instance_types=[instance_type],
            # The node termination handler lives here: it must not be reclaimed with its nodes.
            capacity_type="ON_DEMAND",
            labels={naming.NODE_POOL_LABEL: naming.SYSTEM_POOL},
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                desired_size=wanted, min_size=wanted, max_size=2 * wanted
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            opts=opts,
        )
