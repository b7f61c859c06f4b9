"""An interrupted `up`, again and again, goes on where it stopped, and so does a destroy.

On the first layer, whose resources are every other's ground. The layers above it are interrupted
where the shared cluster is brought up and taken down for long tests (conftest.py,
test_environment.py).
"""

from collections.abc import Iterator

import pytest
import yaml

from cli.engine.events import LayerResult
from core.ground.naming import FOUNDATION
from local.demo import spec as demo_spec
from local.twin import Twin
from tests.integration import leftovers
from tests.integration.interrupting import Interrupting

pytestmark = pytest.mark.integration
ENVIRONMENT = "halfway"
# Ctrl-C after so many resources that a run has made.
EVERY = 10
# A foundation has some seventy resources; what is under way at Ctrl-C is still made.
MOST_RUNS = 12


@pytest.fixture
def halfway(twin: Twin) -> Iterator[Interrupting]:
    described = demo_spec.spec(twin.place) | {
        "environment": ENVIRONMENT,
        "network": {"vpc_cidr": f"10.{twin.place.number}.160.0/20"},
    }
    path = twin.place.path("halfway.yaml")
    path.write_text(yaml.safe_dump(described))
    made = Interrupting(twin, ENVIRONMENT, path, layers=(FOUNDATION,))
    yield made
    made.layers.destroy()


@pytest.mark.long
def test_an_up_interrupted_every_tenth_resource_ends_and_a_destroy_leaves_nothing(
    twin: Twin, halfway: Interrupting
) -> None:
    stored = set(leftovers.in_store(twin))
    runs: list[LayerResult | None] = []
    while not runs or runs[-1] is None:
        assert len(runs) < MOST_RUNS, "it gets nowhere"
        runs.append(halfway.up(FOUNDATION, EVERY))
    assert len(runs) > 2
    assert leftovers.in_aws(twin, ENVIRONMENT)
    assert halfway.destroy(FOUNDATION, EVERY) is None
    assert leftovers.in_aws(twin, ENVIRONMENT)
    halfway.layers.destroy()
    assert leftovers.in_aws(twin, ENVIRONMENT) == []
    assert set(leftovers.in_store(twin)) == stored
