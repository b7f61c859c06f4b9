"""Where the NLB's proxy forwards to, by what the health checks say."""

from pathlib import Path

from local.nlb import PAUSED, Backends, NlbListener, Proxy, backends, paused_ports
from local.place import Place
from tests.every_case import every_case

ONE, TWO = ("10.11.1.5", 9094), ("10.11.2.5", 9094)


@every_case(
    ("states", "open_to"),
    [
        (["healthy", "healthy"], {ONE, TWO}),
        (["healthy", "unhealthy"], {ONE}),
        (["healthy", "initial"], {ONE}),
        # It fails open, but never to a draining one.
        (["unhealthy", "initial"], {ONE, TWO}),
        (["draining"], set()),
        ([], set()),
    ],
)
def test_new_connections_go_to_healthy_targets_or_to_all(
    states: list[str], open_to: set[tuple[str, int]]
) -> None:
    targets = [
        {"id": address, "port": port, "state": state}
        for (address, port), state in zip((ONE, TWO), states, strict=False)
    ]
    assert set(backends(targets).open_to) == open_to


def test_targets_take_turns() -> None:
    listener = NlbListener(9094, backends=Backends((ONE, TWO), frozenset({ONE, TWO})))
    assert [listener.choose() for _ in range(4)] == [ONE, TWO, ONE, TWO]


def test_without_a_target_nobody_is_chosen() -> None:
    assert NlbListener(9094).choose() is None


def test_a_paused_port_carries_nothing_until_it_is_open_again(tmp_path: Path) -> None:
    proxy = Proxy(Place(11, tmp_path))
    proxy.listeners = {9094: NlbListener(9094), 9095: NlbListener(9095)}

    def carries() -> dict[int, bool]:
        proxy.pause(paused_ports(proxy.place))
        return {port: listener.open.is_set() for port, listener in proxy.listeners.items()}

    assert carries() == {9094: True, 9095: True}
    tmp_path.joinpath(PAUSED).write_text("9095\n")
    assert carries() == {9094: True, 9095: False}
    tmp_path.joinpath(PAUSED).unlink()
    assert carries() == {9094: True, 9095: True}
