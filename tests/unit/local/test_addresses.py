"""Addresses for pods."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.kubernetes.pods import Addresses


def test_pods_start_in_the_middle_and_a_freed_address_rests() -> None:
    addresses = Addresses()
    assert addresses.take("a", "10.11.64.0/18", []) == "10.11.96.0"
    addresses.give_back("a")
    assert addresses.take("b", "10.11.64.0/18", []) == "10.11.96.1"


def test_a_small_subnet_is_used_up_but_for_what_aws_keeps() -> None:
    addresses = Addresses()
    taken = {addresses.take(str(i), "10.11.0.0/28", ["10.11.0.4"]) for i in range(10)}
    assert taken == {f"10.11.0.{host}" for host in range(5, 15)}
    with pytest.raises(ValueError, match=r"10\.11\.0\.0/28"):
        addresses.take("more", "10.11.0.0/28", ["10.11.0.4"])
    addresses.give_back("3")
    assert addresses.take("more", "10.11.0.0/28", ["10.11.0.4"]) in taken


def test_an_address_kept_after_a_restart_goes_to_nobody_else() -> None:
    addresses = Addresses()
    assert addresses.keep("old", "10.11.0.128") == "10.11.0.128"
    assert addresses.take("new", "10.11.0.0/24", []) == "10.11.0.129"


@given(st.lists(st.booleans(), max_size=200), st.integers(24, 27))
def test_no_two_pods_ever_share_an_address(takes: list[bool], prefix: int) -> None:
    addresses, held = Addresses(), dict[str, str]()
    network = ipaddress.IPv4Network(f"10.11.249.0/{prefix}")
    for number, take in enumerate(takes):
        if take and len(held) < network.num_addresses - 5:
            held[str(number)] = addresses.take(str(number), str(network), [])
        elif held:
            uid = next(iter(held))
            addresses.give_back(uid)
            del held[uid]
        assert len(set(held.values())) == len(held)
        assert all(ipaddress.IPv4Address(address) in network for address in held.values())


def test_the_twins_own_addresses_are_no_pods() -> None:
    addresses = Addresses()
    cidr = "10.11.250.0/23"
    with pytest.raises(ValueError, match=r"10\.11\.250\.0/23"):
        addresses.take("a", cidr, [])
