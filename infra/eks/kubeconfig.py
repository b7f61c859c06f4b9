"""Connects the program to the cluster's API server: a kubeconfig without a secret in it."""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as k8s


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


def provider(
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
