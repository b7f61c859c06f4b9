"""What is left of a cluster in the twin: of its AWS, of its provider's store, of its API server.

A resource is ours by its tags, by its name, or by who last wrote it. Whatever another test has
made on the same twin is none of these.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from core.ground import naming
from local.demo import spec as demo_spec
from local.kubernetes.client import Api, ApiError
from local.twin import Twin

# Who writes on our behalf, as the API server notes it: the engine, helm, Strimzi's stand-in.
WRITERS = {"pulumi", "helm", "strimzi-cluster-operator"}
# Not ours to delete: helm keeps the definitions of a chart's crds/ folder, since deleting one
# deletes every object of its kind. On EKS they go with the cluster.
KEPT_BY_HELM = "CustomResourceDefinition"
# Over, and shown by AWS for a while: nothing is billed or in the way.
OVER = {"terminated", "deleted", "PendingDeletion"}
# What EC2 has of a cluster beside instances and addresses: call, list, id.
EC2 = (
    ("describe_vpcs", "Vpcs", "VpcId"),
    ("describe_subnets", "Subnets", "SubnetId"),
    ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ("describe_route_tables", "RouteTables", "RouteTableId"),
    ("describe_security_groups", "SecurityGroups", "GroupId"),
    ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    ("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    ("describe_volumes", "Volumes", "VolumeId"),
    ("describe_snapshots", "Snapshots", "SnapshotId"),
)

# Service, call, list, and what stays of each entry where two moments are compared.
LISTED = (
    ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    ("ec2", "describe_subnets", "Subnets", "SubnetId"),
    ("ec2", "describe_security_groups", "SecurityGroups", ""),
    ("ec2", "describe_launch_templates", "LaunchTemplates", ""),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("elbv2", "describe_load_balancers", "LoadBalancers", "LoadBalancerName"),
    ("elbv2", "describe_target_groups", "TargetGroups", "TargetGroupName"),
    ("sqs", "list_queues", "QueueUrls", ""),
    ("dynamodb", "list_tables", "TableNames", ""),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("iam", "list_policies", "Policies", "PolicyName"),
    ("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    ("events", "list_rules", "Rules", "Name"),
    ("scheduler", "list_schedules", "Schedules", "Name"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    ("s3", "list_buckets", "Buckets", "Name"),
    ("kms", "list_aliases", "Aliases", "AliasName"),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("secretsmanager", "list_secrets", "SecretList", "Name"),
)
GROUPS = (
    ("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups", ""),
    ("eks", "list_clusters", "clusters", ""),
)


def in_aws(twin: Twin, environment: str = demo_spec.ENVIRONMENT) -> list[str]:
    """Return what moto still has of an environment's cluster."""
    prefix = f"{environment}-{demo_spec.CLUSTER}"
    return sorted(
        {*_tagged_arns(twin, environment), *_in_ec2(twin, environment), *_named_arns(twin, prefix)}
    )


def in_store(twin: Twin) -> list[str]:
    """Return the resources that the provider holds beside moto."""
    return sorted(path.parent.name for path in twin.place.path("store").rglob("*.json"))


def in_kubernetes(api: Api) -> list[str]:
    """Return every object of ours, of whatever kind the API server serves."""
    return sorted(
        f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for item in everything(api)
        if _is_ours(item)
    )


def _is_ours(item: dict[str, Any]) -> bool:
    metadata, spec = item["metadata"], item.get("spec") or {}
    writers = {entry.get("manager") for entry in metadata.get("managedFields") or []}
    if item["kind"] == KEPT_BY_HELM:
        return False
    return bool(
        writers & WRITERS
        or metadata.get("namespace") == "kafka"
        or (item["kind"], metadata["name"]) == ("Namespace", "kafka")
        or spec.get("storageClassName") == naming.STORAGE_CLASS
        or "harbour" in metadata["name"]
    )


def everything(api: Api) -> Iterator[dict[str, Any]]:
    """Yield every object of every kind that the API server lists, but events."""
    groups = [
        f"/apis/{group['preferredVersion']['groupVersion']}" for group in api.get("/apis")["groups"]
    ]
    for root in ("/api/v1", *groups):
        for resource in api.get(root)["resources"]:
            if "list" not in resource["verbs"] or resource["kind"] == "Event":
                continue
            try:
                listed = api.get(f"{root}/{resource['name']}")["items"]
            except ApiError as error:
                if error.status not in (404, 405):
                    raise
                continue
            yield from ({**item, "kind": resource["kind"]} for item in listed)


def _tagged_arns(twin: Twin, environment: str) -> Iterator[str]:
    """Yield the ARNs of what carries our tags, but for EC2's."""
    ours = [
        {"Key": naming.CLUSTER_TAG, "Values": [demo_spec.CLUSTER]},
        {"Key": naming.ENVIRONMENT_TAG, "Values": [environment]},
    ]
    keys = set(_keys_to_be_deleted(twin))
    pages = twin.aws("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in pages.paginate(TagFilters=ours):
        for found in page["ResourceTagMappingList"]:
            arn = found["ResourceARN"]
            if ":ec2:" not in arn and arn.rpartition("/")[2] not in keys:
                yield arn


def _in_ec2(twin: Twin, environment: str) -> Iterator[str]:
    """Yield what carries our tags and is there: moto keeps the tags of what is gone."""
    ec2 = twin.aws("ec2")
    mark = [
        {"Name": f"tag:{naming.CLUSTER_TAG}", "Values": [demo_spec.CLUSTER]},
        {"Name": f"tag:{naming.ENVIRONMENT_TAG}", "Values": [environment]},
    ]
    for call, key, identity in EC2:
        for page in ec2.get_paginator(call).paginate(Filters=mark):
            yield from (str(item[identity]) for item in page[key] if item.get("State") not in OVER)
    for address in ec2.describe_addresses(Filters=mark)["Addresses"]:
        yield str(address["AllocationId"])
    for page in ec2.get_paginator("describe_instances").paginate(Filters=mark):
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] not in OVER:
                    yield str(instance["InstanceId"])


def _keys_to_be_deleted(twin: Twin) -> Iterator[str]:
    """Yield the keys that wait for their deletion, for which AWS takes a week at least."""
    kms = twin.aws("kms")
    for key in kms.list_keys()["Keys"]:
        if kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] in OVER:
            yield str(key["KeyId"])


def _named_arns(twin: Twin, prefix: str) -> Iterator[str]:
    """Yield what says anywhere in its description that it is of an environment's cluster."""
    for service, call, key, _ in (*LISTED, *GROUPS):
        for item in pages(twin.aws(service), call, key):
            text = item if isinstance(item, str) else json.dumps(item, default=str)
            over = isinstance(item, dict) and str(item.get("State")) in OVER
            if prefix in text and not over:
                yield f"{service} {key}: {text[:200]}"


def pages(client: Any, call: str, key: str) -> Iterator[Any]:
    """Yield the entries of all pages of a list."""
    if client.can_paginate(call):
        found: Iterable[Any] = client.get_paginator(call).paginate()
    else:
        found = [getattr(client, call)()]
    for page in found:
        yield from page.get(key) or []
