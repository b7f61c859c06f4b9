"""What the stacks use: a namespace, a custom resource, a storage class, a release."""

import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()
settings = config.require_object("settings")
cluster = k8s.Provider("cluster", kubeconfig=config.require("kubeconfig"))
opts = pulumi.ResourceOptions(provider=cluster)

space = k8s.core.v1.Namespace("house", opts=opts)
definition = k8s.apiextensions.v1.CustomResourceDefinition(
    "boats",
    metadata={"name": "boats.test.stillwater.dev"},
    spec={
        "group": "test.stillwater.dev",
        "names": {"kind": "Boat", "plural": "boats", "singular": "boat"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
    opts=opts,
)
k8s.apiextensions.CustomResource(
    "boat",
    api_version="test.stillwater.dev/v1",
    kind="Boat",
    metadata={"name": "boat", "namespace": space.metadata.name},
    spec={"sails": settings["sails"]},
    opts=pulumi.ResourceOptions(provider=cluster, depends_on=[definition]),
)
k8s.storage.v1.StorageClass(
    "gp3",
    metadata={"name": "gp3-test"},
    provisioner="ebs.csi.aws.com",
    parameters=settings["parameters"],
    opts=opts,
)
release = k8s.helm.v3.Release(
    "nth",
    name="nth",
    namespace=space.metadata.name,
    chart="oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler",
    version="0.27.6",
    skip_await=True,  # a queue nobody has made keeps its pod from being ready
    values={"enableSqsTerminationDraining": True, "queueURL": settings["queue"]},
    opts=opts,
)
pulumi.export("namespace", space.metadata.name)
pulumi.export("status", release.status.status)
pulumi.export("chart", release.status.chart)
