"""Disks, networks, balancers and DNS: what each service refuses beyond its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BALANCED,
    BALANCERS,
    CERTIFICATE,
    KEY,
    LISTENING,
    NAT,
    RECORD,
    RECORDED,
    ROUTE,
    SECURITY_GROUP,
    TARGETS,
    ZONE,
    without,
)
from tests.unit.local.seeded_inputs import INGRESS, RULE, TARGET_GROUP, TEMPLATE, disk, template
from tests.unit.local.test_refused_parts import LISTENER

REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a security group: empty description": (
        SECURITY_GROUP,
        {"name": "n", "description": ""},
        "MissingParameter",
    ),
    "a rule: two sources": (
        INGRESS,
        {**RULE, "referencedSecurityGroupId": "sg-0123456789abcdef0"},
        "Invalid Attribute Combination",
    ),
    "a rule: tcp no ports": (
        INGRESS,
        {"securityGroupId": "sg-1", "ipProtocol": "tcp", "cidrIpv4": "10.0.0.0/8"},
        "InvalidParameterValue",
    ),
    "a disk: gp2 iops": (
        TEMPLATE,
        disk(volumeType="gp2", volumeSize=10, iops=3000),
        "InvalidParameterCombination",
    ),
    "a disk: io1 no iops": (
        TEMPLATE,
        disk(volumeType="io1", volumeSize=10),
        "InvalidParameterCombination",
    ),
    "a disk: st1 small": (
        TEMPLATE,
        disk(volumeType="st1", volumeSize=10),
        "InvalidParameterCombination",
    ),
    "a disk: gp2 tput": (
        TEMPLATE,
        disk(volumeType="gp2", volumeSize=10, throughput=125),
        "InvalidParameterCombination",
    ),
    "a disk: key no enc": (
        TEMPLATE,
        disk(volumeSize=10, encrypted="false", kmsKeyId=KEY),
        "InvalidParameterCombination",
    ),
    "a disk: twice": (
        TEMPLATE,
        template(
            blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeType": "gp3"}}] * 2
        ),
        "InvalidBlockDeviceMapping",
    ),
    "a template: hop": (
        TEMPLATE,
        template(metadataOptions={"httpPutResponseHopLimit": 65}),
        "InvalidParameterValue",
    ),
    "a template: ami": (TEMPLATE, template(imageId="ami-xyz"), "InvalidAMIID.Malformed"),
    "a template: tagspec twice": (
        TEMPLATE,
        template(tagSpecifications=[{"resourceType": "instance", "tags": {"a": "b"}}] * 2),
        "InvalidParameterValue",
    ),
    "a NAT gateway: no eip": (NAT, {"subnetId": "subnet-1"}, "MissingParameter"),
    "a NAT gateway: private eip": (
        NAT,
        {"subnetId": "subnet-1", "connectivityType": "private", "allocationId": "eipalloc-1"},
        "InvalidParameter",
    ),
    "a route: no target": (
        ROUTE,
        {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"},
        "MissingParameter",
    ),
    "a route: two targets": (
        ROUTE,
        {
            "routeTableId": "rtb-1",
            "destinationCidrBlock": "0.0.0.0/0",
            "gatewayId": "igw-1",
            "natGatewayId": "nat-1",
        },
        "InvalidParameterCombination",
    ),
    "a route: no destination": (
        ROUTE,
        {"routeTableId": "rtb-1", "gatewayId": "igw-1"},
        "MissingParameter",
    ),
    "a balancer: subnet twice": (
        BALANCERS,
        {**BALANCED, "subnets": ["subnet-1", "subnet-1"]},
        "InvalidConfigurationRequest",
    ),
    "a balancer: both": (
        BALANCERS,
        {**BALANCED, "subnetMappings": [{"subnetId": "subnet-1"}]},
        "InvalidConfigurationRequest",
    ),
    "a target group: no vpc": (TARGETS, without(TARGET_GROUP, "vpcId"), "ValidationError"),
    "a target group: matcher": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "TCP", "matcher": "200"}},
        "ValidationError",
    ),
    "a target group: path": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "TCP", "path": "/"}},
        "ValidationError",
    ),
    "a target group: sticky": (
        TARGETS,
        {**TARGET_GROUP, "stickiness": {"type": "lb_cookie", "enabled": True}},
        "ValidationError",
    ),
    "a target group: check http proto UDP": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "UDP"}},
        "ValidationError",
    ),
    "a listener: tls": (LISTENER, {**LISTENING, "protocol": "TLS"}, "ValidationError"),
    "a listener: cert tcp": (
        LISTENER,
        {**LISTENING, "certificateArn": CERTIFICATE},
        "ValidationError",
    ),
    "a listener: no action": (LISTENER, {**LISTENING, "defaultActions": []}, "ValidationError"),
    "a listener: redirect": (
        LISTENER,
        {
            **LISTENING,
            "defaultActions": [{"type": "redirect", "redirect": {"statusCode": "HTTP_301"}}],
        },
        "ValidationError",
    ),
    "a zone: aws": (
        ZONE,
        {"name": "kafka.us-east-1.amazonaws.com", "vpcs": [{"vpcId": "vpc-1"}]},
        "InvalidDomainName",
    ),
    "a zone: tld": (ZONE, {"name": "com", "vpcs": [{"vpcId": "vpc-1"}]}, "InvalidDomainName"),
    "a record: ip": (
        RECORD,
        {**RECORDED, "ttl": 60, "records": ["10.0.0.300"]},
        "InvalidChangeBatch",
    ),
    "a record: none": (RECORD, RECORDED, "InvalidInput"),
    "a record: both": (
        RECORD,
        {
            **RECORDED,
            "ttl": 60,
            "records": ["10.0.0.3"],
            "aliases": [{"name": "x", "zoneId": "Z", "evaluateTargetHealth": True}],
        },
        "InvalidInput",
    ),
    "a record: no ttl": (RECORD, {**RECORDED, "records": ["10.0.0.3"]}, "InvalidInput"),
    "a record: txt": (
        RECORD,
        {**RECORDED, "type": "TXT", "ttl": 60, "records": ['"' + "x" * 256 + '"']},
        "InvalidChangeBatch",
    ),
    "a record: two cnames": (
        RECORD,
        {**RECORDED, "type": "CNAME", "ttl": 60, "records": ["a.org", "b.org"]},
        "InvalidChangeBatch",
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a disk: io2": (TEMPLATE, disk(volumeType="io2", volumeSize=100, iops=5000)),
    "a disk: encrypted with a key": (TEMPLATE, disk(volumeSize=10, encrypted="true", kmsKeyId=KEY)),
    "a template: by a parameter": (
        TEMPLATE,
        template(imageId="resolve:ssm:/x", metadataOptions={"httpPutResponseHopLimit": 64}),
    ),
    "a NAT gateway: private": (NAT, {"subnetId": "subnet-1", "connectivityType": "private"}),
    "a route: out": (
        ROUTE,
        {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"},
    ),
    "a rule: every protocol": (
        INGRESS,
        {"securityGroupId": "sg-1", "ipProtocol": "-1", "cidrIpv4": "10.0.0.0/8"},
    ),
    "a target group: asked by HTTP": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "HTTP", "path": "/", "matcher": "200"}},
    ),
    "a target group: sticky by address": (
        TARGETS,
        {**TARGET_GROUP, "stickiness": {"type": "source_ip", "enabled": True}},
    ),
    "a listener: TLS": (LISTENER, {**LISTENING, "protocol": "TLS", "certificateArn": CERTIFICATE}),
    "a zone: of one label": (
        ZONE,
        {"name": "internal", "vpcs": [{"vpcId": "vpc-0123456789abcdef0"}]},
    ),
    "a record: two addresses": (
        RECORD,
        {**RECORDED, "ttl": 60, "records": ["10.0.0.1", "10.0.0.2"]},
    ),
    "a record: long text in parts": (
        RECORD,
        {**RECORDED, "type": "TXT", "ttl": 60, "records": [f'"{"x" * 255}" "{"y" * 255}"']},
    ),
}
