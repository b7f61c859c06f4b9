"""EKS: clusters, node groups, add-ons, entries and identities of pods."""

from __future__ import annotations

from local.refusals.calls import call, enter

enter("eks/accessEntry:AccessEntry", call("eks", "CreateAccessEntry"))
enter("eks/accessPolicyAssociation:AccessPolicyAssociation", call("eks", "AssociateAccessPolicy"))
enter(
    "eks/addon:Addon",
    call("eks", "CreateAddon", names={"resolveConflictsOnCreate": "resolveConflicts"}),
    resolveConflictsOnUpdate="of UpdateAddon, the same two words",
)
enter(
    "eks/cluster:Cluster",
    call(
        "eks",
        "CreateCluster",
        "encryptionConfig",
        "enabledClusterLogTypes",
        "vpcConfig",
        build=lambda i: {
            "resourcesVpcConfig": dict(i["vpcConfig"]),
            "encryptionConfig": [i["encryptionConfig"]] if i.get("encryptionConfig") else None,
            "logging": {
                "clusterLogging": [
                    {"types": list(i.get("enabledClusterLogTypes") or ()), "enabled": True}
                ]
            },
        },
    ),
)
enter(
    "eks/nodeGroup:NodeGroup",
    call(
        "eks",
        "CreateNodegroup",
        names={"nodeGroupName": "nodegroupName", "nodeRoleArn": "nodeRole", "subnetIds": "subnets"},
    ),
)
enter(
    "eks/podIdentityAssociation:PodIdentityAssociation", call("eks", "CreatePodIdentityAssociation")
)
