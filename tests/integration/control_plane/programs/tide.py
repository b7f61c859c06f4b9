"""A program whose custom resource must reach a condition."""

import pulumi
import pulumi_kubernetes as k8s

cluster = k8s.Provider("cluster", kubeconfig=pulumi.Config().require("kubeconfig"))
definition = k8s.apiextensions.v1.CustomResourceDefinition(
    "tides",
    metadata={"name": "tides.test.stillwater.dev"},
    spec={
        "group": "test.stillwater.dev",
        "names": {"kind": "Tide", "plural": "tides", "singular": "tide"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
    opts=pulumi.ResourceOptions(provider=cluster),
)
k8s.apiextensions.CustomResource(
    "tide",
    api_version="test.stillwater.dev/v1",
    kind="Tide",
    metadata={
        "name": "tide",
        "namespace": "default",
        "annotations": {"pulumi.com/waitFor": "condition=Ready", "pulumi.com/timeoutSeconds": "2"},
    },
    opts=pulumi.ResourceOptions(provider=cluster, depends_on=[definition]),
)
