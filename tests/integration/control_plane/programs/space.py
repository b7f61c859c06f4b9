"""A program with one namespace."""

import pulumi
import pulumi_kubernetes as k8s

cluster = k8s.Provider("cluster", kubeconfig=pulumi.Config().require("kubeconfig"))
space = k8s.core.v1.Namespace("space", opts=pulumi.ResourceOptions(provider=cluster))
pulumi.export("name", space.metadata.name)
