"""Alerts on partitions: who leads them, who follows, and who no longer does."""

from __future__ import annotations

from infra.alerts.rules.alert import Alert, Scope


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on partitions and their replicas."""
    mine = scope.kafka
    return [
        Alert(
            name="KafkaOfflinePartitions",
            expression=f"max(kafka_controller_kafkacontroller_offlinepartitionscount{mine}) > 0",
            minutes=1,
            severity="critical",
            summary="{{ $value }} partitions have no leader: they are neither read nor written.",
        ),
        Alert(
            name="KafkaUnderMinIsr",
            expression=f"sum(kafka_server_replicamanager_underminisrpartitioncount{mine}) > 0",
            minutes=1,
            severity="critical",
            summary="{{ $value }} partitions have too few replicas in sync to be written.",
        ),
        Alert(
            name="KafkaUnderReplicated",
            expression=f"sum(kafka_server_replicamanager_underreplicatedpartitions{mine}) > 0",
            # A broker that refills after a rotation is what this project does all day.
            minutes=60,
            severity="warning",
            summary="{{ $value }} partitions lack a replica for an hour.",
        ),
        Alert(
            name="KafkaReplicaFetcherFailed",
            expression="max by (pod, node) "
            f"(kafka_server_replicafetchermanager_failedpartitionscount{mine}) > 0",
            minutes=5,
            severity="critical",
            summary="{{ $labels.pod }} gave up on following {{ $value }} partitions; it does not "
            "try again by itself.",
        ),
        Alert(
            name="KafkaUncleanLeaderElection",
            expression="sum(increase("
            f"kafka_controller_controllerstats_uncleanleaderelectionspersec_total{mine}[15m])) > 0",
            minutes=0,
            severity="critical",
            summary="A replica out of sync became leader: acknowledged records may be lost.",
        ),
    ]
