"""A program with an object that the API server refuses."""

import pulumi
import pulumi_kubernetes as k8s

cluster = k8s.Provider("cluster", kubeconfig=pulumi.Config().require("kubeconfig"))
k8s.core.v1.Service(
    "wrong",
    metadata={"name": "wrong", "namespace": "default"},
    spec={"ports": [{"port": 99999}]},
    opts=pulumi.ResourceOptions(provider=cluster),
)
