"""A twin's place: its addresses follow from its number, and no two twins share one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import Conflict
from local import place as places
from local.place import Place, claimed


def test_a_pod_address_maps_to_the_loopback_address_its_process_listens_on() -> None:
    place = Place(11, Path("/nowhere"))
    assert place.vpc_cidr == "10.11.0.0/16"
    assert place.socket_address("10.11.3.7") == "127.11.3.7"


def test_an_address_of_another_vpc_is_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.12\.3\.7 is not an address of this twin's VPC"):
        Place(11, Path("/nowhere")).socket_address("10.12.3.7")


def test_two_twins_at_once_share_no_address(tmp_path: Path) -> None:
    with claimed(tmp_path) as first, claimed(tmp_path) as second:
        addresses = [{p.url(s) for s in places.SERVICES} for p in (first, second)]
        assert first.number != second.number
        assert not addresses[0] & addresses[1]


def test_a_number_is_free_again_when_its_twin_has_ended(tmp_path: Path) -> None:
    with claimed(tmp_path) as first:
        number = first.number
    with claimed(tmp_path) as second:
        assert second.number == number


def test_when_every_number_is_taken_the_next_twin_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "LAST_NUMBER", places.FIRST_NUMBER)
    with claimed(tmp_path), pytest.raises(Conflict, match="stop one of the running demos"):
        claimed(tmp_path).__enter__()


def test_a_place_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    Place(12, tmp_path).save()
    assert Place.load(tmp_path) == Place(12, tmp_path)
