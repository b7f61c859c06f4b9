"""A twin's place: its addresses follow from its number, and no two twins share one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.ground.errors import Conflict, StillwaterError
from local import place as places
from local.place import Place, cache_directory, claim_place, make_cache, taken_places


@pytest.fixture(autouse=True)
def _claims_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the test's claims apart from twins that run on this machine meanwhile."""
    monkeypatch.setattr(places, "CLAIM", f"stillwater-test-{os.getpid()}-{tmp_path.name}-")


def test_a_pod_address_maps_to_the_loopback_address_its_process_listens_on() -> None:
    place = Place(11, Path("/nowhere"))
    assert place.vpc_cidr == "10.11.0.0/16"
    assert place.socket_address("10.11.3.7") == "127.11.3.7"


def test_an_address_of_another_vpc_is_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.12\.3\.7 is not an address of this twin's VPC"):
        Place(11, Path("/nowhere")).socket_address("10.12.3.7")


def test_two_twins_at_once_share_no_address(tmp_path: Path) -> None:
    with claim_place(tmp_path) as first, claim_place(tmp_path) as second:
        addresses = [{p.url(s) for s in places.SERVICES} for p in (first, second)]
        assert first.number != second.number
        assert not addresses[0] & addresses[1]


def test_twins_with_different_caches_share_no_address_either(tmp_path: Path) -> None:
    with claim_place(tmp_path / "mine") as first, claim_place(tmp_path / "yours") as second:
        assert first.number != second.number


def test_a_directory_in_use_is_left_to_whoever_locked_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claim_place(tmp_path) as outside:
        monkeypatch.setattr(places, "CLAIM", f"{places.CLAIM}inside-a-container-")
        with claim_place(tmp_path) as inside:
            assert inside.number != outside.number


def test_a_number_stays_taken_while_a_child_holds_the_claim(tmp_path: Path) -> None:
    with claim_place(tmp_path) as first:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=first.held
        )
    with claim_place(tmp_path) as second:
        assert second.number != first.number
    child.communicate(b"\n")
    with claim_place(tmp_path) as third:
        assert third.number == first.number


def test_when_every_number_is_taken_the_next_twin_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "LAST_NUMBER", places.FIRST_NUMBER)
    with claim_place(tmp_path), pytest.raises(Conflict, match="stop one of the running demos"):
        claim_place(tmp_path).__enter__()


def test_a_failure_inside_the_claim_is_not_taken_for_a_taken_number(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="in use"), claim_place(tmp_path):
        raise OSError(98, "address in use")


def test_a_twin_is_found_while_it_runs_and_not_after(tmp_path: Path) -> None:
    with claim_place(tmp_path) as place:
        assert taken_places(tmp_path) == []  # nobody can use it yet
        place.directory.mkdir(parents=True)
        place.save()
        assert taken_places(tmp_path) == [place]
    assert taken_places(tmp_path) == []


def test_the_cache_is_named_absolutely_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STILLWATER_CACHE", "cache")
    assert cache_directory() == tmp_path / "cache"


def test_a_cache_that_cannot_be_written_is_a_sentence_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STILLWATER_CACHE", str(tmp_path / "file"))
    with pytest.raises(StillwaterError, match="set STILLWATER_CACHE to a directory of yours"):
        make_cache()
