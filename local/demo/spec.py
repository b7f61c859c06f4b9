"""The cluster the demo provisions: three zones, three controllers, three brokers, quick timings.

Quick, but not loose: core.timing checks these like any other, so the demo shows the relations of a
real cluster at a smaller scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from core.ground.naming import TWIN_ENVIRONMENT
from local.demo import clients
from local.environment import REGION
from local.place import Place
from local.slack import server as slack

ENVIRONMENT = TWIN_ENVIRONMENT
CLUSTER = clients.CLUSTER
ZONES = tuple(f"{REGION}{letter}" for letter in "abc")


def spec(place: Place) -> dict[str, Any]:
    """Return the demo's ClusterSpec for one twin, as a user would write it."""
    return {
        "name": CLUSTER,
        "environment": ENVIRONMENT,
        "region": REGION,
        "availability_zones": list(ZONES),
        # What a private cluster needs is made as well; the twin's costs nothing.
        "network": {"vpc_cidr": place.vpc_cidr, "interface_endpoints": True},
        # Nobody is written to: moto keeps the subscription.
        "alerts": {"email": ["on-call@example.com"]},
        # Grafana is not there; what it would load is.
        "metrics": {"dashboards": True},
        # It ends with the twin.
        "ephemeral": True,
        # Nothing in it fills 100 GiB; what would be done is shown by the tests.
        "volumes": {"mode": "apply", "max_monthly_increase_usd": 100},
        # Its chart is in no registry the twin could take it from.
        "cluster_autoscaler": False,
        "pools": [
            {
                "name": "controller",
                "role": "controller",
                "instance_type": "m7g.large",
                "first_node_id": 0,
                "node_ids_per_zone": 1,
                "heap_mib": 256,
                "memory_request_mib": 512,
                "cpu_request_millis": 100,
                "volumes": [{"size_gib": 20}],
            },
            {
                "name": "broker",
                "role": "broker",
                # The smallest whose volumes may be given more than gp3 includes.
                "instance_type": "r7g.2xlarge",
                "first_node_id": 10,
                "node_ids_per_zone": 10,
                "heap_mib": 256,
                "memory_request_mib": 512,
                "cpu_request_millis": 100,
                "volumes": [{"size_gib": 100}],
                # As far as the tests go: each step more is a VolumeAttributesClass.
                "volume_policy": {"max_iops": 4000, "max_throughput_mib_per_s": 250},
            },
        ],
        "kafka": {
            "listener": {"advertised_host": place.nlb_host},
            # A process on this machine answers sooner than a pod on EKS.
            "probes": {
                "readiness": {
                    "initial_delay_seconds": 2,
                    "period_seconds": 1,
                    "timeout_seconds": 2,
                    # One look that two busy cores delayed must take no broker out of service.
                    "failure_threshold": 10,
                },
                "liveness": {"initial_delay_seconds": 60, "failure_threshold": 6},
            },
        },
        "users": clients.users(),
        # Strimzi's chart and images are in no registry the twin reaches: its stand-in runs already.
        "strimzi": {"operator": "external", "disruption_budgets": "ours"},
        # A sink of the twin's own, with a page that shows the threads.
        "slack": {
            "channel": slack.CHANNEL,
            "secret_name": slack.SECRET_NAME,
            "api_url": f"{place.url('slack')}/api/",
        },
        "timings": {
            "tick_interval_seconds": 2,
            "post_condition_hold_seconds": 10,
            "hold_limit_seconds": 3600,
            # A drain must be over, whatever waits in a queue, before its node is kept.
            "nth_queue_retention_seconds": 900,
        },
    }


def path(place: Place) -> Path:
    """Return where a twin's ClusterSpec is, once it has been written."""
    return place.path("cluster.yaml")


def write(place: Place) -> Path:
    """Write the demo's ClusterSpec into the twin's directory and return its path."""
    written = path(place)
    written.write_text(yaml.safe_dump(spec(place), sort_keys=False))
    return written
