"""Alerts on the quorum, and KIP-859's: nodes that read the cluster's metadata wrongly.

KIP-859's counters start again at 0 with their process, so any value above 0 counts, not an
increase.
"""

from __future__ import annotations

from infra.alerts.rules.alert import ACTIVE_CONTROLLER, METADATA_ERRORS, Alert, Scope, fewer

# The metadata log gets a record every half second without anything to say: ten minutes of them.
BEHIND_RECORDS = 1200
# Three controllers that are each replaced make three elections, and a failed one a fourth.
ELECTIONS_PER_HOUR = 6


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on the quorum."""
    mine, controllers = scope.kafka, scope.controllers
    end = f"kafka_server_raft_metrics_log_end_offset{mine}"
    # Brokers follow the log as well; a voter counts its active controllers.
    of_voters = f"max by (pod) ({end}) and on (pod) {ACTIVE_CONTROLLER}{mine}"
    return [
        Alert(
            name="KafkaNoActiveController",
            expression=f"(sum({ACTIVE_CONTROLLER}{mine}) or vector(0)) != 1",
            minutes=1,
            severity="critical",
            summary="{{ $value }} controllers are active, and there must be one: nothing is "
            "decided.",
        ),
        Alert(
            name="KafkaControllerMissing",
            expression=fewer(f"{ACTIVE_CONTROLLER}{mine}", controllers),
            minutes=10,
            severity="warning",
            summary=f"{{{{ $value }}}} of {controllers} controllers answer.",
        ),
        Alert(
            name="KafkaControllerBehind",
            expression=f"scalar(max({end})) - ({of_voters}) > {BEHIND_RECORDS}",
            minutes=5,
            severity="warning",
            summary="{{ $labels.pod }} is {{ $value }} records of the metadata log behind: it "
            "votes, and its vote makes no majority.",
        ),
        Alert(
            name="KafkaControllerElections",
            expression="max(increase(kafka_controller_kafkacontroller_newactivecontrollerscount"
            f"{mine}[1h])) > {ELECTIONS_PER_HOUR}",
            minutes=0,
            severity="warning",
            summary="The controllers elected {{ $value | humanize }} leaders within an hour.",
        ),
        Alert(
            name="KafkaBrokerFenced",
            expression=f"max(kafka_controller_kafkacontroller_fencedbrokercount{mine}) > 0",
            minutes=10,
            severity="warning",
            summary="{{ $value }} brokers are fenced: they run, and no partition counts on them.",
        ),
    ]


def metadata(scope: Scope) -> list[Alert]:
    """Return KIP-859's three."""
    names = ("KafkaMetadataLoadError", "KafkaMetadataApplyError", "KafkaControllerMetadataError")
    return [
        Alert(
            name=name,
            expression=f"max by (pod, node) ({counter}{scope.kafka}) > 0",
            minutes=0,
            severity="critical",
            summary="{{ $labels.pod }} met {{ $value }} errors in the metadata log; read its log "
            "before a restart erases the count.",
        )
        for name, counter in zip(names, METADATA_ERRORS.values(), strict=True)
    ]
