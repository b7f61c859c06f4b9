"""EKS in the twin: the cluster is the twin's control plane, a node group is real instances.

moto invents an endpoint and a certificate, and a node group's Auto Scaling group exists in name
only. Here the cluster answers with the control plane the twin runs, and a node group launches
instances through its own group, tagged as EKS tags them; the kubelet finds them by that tag.
"""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.types import Base64EncodedString
from moto.ec2.models import ec2_backends
from moto.eks import models

from local.aws.autoscaling import Engine

ENDPOINT_VARIABLE = "STILLWATER_EKS_ENDPOINT_URL"
CA_FILE_VARIABLE = "STILLWATER_EKS_CA_FILE"
NODE_IMAGE = "ami-00000000000eks000"
KUBERNETES_VERSION = "1.35"


def endpoint(_cluster: Any) -> str:
    """Return the control plane's URL; empty where the twin runs none."""
    return os.environ.get(ENDPOINT_VARIABLE, "")


def certificate_authority(_cluster: Any) -> dict[str, str]:
    """Return the control plane's CA, read when asked: it may be written later than we start."""
    path = Path(os.environ.get(CA_FILE_VARIABLE, os.devnull))
    return {"data": base64.b64encode(path.read_bytes()).decode()}


def node_config(cluster_name: str, group_name: str, labels: dict[str, str], taints: Any) -> str:
    """Return the user data EKS gives a managed node: what its kubelet registers with."""
    all_labels = {"eks.amazonaws.com/nodegroup": group_name, **labels}
    flags = ["--node-labels=" + ",".join(f"{key}={value}" for key, value in all_labels.items())]
    effects = {
        "NO_SCHEDULE": "NoSchedule",
        "NO_EXECUTE": "NoExecute",
        "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    }
    if taints:
        flags.append(
            "--register-with-taints="
            + ",".join(f"{t['key']}={t.get('value', '')}:{effects[t['effect']]}" for t in taints)
        )
    # JSON is YAML, which is what nodeadm reads.
    return json.dumps(
        {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"cluster": {"name": cluster_name}, "kubelet": {"flags": flags}},
        }
    )


def group_tags(cluster_name: str, group_name: str) -> dict[str, str]:
    return {
        "eks:cluster-name": cluster_name,
        "eks:nodegroup-name": group_name,
        f"kubernetes.io/cluster/{cluster_name}": "owned",
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"k8s.io/cluster-autoscaler/{cluster_name}": "owned",
    }


class NodeGroups:
    """The Auto Scaling groups behind managed node groups; callers hold locks.COMPUTE."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def launch(self, backend: Any, node_group: Any) -> None:
        """Make a node group's launch template and Auto Scaling group, with instances."""
        name = f"eks-{node_group.nodegroup_name}-{node_group.uuid}"
        template = self._template(backend, node_group, name)
        scaling = node_group.scaling_config
        scaling_backend = autoscaling_backends[backend.account_id][backend.region_name]
        tags = group_tags(node_group.cluster_name, node_group.nodegroup_name)
        group = scaling_backend.create_auto_scaling_group(
            name=name,
            availability_zones=[],
            desired_capacity=scaling["desiredSize"],
            max_size=scaling["maxSize"],
            min_size=scaling["minSize"],
            launch_config_name="",
            launch_template={"LaunchTemplateId": template.id, "Version": "1"},
            vpc_zone_identifier=",".join(node_group.subnets),
            default_cooldown=None,
            health_check_period=15,
            health_check_type="EC2",
            load_balancers=[],
            target_group_arns=[],
            placement_group=None,
            termination_policies=[],
            tags=[
                {"Key": key, "Value": value, "PropagateAtLaunch": True}
                for key, value in tags.items()
            ],
            capacity_rebalance=True,
        )
        node_group.resources["autoScalingGroups"] = [{"name": name}]
        self._engine.reconcile(group, time.time())

    def _template(self, backend: Any, node_group: Any, name: str) -> Any:
        ec2 = ec2_backends[backend.account_id][backend.region_name]
        given = dict(node_group.launch_template or {})
        data: dict[str, Any] = {}
        if given.get("id") or given.get("name"):
            source = (
                ec2.get_launch_template(given["id"])
                if given.get("id")
                else ec2.get_launch_template_by_name(given["name"])
            )
            data = dict(source.get_version(given.get("version", "$Default")).data)
        user_data = node_config(
            node_group.cluster_name,
            node_group.nodegroup_name,
            node_group.labels,
            node_group.taints,
        )
        data.setdefault("ImageId", NODE_IMAGE)
        data.setdefault("InstanceType", node_group.instance_types[0])
        if not data.get("UserData"):  # moto keeps an empty one for a template that has none
            data["UserData"] = Base64EncodedString.from_raw_string(user_data)
        return ec2.create_launch_template(name, "", data, {})

    def scale(self, backend: Any, node_group: Any) -> None:
        """Give the group the sizes its node group has now."""
        group = self._group(backend, node_group)
        if group is not None:
            scaling = node_group.scaling_config
            group.min_size, group.max_size = scaling["minSize"], scaling["maxSize"]
            group.set_desired_capacity(scaling["desiredSize"])

    def delete(self, backend: Any, node_group: Any) -> None:
        group = self._group(backend, node_group)
        if group is not None:
            self._engine.delete(group, time.time())
            ec2 = ec2_backends[backend.account_id][backend.region_name]
            ec2.delete_launch_template(group.name, None)

    def _group(self, backend: Any, node_group: Any) -> Any:
        groups = autoscaling_backends[backend.account_id][backend.region_name].autoscaling_groups
        return groups.get(node_group.resources["autoScalingGroups"][0]["name"])


def install(engine: Engine) -> None:
    """Put the twin's control plane and instances behind moto's EKS."""
    node_groups = NodeGroups(engine)
    backend_class = models.EKSBackend
    moto_create = backend_class.create_nodegroup
    moto_delete = backend_class.delete_nodegroup
    moto_update = backend_class.update_nodegroup_config

    def create_nodegroup(backend: Any, *args: Any, **kwargs: Any) -> Any:
        node_group = moto_create(backend, *args, **kwargs)
        node_groups.launch(backend, node_group)
        return node_group

    def delete_nodegroup(backend: Any, *args: Any, **kwargs: Any) -> Any:
        node_group = moto_delete(backend, *args, **kwargs)
        node_groups.delete(backend, node_group)
        return node_group

    def update_nodegroup_config(backend: Any, *args: Any, **kwargs: Any) -> Any:
        answer = moto_update(backend, *args, **kwargs)
        if kwargs.get("scaling_config"):
            cluster = backend.clusters[kwargs["cluster_name"]]
            node_groups.scale(backend, cluster.nodegroups[kwargs["nodegroup_name"]])
        return answer

    backend_class.create_nodegroup = create_nodegroup
    backend_class.delete_nodegroup = delete_nodegroup
    backend_class.update_nodegroup_config = update_nodegroup_config
    # moto sets both to its own inventions.
    models.Cluster.endpoint = property(endpoint, lambda *_: None)
    models.Cluster.certificate_authority = property(certificate_authority, lambda *_: None)
    models.DEFAULT_KUBERNETES_VERSION = KUBERNETES_VERSION
