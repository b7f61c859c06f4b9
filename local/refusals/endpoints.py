"""Refuses what EC2 does not take of endpoints inside a VPC and of services for other VPCs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.refusals.limits import first_of, limit
from local.refusals.principals import clients
from local.refusals.refusal import Refusal, Wanted

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/"
_LINK = "https://docs.aws.amazon.com/vpc/latest/privatelink/"
_NAME = re.compile(r"(?:com|cn\.com)\.amazonaws\.[a-z]{2}(?:-[a-z]+)+-\d\.([a-z0-9-]+)(?:[.].+)?")
_GATEWAYS = ("dynamodb", "s3")
# Services whose endpoints are named as no client of botocore's is.
_OTHERWISE = frozenset(
    {
        *("aps-workspaces", "ec2messages", "emrcontainers", "git-codecommit"),
        *("grafana-workspace", "guardduty-data", "guardduty-data-fips", "kinesis-streams"),
        *(
            "appmesh-envoy-management",
            "ecs-agent",
            "ecs-telemetry",
            "elasticbeanstalk-health",
            "email-smtp",
            "emr-serverless-services",
            "execute-api",
            "kinesis-firehose",
            "notebook",
            "pipes-data",
            "s3-global",
            "s3express",
            "ssmmessages",
            "studio",
            "sync-states",
            "vpce",
        ),
    }
)


@limit("ec2/vpcEndpoint:VpcEndpoint", source=f"{_LINK}aws-services-privatelink-support.html")
def service_of_an_endpoint(wanted: Wanted) -> Iterator[Refusal]:
    """One that there is, by a gateway where it has one, with names where it has an interface."""
    inputs = wanted.inputs
    service = str(inputs.get("serviceName") or "")
    kind = inputs.get("vpcEndpointType") or "Gateway"
    found = _NAME.fullmatch(service)
    short = found[1] if found else ""
    subnets = inputs.get("subnetIds") or ()
    inbound = (inputs.get("dnsOptions") or {}).get("privateDnsOnlyForInboundResolverEndpoint")
    yield from first_of(
        "CreateVpcEndpoint",
        "InvalidServiceName",
        (
            found is not None and short not in clients() | _OTHERWISE,
            f"The Vpc Endpoint Service '{service}' does not exist",
            "serviceName",
        ),
    )
    yield from first_of(
        "CreateVpcEndpoint",
        "InvalidParameter",
        (
            kind == "Gateway" and found is not None and short not in _GATEWAYS,
            (
                f"Endpoint type (Gateway) does not match available service types ([Interface]) of "
                f"{service}."
            ),
            "vpcEndpointType",
        ),
        (
            kind == "Gateway" and inputs.get("privateDnsEnabled"),
            "Private DNS can't be enabled for gateway endpoints",
            "privateDnsEnabled",
        ),
        (
            kind != "Gateway" and inputs.get("routeTableIds"),
            f"Route table IDs are only supported for Gateway type VPC Endpoint, not {kind}.",
            "routeTableIds",
        ),
        (
            kind == "Interface" and short == "dynamodb" and inputs.get("privateDnsEnabled"),
            (
                "Private DNS can't be enabled because the service com.amazonaws.dynamodb does not "
                "support it"
            ),
            "privateDnsEnabled",
        ),
        (
            inbound and short not in _GATEWAYS,
            (
                "privateDnsOnlyForInboundResolverEndpoint is for services that have both kinds of "
                f"endpoints alone, and not for {service}."
            ),
            "dnsOptions",
        ),
        (
            kind == "GatewayLoadBalancer" and len(subnets) > 1,
            "An endpoint of a Gateway Load Balancer has one subnet",
            "subnetIds",
        ),
    )


@limit(
    "ec2/vpcEndpointService:VpcEndpointService",
    source=f"{_EC2}API_CreateVpcEndpointServiceConfiguration.html",
)
def balancers_of_a_service(wanted: Wanted) -> Iterator[Refusal]:
    """Network load balancers, or gateway load balancers: one kind of them, and one at least."""
    network = [str(each) for each in wanted.inputs.get("networkLoadBalancerArns") or ()]
    gateway = [str(each) for each in wanted.inputs.get("gatewayLoadBalancerArns") or ()]
    wrong = [each for each in network if ":loadbalancer/net/" not in each]
    wrong += [each for each in gateway if ":loadbalancer/gwy/" not in each]
    yield from first_of(
        "CreateVpcEndpointServiceConfiguration",
        "InvalidParameter",
        (
            not network and not gateway,
            "At least one load balancer must be specified",
            "networkLoadBalancerArns",
        ),
        (
            network and gateway,
            "Network and gateway load balancers cannot be specified together",
            "gatewayLoadBalancerArns",
        ),
        (
            wrong,
            f"The load balancer {wrong[:1]} is not of the type that is asked for",
            "networkLoadBalancerArns",
        ),
    )
