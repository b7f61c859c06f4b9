"""Lists what a survey reads of AWS: one definition, of which the reference and a test follow.

Every call reads, and none takes a resource to which it could be narrowed before the cluster is
known; all of them are in AWS's own policy ReadOnlyAccess but for AWS Health's.
"""

from __future__ import annotations

from collections.abc import Mapping

# Action -> what it tells.
READS: Mapping[str, str] = {
    "ec2:DescribeInstances": "the machines, how they are sold, and how many vCPUs are in use",
    "ec2:DescribeInstanceStatus": "scheduled events and failing checks of the machines",
    "ec2:DescribeSubnets": "free addresses where a replacement would start",
    "ec2:DescribeVolumes": "Kafka's disks as EBS has them, and how much gp3 the account has",
    "ec2:DescribeVolumesModifications": "changes of these disks that are under way",
    "ec2:DescribeVolumeStatus": "disks that fail EBS's checks",
    "ec2:DescribeSnapshots": "snapshots of these disks that are being made",
    "ec2:DescribeRouteTables": "where default routes of subnets lead",
    "ec2:DescribeNatGateways": "whether these NAT gateways are there, and in which zone",
    "ec2:DescribeVpcEndpoints": "what subnets without a default route reach, if there are any",
    "ec2:DescribeLaunchTemplateVersions": "what a group's next machine will be",
    "ec2:DescribeImages": "whether the image that a template names is there",
    "ec2:DescribeSecurityGroups": "the same of its security groups",
    "ec2:DescribeKeyPairs": "the same of its key pair",
    "ecr:DescribeImages": "whether images of Kafka's pods are in ECR, if they are of ECR's",
    "ecr:DescribePullThroughCacheRules": "whether ECR fetches those that are not",
    "iam:GetInstanceProfile": "which role a template's machines have",
    "eks:ListAccessEntries": "whether the cluster knows that role",
    "kms:DescribeKey": "whether the keys of disks are enabled",
    "kms:GetKeyPolicy": "whether Auto Scaling may use a key that a template names",
    "kms:ListGrants": "the same, by grants",
    "autoscaling:DescribeAutoScalingInstances": "which group a machine is of",
    "autoscaling:DescribeAutoScalingGroups": "sizes, zones, health checks and policies of groups",
    "autoscaling:DescribeLifecycleHooks": "what holds a machine that terminates",
    "autoscaling:DescribePolicies": "what lowers a group's size by its metrics",
    "autoscaling:DescribeScheduledActions": "what lowers a group's size by the clock",
    "autoscaling:DescribeInstanceRefreshes": "a refresh that is under way",
    "autoscaling:DescribeScalingActivities": "why a group has fewer machines than it wants",
    "autoscaling:DescribeLaunchConfigurations": "the same, of groups from before templates",
    "eks:DescribeNodegroup": "how managed node groups update, if there are any",
    "eks:ListFargateProfiles": "the cluster's Fargate profiles",
    "eks:DescribeFargateProfile": "which pods these take",
    "eks:DescribeCluster": "the control plane's version, state and upgrade policy",
    "eks:DescribeClusterVersions": "until when that version is supported",
    "eks:ListInsights": "what the next upgrade would meet",
    "servicequotas:ListAWSDefaultServiceQuotas": "quotas that were never raised",
    "servicequotas:ListServiceQuotas": "quotas that were raised",
    "arc-zonal-shift:ListManagedResources": "zones that are shifted away from, and by whom",
    "health:DescribeEvents": "open issues and scheduled changes, with a plan of AWS Support alone",
    "health:DescribeAffectedEntities": "which resources these name",
    "elasticloadbalancing:DescribeTargetGroups": "the target groups of bindings, if there are any",
    "elasticloadbalancing:DescribeTargetGroupAttributes": "what they do with connections",
    "elasticloadbalancing:DescribeLoadBalancerAttributes": "cross-zone balancing, where a target "
    "group leaves it to its balancer",
    "sqs:GetQueueAttributes": "what a termination handler's queue keeps, and who may send to it",
    "events:ListRuleNamesByTarget": "the rules that send to that queue",
    "events:DescribeRule": "what these rules match",
    "events:ListTargetsByRule": "a rule's role, where the queue's policy lets EventBridge not send",
}
