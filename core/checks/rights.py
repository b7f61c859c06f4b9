"""Lists what a survey reads, and of Kubernetes what it leaves unread: one definition each.

The reference, the page and tests follow. Every call of AWS's reads, and none takes a resource to
which it could be narrowed before the cluster is known; all of them are in AWS's own policy
ReadOnlyAccess but for AWS Health's.
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
    "eks:DescribeAccessEntry": "whether it knows the role that is there, or one before it",
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

# Kind that is read of Kubernetes -> its fields that are not looked at and could keep a broker away,
# each with how. A field that is neither read nor named here fails a test, and so does one that is
# both. A kind without such a field is listed all the same: the caller needs the right to list it.
KUBERNETES: Mapping[str, Mapping[str, str]] = {
    "pods": {
        "serviceAccountName": "without that account no pod is created",
        "priorityClassName": "without that class no pod is created",
        "runtimeClassName": "without that class no pod is created",
        "imagePullSecrets": "without that Secret a new node cannot fetch a private image",
        "schedulingGates": "a pod with a gate waits until somebody opens it",
        "schedulingGroup": "a pod waits until its whole group fits",
        "resourceClaims": "a pod waits for a device that its node lacks",
        "activeDeadlineSeconds": "the kubelet ends the pod when that time is over",
        "dnsPolicy": "a broker may not find the others by name",
        "dnsConfig": "a broker may not find the others by name",
        "hostUsers": "false needs a node and volumes that map users",
        "os": "a pod waits for a node of that operating system",
    },
    "nodes": {},
    "csinodes": {},
    "volumeattachments": {},
    "persistentvolumes": {
        "accessModes": "one for a single pod keeps a second pod of the same claim waiting",
        "claimRef": "a volume that another claim holds is not bound again",
        "mountOptions": "an option that the file system refuses keeps the pod from mounting",
        "volumeAttributesClassName": "a class that is gone stops a change of the volume",
        "volumeMode": "a block device is no directory for Kafka's logs",
    },
    "persistentvolumeclaims": {
        "accessModes": "ReadWriteOncePod keeps a second pod waiting",
        "volumeAttributesClassName": "a class that is gone stops a change of the volume",
        "volumeMode": "a block device is no directory for Kafka's logs",
    },
    "storageclasses": {
        "allowedTopologies": "the volume of a new broker may be made in none of its zones",
        "mountOptions": "an option that the file system refuses keeps a new broker from mounting",
        "reclaimPolicy": "the volume of a new broker may be deleted with its claim",
    },
    "poddisruptionbudgets": {},
    "resourcequotas": {},
    "limitranges": {
        "max of cpu, min, maxLimitRequestRatio": "a pod beyond them is not created again",
    },
    "namespaces": {},
    "services": {
        "publishNotReadyAddresses": "without it brokers that start may not find each other",
        "ports": "a port that is gone cuts clients of every broker",
    },
    "configmaps": {},
    "deployments": {"paused": "a changed controller is not rolled out"},
    "daemonsets": {},
    "statefulsets": {"podManagementPolicy": "OrderedReady brings pods back one after the other"},
    "cronjobs": {},
    "horizontalpodautoscalers": {},
    "roles": {},
    "rolebindings": {},
    "clusterroles": {},
    "clusterrolebindings": {},
    "secrets": {"data": "of Secrets the metadata of Helm's releases alone is read"},
    "validatingwebhookconfigurations": {
        "timeoutSeconds": "one that answers late refuses as one that does not answer",
    },
    "mutatingwebhookconfigurations": {
        "timeoutSeconds": "one that answers late refuses as one that does not answer",
        "what it changes": "a changed pod may ask for what no node has",
    },
    "validatingadmissionpolicies": {"expressions": "what they deny is not evaluated"},
    "validatingadmissionpolicybindings": {},
    "kafkas": {
        "spec.clientsCa, its end": "Strimzi keeps it in a Secret, and renews it where it made it",
        "spec.maintenanceTimeWindows": "certificates are renewed and pods rolled in these alone",
        "spec.kafka.template": "what it adds to pods is seen in pods that run, and not before",
        "spec.kafka.authorization": "a server that it asks and that is away refuses every client",
    },
    "kafkanodepools": {"spec.template": "what it adds is seen in pods that run, and not before"},
    "kafkatopics": {},
    "kafkarebalances": {},
    "strimzipodsets": {"spec.pods": "what they add is seen in pods that run, and not before"},
    "kafkaclusters": {"spec": "of another operator's Kafka only pods are judged"},
    "clonesets": {},
    "rollouts": {},
    "nodepools": {
        "spec.template.spec.startupTaints": "one that nobody removes keeps a new node from pods",
    },
    "ec2nodeclasses": {
        "spec.role": "a role that the cluster does not know keeps new nodes from joining",
        "spec.userData": "a script that fails keeps new nodes from joining",
    },
    "nodeclasses": {"spec.role": "a role that the cluster does not know keeps nodes from joining"},
    "targetgroupbindings": {
        "spec.networking": "security groups without its rules let no health check in",
        "spec.vpcID": "a target group of another VPC takes no pod",
    },
}

# The same of AWS: action -> fields of its answer that are not looked at.
AWS_UNREAD: Mapping[str, Mapping[str, str]] = {
    "autoscaling:DescribeAutoScalingGroups": {
        "AvailabilityZoneImpairmentPolicy": "a zonal shift may end machines of that zone",
        "CapacityRebalance": "spot machines are ended before AWS takes them back",
        "CapacityReservationSpecification": "a group of a reservation alone starts none beside it",
        "Context": "a service of AWS's may look after the group",
        "DefaultInstanceWarmup": "a replacement counts only after that time",
        "HealthCheckGracePeriod": "too short a one ends a machine that still starts",
        "NewInstancesProtectedFromScaleIn": "a replacement may be scaled in again",
        "Operator": "another service manages the group and may change it",
        "TerminationPolicies": "a function of yours may choose what is scaled in",
    },
    "autoscaling:DescribeLifecycleHooks": {"GlobalTimeout": "heartbeats end at that time"},
    "ec2:DescribeInstances": {
        "BlockDeviceMappings": "a volume that somebody attached by hand takes a slot",
        "MaintenanceOptions": "automatic recovery may be off, and a reboot moves the machine",
        "NetworkInterfaces": "an interface more takes a slot of a volume",
        "Operator": "another service manages the machine and may end it",
        "Placement": "a dedicated host or placement group may have no room for a replacement",
        "SecurityGroups": "rules that are gone keep brokers from each other",
        "StateReason": "why a machine ends is not said",
    },
    "ec2:DescribeLaunchTemplateVersions": {
        "DisableApiTermination": "a group cannot end such a machine",
        "HibernationOptions": "a machine that hibernates is no replacement",
        "InstanceInitiatedShutdownBehavior": "a shutdown from inside may terminate the machine",
        "InstanceRequirements": "the next machine may be too small for a broker",
        "InstanceType": "the next machine may be too small for a broker",
        "NetworkPerformanceOptions": "a weighting may leave too little for EBS",
        "PrivateDnsNameOptions": "the next node's name may be one that nobody looks for",
        "UserData": "a script that fails keeps new nodes from joining",
    },
    "ec2:DescribeSubnets": {
        "BlockPublicAccessStates": "what it blocks keeps a node from its images",
        "State": "a subnet that is not available starts no machine",
    },
    "ec2:DescribeVolumes": {
        "AvailabilityZone": "a broker waits for a node of that zone",
        "Iops": "too few slow a broker that copies its replicas back",
        "Throughput": "too little slows a broker that copies its replicas back",
        "VolumeInitializationRate": "a volume of a snapshot is slow until it is filled",
    },
    "eks:DescribeAccessEntry": {
        "username": "one that is not the node's name lets it not join",
    },
    "eks:DescribeCluster": {
        "computeConfig": "Auto Mode without its role starts no node",
        "controlPlaneScalingConfig": "a small control plane answers a storm of pods late",
        "encryptionConfig": "a key that is disabled keeps Secrets from being read",
        "roleArn": "without that role EKS tends no network interface",
    },
    "eks:DescribeNodegroup": {
        "nodeRole": "a role that is gone keeps new nodes from joining",
        "releaseVersion": "an image that is withdrawn starts no node",
        "subnets": "a subnet that is gone starts no node",
        "taints": "a taint that brokers do not tolerate keeps them from new nodes",
        "warmPoolConfig": "nodes may come back stopped",
    },
    "elasticloadbalancing:DescribeTargetGroups": {
        "HealthCheckEnabled": "without a check no target is healthy to the readiness gate",
        "HealthCheckPort": "a check of a port that no broker opens keeps its gate closed",
        "HealthCheckProtocol": "a check that brokers do not answer keeps their gates closed",
        "HealthCheckIntervalSeconds": "a long one opens a gate late",
        "HealthyThresholdCount": "a high one opens a gate late",
        "IpAddressType": "one of the other family takes no pod",
        "TargetType": "another one than the binding's takes no pod",
        "VpcId": "a target group of another VPC takes no pod",
    },
}
# What a reader of a survey is shown: of what nothing was said.
UNREAD: Mapping[str, Mapping[str, str]] = {
    kind: fields for kind, fields in {**KUBERNETES, **AWS_UNREAD}.items() if fields
}
