"""Offer files of the documented format, as small as a test needs them."""

from __future__ import annotations

import json
from typing import Any

# service, usage type, operation, USD.
IRELAND = (
    ("AmazonEC2", "EU-BoxUsage:m7g.large", "RunInstances", "0.0911000000"),
    ("AmazonEC2", "EU-BoxUsage:m7g.large", "RunInstances:0002", "0.1831000000"),
    ("AmazonEC2", "EU-BoxUsage:x99.huge", "RunInstances", "9.0000000000"),
    ("AmazonEC2", "EU-UnusedBox:m7g.large", "RunInstances", "0.0911000000"),
    ("AmazonEC2", "EU-EBS:VolumeUsage.gp3", "", "0.0880000000"),
    ("AmazonEC2", "EU-EBS:VolumeP-IOPS.gp3", "", "0.0055000000"),
    ("AmazonEC2", "EU-EBS:VolumeP-Throughput.gp3", "", "45.0560000000"),
    ("AmazonEC2", "EU-NatGateway-Hours", "NatGateway", "0.0480000000"),
    ("AmazonEC2", "EU-DataTransfer-Regional-Bytes", "", "0.0100000000"),
    ("AWSELB", "EU-LoadBalancerUsage", "LoadBalancing:Application", "0.0252000000"),
)


def as_json(
    rows: tuple[tuple[str, str, str, str], ...] = IRELAND, currency: str = "USD", **changed: Any
) -> str:
    products, on_demand, reserved = {}, {}, {}
    for number, (service, usage_type, operation, usd) in enumerate(rows):
        sku = f"SKU{number:04}"
        products[sku] = {
            "sku": sku,
            "productFamily": "whatever",
            "attributes": {
                "servicecode": service,
                "regionCode": changed.get("region", "eu-west-1"),
                "usagetype": usage_type,
                "operation": operation,
                "note": 'a "quoted" {brace}, é',
            },
        }
        on_demand[sku] = {f"{sku}.T": _term(sku, [("0", usd), ("1024", "0.0001")], currency)}
        reserved[sku] = {f"{sku}.R": _term(sku, [("0", "0.01")], currency)}
    return json.dumps(
        {
            "formatVersion": "v1.0",
            "disclaimer": "This pricing list is for informational purposes only.",
            "offerCode": rows[0][0] if rows else "AmazonEC2",
            "version": "20261101000000",
            "publicationDate": "2026-11-01T00:00:00Z",
            "products": products,
            "terms": {"OnDemand": on_demand, "Reserved": reserved},
        },
        indent=changed.get("indent"),
        ensure_ascii=False,
    )


def _term(sku: str, tiers: list[tuple[str, str]], currency: str) -> dict[str, Any]:
    return {
        "sku": sku,
        "priceDimensions": {
            f"{sku}.T.{at}": {"beginRange": at, "unit": "Hrs", "pricePerUnit": {currency: usd}}
            for at, usd in tiers
        },
    }
