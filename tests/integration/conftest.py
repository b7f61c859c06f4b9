"""One twin per worker, and on it, for those who ask, one provisioned cluster.

`twin` is what `make demo` starts: AWS, control plane, kubelet, volumes, operator. `foundation` adds
the VPC and the EKS cluster; `cluster` adds everything else, with Kafka's nodes up and in sync.
Tests leave nothing behind that another could stumble over, and take whatever order they come in.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.rotate import Rotations
from core.ground.naming import FOUNDATION, LAYERS, TWIN_ENVIRONMENT
from local import twin as twins
from local.commands.layers import Provisioned, TwinLayers
from local.commands.setup import prepare_tools
from local.demo import spec as demo_spec
from local.place import PLACE_VARIABLE
from local.tools import tool_path
from local.twin import Twin
from tests import alone
from tests.integration import denials
from tests.integration.cluster import Cluster
from tests.integration.interrupting import Interrupting
from tests.integration.nodes import make_subnets

REPOSITORY = Path(__file__).resolve().parents[2]
# A worker of its own has a twin of its own (pytest-xdist).
LOGS = REPOSITORY / "out" / "integration" / os.environ.get("PYTEST_XDIST_WORKER", "all")
# Machines boot in no time: how long they take is not what is tested. They shut down at the
# usual pace, since the kubelet must see that they do.
QUICK = {
    "STILLWATER_BOOT_SECONDS": "0.3",
    "STILLWATER_HEALTH_CHECK_SECONDS": "0.3",
    "STILLWATER_LAUNCH_RETRY_SECONDS": "1",
}
# The process that every report reaches: pytest-xdist's controller, or the only one there is.
COLLECTS = "PYTEST_XDIST_WORKER" not in os.environ
Promtool = Callable[..., None]
CLUSTER = "cluster"
# Resources that a layer of the shared cluster has made when its first run is stopped.
CTRL_C_AFTER = 7


# Before pytest-xdist, which reads the groups in this very hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what needs the shared cluster, and end that with what takes it down.

    The groups keep the cluster on one worker, and a module's fixtures too. The worker that is done
    with its group takes the next in this order.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(
        key=lambda item: (
            _group(item) != CLUSTER,
            item.get_closest_marker("ends_the_cluster") is not None,
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test beside which a role was refused, whatever it asserts itself."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(AssertionError):
            denials.check(item)  # they are this test's, not the next one's
        raise
    denials.check(item)


def pytest_sessionstart() -> None:
    """Begin with an empty list of failures, in the process that collects them."""
    if COLLECTS:
        alone.forget()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what failed, for `python -m tests.alone`; the worker's own process keeps nothing."""
    if report.failed and COLLECTS:
        alone.add(report.nodeid.partition("@")[0])


def _group(item: pytest.Item) -> str:
    """Return what must run on one worker: all on the shared cluster, else a file or a folder."""
    if "layers" in getattr(item, "fixturenames", ()):
        return CLUSTER
    folder = item.path.parent
    return (item.path if folder == Path(__file__).parent else folder).stem


def _say(sentence: str) -> None:
    # Shown with a test that fails.
    sys.stdout.write(f"{sentence}\n")


@pytest.fixture(scope="session")
def tools() -> None:
    """The twin's tools, built or fetched where the cache lacks them."""
    prepare_tools(Console())


@pytest.fixture(scope="session")
def machines() -> Iterator[None]:
    """Quick machines in every twin of the session."""
    with pytest.MonkeyPatch.context() as settings:
        for name, value in QUICK.items():
            settings.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def twin(tools: None, machines: None) -> Iterator[Twin]:
    """The running twin all tests share; its logs stay in out/integration."""
    with twins.running(_say, keep_logs=LOGS) as running:
        yield running


@pytest.fixture(scope="session")
def subnets(twin: Twin) -> Mapping[str, str]:
    """A subnet per zone letter for what tests launch themselves."""
    return make_subnets(twin)


@pytest.fixture(scope="session")
def layers(twin: Twin) -> TwinLayers:
    """The demo's stacks on the shared twin, none of them up yet."""
    return TwinLayers(twin, demo_spec.write(twin.place))


@pytest.fixture(scope="session")
def foundation(layers: TwinLayers) -> Mapping[str, Any]:
    """The outputs of the first layer: the VPC, the EKS cluster, nodes without Kafka."""
    return layers.layers.up_one(FOUNDATION).outputs


@pytest.fixture(scope="session")
def interrupting(request: pytest.FixtureRequest) -> bool:
    """Whether the shared cluster's layers are interrupted: where the long tests run as well."""
    return any(item.get_closest_marker("long") for item in request.session.items)


@pytest.fixture(scope="session")
def provisioned(
    twin: Twin, layers: TwinLayers, foundation: Mapping[str, Any], interrupting: bool
) -> Cluster:
    """The demo's cluster, every layer up and every broker and controller in sync.

    Among the long tests each layer above the first is stopped once by a Ctrl-C and goes on: what
    every test works with is what such an `up` leaves.
    """
    interrupted = Interrupting(twin, demo_spec.ENVIRONMENT, demo_spec.write(twin.place))
    results = []
    for layer in LAYERS:
        if interrupting and layer != FOUNDATION:
            assert interrupted.up(layer, after=CTRL_C_AFTER) is None, "nobody stopped it"
        results.append(layers.layers.up_one(layer))
    shared = Cluster(twin, layers, Provisioned(tuple(results)))
    shared.settle()
    return shared


@pytest.fixture
def cluster(provisioned: Cluster) -> Cluster:
    """The shared cluster, whole: what the test before did to it is over."""
    provisioned.settle()
    return provisioned


@pytest.fixture
def rotations(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Rotations:
    """Rotations of the shared cluster, as a person asks for them."""
    monkeypatch.setenv(PLACE_VARIABLE, str(cluster.twin.place.directory))
    return Rotations.named(TWIN_ENVIRONMENT)


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Prometheus's own checker."""

    def run(*arguments: str | Path) -> None:
        ended = subprocess.run(
            [tool_path("promtool"), *arguments], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return run
