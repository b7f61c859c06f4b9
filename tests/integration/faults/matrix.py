"""All rows of the fault matrix, and the page that shows them.

`python -m tests.integration.faults.matrix` writes docs/reference/faults.md; a unit test holds the
page to the rows.
"""

from pathlib import Path

from tests.integration.faults import bridge, crashes, handler, machines, messages, outages
from tests.integration.faults.table import CASES, TwinRow

__all__ = ["CASES", "TWIN_ROWS", "page"]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "faults.md"
PARTS = {
    "Messages": messages,
    "Functions that die": crashes,
    "APIs that do not answer": outages,
    "Drains and launches": handler,
    "Machines": machines,
    "The explorer's seeds": bridge,
}
TWIN_ROWS = (
    TwinRow(
        "test_rotation_in_place.py::test_a_root_volume_is_replaced_in_place_and_nothing_is_lost",
        "A broker's machine boots from another root volume, under a producer with `acks=all`",
        "Leaders move and the pod stops first; the node takes pods again after its next boot",
        "The same instance and volumes, every acknowledged record read back",
    ),
    TwinRow(
        "test_rotation_in_place.py::"
        "test_a_task_that_fails_costs_a_start_and_the_instance_is_replaced",
        "EC2 fails to replace a broker's root volume, under the same load",
        "The broker comes back on its old root volume; then its instance is replaced",
        "Released, every acknowledged record read back",
    ),
    TwinRow(
        "test_rotation.py::test_a_brokers_node_dies_under_load_and_nothing_is_lost",
        "A broker's node is terminated under a producer with `acks=all`",
        "The replacement comes first, NTH drains, the volume moves",
        "Released, every acknowledged record read back",
    ),
    TwinRow(
        "test_rotation.py::test_two_brokers_whose_nodes_go_at_once_are_out_one_after_the_other",
        "Two brokers' nodes in two zones are terminated in the same second, under the same load",
        "The first holder gives the lease back when its broker is back for good",
        "Both released, never two brokers missing in any ISR",
    ),
    TwinRow(
        "test_faults_on_nodes.py::"
        "test_a_handler_killed_in_a_drain_and_a_frozen_api_server_cost_only_time",
        "NTH is killed in the middle of a drain, and the API server answers no request for ten "
        "seconds",
        "The eviction it had asked for goes on; the gate waits until it can be seen to be safe",
        "Released, the pod told to stop once",
    ),
    TwinRow(
        "test_faults_on_nodes.py::"
        "test_a_broker_is_held_while_kafka_is_silent_and_drained_at_a_spot_warning",
        "λ tick reaches no Kafka broker; then EC2 gives its two-minute warning",
        "Held, with the reason; at the warning drained at once, whatever Kafka says",
        "Released",
    ),
    TwinRow(
        "test_faults_on_nodes.py::"
        "test_certificates_renewed_in_the_middle_of_a_rotation_cost_nothing",
        "The certificates of λ tick and of the producer are renewed while a broker's node drains, "
        "under load",
        "λ tick reads its Secret at every look, so the next look shows the new one",
        "Released, every acknowledged record read back",
    ),
    TwinRow(
        "test_faults_on_nodes.py::"
        "test_the_clients_authority_replaced_in_the_middle_of_a_rotation_costs_nothing",
        "The authority of all clients is replaced while a broker's node drains, under load",
        "Strimzi restarts the brokers one by one to trust both; then every user, the functions "
        "among them, gets a certificate of the new one",
        "Released, every acknowledged record read back",
    ),
    TwinRow(
        "test_departures.py::test_a_dead_machines_broker_comes_back_elsewhere",
        "An instance is stopped without warning",
        "Out of service once EC2 confirms it: pod and volume are free in seconds, not six minutes",
        "Lost, the broker back on another node",
    ),
)
INTRODUCTION = """\
# The fault matrix
The tables say what can go wrong while nodes leave, what Stillwater does about it, and how it \
ends. Every row is a test. After each the cluster is whole: every broker in sync on an instance in \
service, its volume there, the lease free, nothing left over.

While a fault lasts, these rules hold:

- Only the brokers that the fault itself takes are out.
- No drain starts without the lease and a replacement.
- No hook gets two answers.
- No group grows above its maximum.
- No instance ends under a broker.

The rows below run the functions' entry points on the twin's AWS. It has real queues with \
redrive, DynamoDB, EventBridge, Auto Scaling groups with their hooks, instances, volumes. Nodes, \
pods, brokers and NTH are modelled there. The test moves their clock, so that a function can be \
killed after each single effect. The last table's rows run on real nodes, pods, brokers and NTH.
"""


def page() -> str:
    """Return docs/reference/faults.md."""
    parts = [INTRODUCTION]
    for title, module in PARTS.items():
        rows = [c for c in CASES if c.run.__module__ == module.__name__]
        parts.append(_table(title, [(c.fault, c.answer, c.end) for c in rows]))
    twin = [
        (
            f"[{row.fault}](../../tests/integration/{row.test.partition('::')[0]})",
            row.answer,
            row.end,
        )
        for row in TWIN_ROWS
    ]
    parts.append(_table("On real nodes and brokers", twin))
    return "\n".join(parts)


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f"## {title}", "| fault | what happens | end |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
