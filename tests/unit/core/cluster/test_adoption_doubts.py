"""What a description of a cluster that exists says, and somebody may have meant otherwise."""

from __future__ import annotations

from core.cluster import adoption
from core.cluster.adoption import doubts
from tests.every_case import every_case

WAYS_IN = {
    "a load balancer": ("kafka-0a1b.elb.eu-north-1.amazonaws.com:9094", ""),
    "nodes by their addresses": ("10.0.1.7:32100,10.0.2.9:32100", "10.0.1.7, 10.0.2.9"),
    "a node of version six": ("[2600:1f18::1]:32100", "2600:1f18::1"),
    "an address beside a name": ("kafka.example.com:9094,10.0.1.7:9094", ""),
    "a name without a domain": ("kafka:9094", "has no domain"),
    "Amazon MSK's": ("b-1.shop.0a1b.c2.kafka.eu-north-1.amazonaws.com:9094", "Amazon MSK's"),
    "nothing yet": (None, ""),
}


@every_case(("bootstrap", "said"), WAYS_IN.values(), ids=WAYS_IN.keys())
def test_a_way_in_that_may_not_last_is_doubted(bootstrap: str | None, said: str) -> None:
    kafka = {"namespace": "shop-kafka", "name": "orders"}
    kafka |= {"bootstrap": bootstrap} if bootstrap else {}
    section = {"eks_cluster": "shop", "region": "eu-north-1", "kafkas": [kafka]}
    found = doubts(adoption.parse({"adopt": {**section, "managed_node_groups": ["a"]}}))
    assert said in " ".join(found)
    assert bool(found) is bool(said)
