"""Launches one instance of an Auto Scaling group: where, and with what of its launch template."""

from __future__ import annotations

from typing import Any

from moto.ec2.exceptions import InvalidSubnetIdError

GROUP_NAME_TAG = "aws:autoscaling:groupName"
ROOT_DEVICES = ("/dev/xvda", "/dev/sda1")


def place(group: Any) -> tuple[str, str]:
    """Return the subnet and zone of the next instance: the group's emptiest, first named first."""
    subnet_ids = (group.vpc_zone_identifier or "").replace(" ", "").split(",")
    if not subnet_ids[0]:
        return "", str(group.availability_zones[0])
    taken = [member.instance.subnet_id for member in group.instance_states]
    subnet_id = min(subnet_ids, key=taken.count)
    try:
        return subnet_id, str(group.ec2_backend.get_subnet(subnet_id).availability_zone)
    except InvalidSubnetIdError:
        # The launch itself fails on it, and is then announced as failed.
        return subnet_id, str(group.availability_zones[0])


def run(group: Any, subnet_id: str, zone: str) -> Any:
    """Run one instance of a group and return moto's record of it."""
    version = _template_version(group)
    data = version.data if version else {}
    arguments: dict[str, Any] = {
        "image_id": group.image_id,
        "count": 1,
        "user_data": group.user_data,
        "security_group_names": group.security_groups,
        "instance_type": group.instance_type,
        "is_instance_type_default": False,
        "region_name": group.region,
        "tags": {
            # A tag of the group wins over the template's (captured on AWS); moto does the reverse.
            "instance": {
                **(version.instance_tags if version else {}),
                **group.get_propagated_tags(),
                GROUP_NAME_TAG: group.name,
            },
            "volume": _volume_tags(data),
        },
        "launch_config": group.launch_config,
        "subnet_id": subnet_id or None,
        "metadata_options": data.get("MetadataOptions", {}),
        "ebs_optimized": data.get("EbsOptimized", False),
    }
    if not subnet_id:
        arguments["placement"] = zone
    if version:
        arguments["launch_template"] = {
            "LaunchTemplateId": version.template.id,
            "Version": str(version.number),
        }
        if groups := _interface_groups(data):
            arguments["security_group_ids"] = groups
        if mappings := _volumes(data):
            # Given here, they take the place of the image's root volume; moto would add an 8 GiB
            # one beside them.
            arguments["block_device_mappings"] = mappings
    instance = group.ec2_backend.run_instances(**arguments).instances[0]
    instance.launch_template_version = version.number if version else None
    _set_volume_performance(instance, data)
    _set_profile(group.ec2_backend, instance, data)
    return instance


def _template_version(group: Any) -> Any:
    template = group.ec2_launch_template
    return template.get_version(group.launch_template_version) if template else None


def _volumes(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the volumes a template asks for; the root goes with its instance unless it says no."""
    return [
        {
            **mapping,
            "Ebs": {
                "DeleteOnTermination": mapping["DeviceName"] in ROOT_DEVICES,
                **mapping["Ebs"],
            },
        }
        for mapping in data.get("BlockDeviceMappings", [])
        if mapping.get("Ebs")
    ]


def _volume_tags(data: dict[str, Any]) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for specification in data.get("TagSpecifications", [])
        if specification.get("ResourceType") == "volume"
        for tag in specification.get("Tags", [])
    }


def _interface_groups(data: dict[str, Any]) -> list[str]:
    return [
        group
        for interface in data.get("NetworkInterfaces", [])
        for group in interface.get("Groups", [])
    ]


def _set_volume_performance(instance: Any, data: dict[str, Any]) -> None:
    for mapping in data.get("BlockDeviceMappings", []):
        device = instance.block_device_mapping.get(mapping.get("DeviceName"))
        if device is None:
            continue
        volume = instance.ec2_backend.get_volume(device.volume_id)
        for setting, attribute in (("Iops", "iops"), ("Throughput", "throughput")):
            if mapping.get("Ebs", {}).get(setting):
                setattr(volume, attribute, int(mapping["Ebs"][setting]))


def _set_profile(backend: Any, instance: Any, data: dict[str, Any]) -> None:
    profile = data.get("IamInstanceProfile", {})
    if profile.get("Name") or profile.get("Arn"):
        backend.associate_iam_instance_profile(
            instance_id=instance.id,
            iam_instance_profile_name=profile.get("Name"),
            iam_instance_profile_arn=profile.get("Arn"),
        )
