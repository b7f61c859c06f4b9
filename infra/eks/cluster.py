"""The EKS cluster, its add-ons, the nodes for everything that is not Kafka, and the way in.

The API server answers inside the VPC; from outside only whom the spec names. Secrets are encrypted
with a key of their own. Access is by access entries only: whoever runs `pulumi up` is an
administrator, nodes and functions get entries of their own, and there is no aws-auth ConfigMap to
break. The program's kubeconfig has no secret in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cluster.network import service_cidr
from core.ground import naming
from infra import encryption, iam
from infra.eks import addons, launch
from infra.eks.launch import Launch, launch_template
from infra.network.vpc import Site
from infra.tags import cluster_tags


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
        before = self._addons(cluster, addons.BEFORE_NODES, [])
        nodes = self._system_nodes(cluster, before)
        self._addons(cluster, addons.AFTER_NODES, list(nodes.values()))
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
        wanted = addons.addon_names(node_monitoring=self._spec.kubernetes.node_monitoring)
        chosen = [addon for addon in names if addon in wanted]
        return [
            addons.install(self._name, addon, self._spec, cluster, after, self) for addon in chosen
        ]

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
        may_launch = encryption.grant(
            f"{self._name}-scaling-grant",
            self._spec.encryption_key,
            encryption.scaling_role_arn(self._account),
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
