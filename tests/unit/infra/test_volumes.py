"""λ volumes as it is made: what it is told, and that it may patch node pools and nothing else."""

from __future__ import annotations

from decimal import Decimal

from core.cluster import ClusterSpec, parse
from core.volumes.limits import Gp3, Performance
from handlers.volume_settings import VARIABLE, VolumeSettings
from infra.storage import StorageArgs, _performances
from infra.volumes import policies


def spec(**volumes: object) -> ClusterSpec:
    return parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ["us-east-1a", "us-east-1b", "us-east-1c"],
            "volumes": volumes,
            "pools": [
                {
                    "name": "node",
                    "role": "combined",
                    "instance_type": "r7g.xlarge",
                    "first_node_id": 0,
                    "volumes": [{"size_gib": 500, "iops": 4000, "throughput_mib_per_s": 140}],
                    "volume_policy": {"free_percent": 20, "max_size_gib": 2000},
                }
            ],
        }
    )


def test_the_function_reads_what_is_rendered_for_it() -> None:
    rendered = policies(spec(mode="apply", max_monthly_increase_usd=50))
    read = VolumeSettings.from_env({VARIABLE: rendered})
    assert (read.applies, read.frozen, read.budget_usd) == (True, False, Decimal(50))
    assert set(read.pools) == {"node-a", "node-b", "node-c"}
    pool = read.pools["node-a"]
    assert pool.volumes == (Gp3(500, Performance(4000, 140)),)
    assert (pool.policy.free_share, pool.policy.largest_gib) == (0.2, 2000)
    assert pool.policy.apply


def test_classes_are_made_for_what_may_be_chosen_and_only_where_it_may() -> None:
    described = spec()
    made = _performances(StorageArgs(pools=described.pools, tags={}))
    assert set(made) == {"gp3-4000-140"}
    changing = _performances(StorageArgs(pools=described.pools, may_change=True, tags={}))
    assert set(changing) == {"gp3-4000-140", "gp3-6000-140", "gp3-4000-149", "gp3-6000-149"}
