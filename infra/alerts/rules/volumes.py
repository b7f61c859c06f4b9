"""Alerts on volumes: full, filling, lost, slower than what is asked of them.

Room is the kubelet's figure; what was asked beyond a limit is the EBS driver's, which tells the
volume's limit from its instance's: raising the volume where the instance is the limit buys nothing.
"""

from __future__ import annotations

from infra.alerts.rules.alert import Alert, Scope

FULL_SHARE = 0.15
FORECAST_SECONDS = 24 * 3600
SOON_SECONDS = 6 * 3600
# Of the time; a moment of it is what burst is for.
THROTTLED_SHARE = 0.1


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on volumes."""
    where = scope.volumes()
    left = f"kubelet_volume_stats_available_bytes{where}"
    share = f"{left} / kubelet_volume_stats_capacity_bytes{where}"
    is_unbound = scope.volumes(',phase!="Bound"')
    unbound = f"kube_persistentvolumeclaim_status_phase{is_unbound}"
    is_resizing = scope.volumes(',status="true",condition=~"Resizing|FileSystemResizePending"')
    resizing = f"kube_persistentvolumeclaim_status_condition{is_resizing}"
    mine = scope.kafka
    return [
        Alert(
            name="KafkaLogDirectoryOffline",
            expression="max by (pod, node) "
            f"(kafka_log_logmanager_offlinelogdirectorycount{mine}) > 0",
            minutes=0,
            severity="critical",
            summary="{{ $labels.pod }} lost {{ $value }} of its volumes.",
        ),
        Alert(
            name="KafkaVolumeNearlyFull",
            expression=f"{share} < {FULL_SHARE}",
            minutes=5,
            severity="warning",
            summary="{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} "
            "left.",
        ),
        Alert(
            name="KafkaVolumeFills",
            # A volume grows four times a day at most, so a day is when to know.
            expression=f"predict_linear({left}[6h], {FORECAST_SECONDS}) < 0 and {share} < 0.5",
            minutes=60,
            severity="warning",
            summary="{{ $labels.persistentvolumeclaim }} is full within a day if it fills as it "
            "did for six hours.",
        ),
        Alert(
            name="KafkaVolumeFullSoon",
            # A modification may take hours before EC2 starts another.
            expression=f"predict_linear({left}[30m], {SOON_SECONDS}) < 0 and {share} < 0.3",
            minutes=10,
            severity="critical",
            summary="{{ $labels.persistentvolumeclaim }} is full within six hours if it fills as "
            "it did for half an hour.",
        ),
        Alert(
            name="KafkaVolumeResizeStuck",
            expression=f"max by (persistentvolumeclaim, condition) ({resizing}) == 1",
            minutes=60,
            severity="warning",
            summary="{{ $labels.persistentvolumeclaim }} has been {{ $labels.condition }} for an "
            "hour.",
        ),
        Alert(
            name="KafkaVolumeClaimUnbound",
            expression=f"max by (persistentvolumeclaim, phase) ({unbound}) == 1",
            minutes=15,
            severity="critical",
            summary="{{ $labels.persistentvolumeclaim }} is {{ $labels.phase }}: its broker has "
            "no volume.",
        ),
        Alert(
            name="KafkaVolumeThrottled",
            expression=f"{_asked_beyond(scope, 'aws_ebs_csi_exceeded')} > {THROTTLED_SHARE}",
            minutes=15,
            severity="warning",
            summary="{{ $labels.name }} is asked for more than the volume gives, "
            "{{ $value | humanizePercentage }} of the time.",
        ),
        Alert(
            name="KafkaInstanceThrottled",
            expression=f"{_asked_beyond(scope, 'aws_ebs_csi_ec2_exceeded')} > {THROTTLED_SHARE}",
            minutes=15,
            severity="warning",
            summary="The instance under {{ $labels.name }} is asked for more than it gives its "
            "volumes, {{ $value | humanizePercentage }} of the time.",
        ),
    ]


def _asked_beyond(scope: Scope, counters: str) -> str:
    """Return the share of time something was asked beyond a limit, by the claim's name."""
    asked = (
        f"sum by (volume_id) (rate({counters}_iops_seconds_total[5m]) "
        f"+ rate({counters}_tp_seconds_total[5m]))"
    )
    volumes = (
        "label_replace(max by (persistentvolume, csi_volume_handle) (kube_persistentvolume_info{"
        'csi_driver="ebs.csi.aws.com"}), "volume_id", "$1", "csi_volume_handle", "(.+)")'
    )
    claims = (
        "max by (persistentvolume, name) (kube_persistentvolume_claim_ref{"
        f'claim_namespace="{scope.namespace}",name=~"{scope.claims}"}})'
    )
    return (
        f"({asked} * on (volume_id) group_left (persistentvolume) {volumes}) "
        f"* on (persistentvolume) group_left (name) {claims}"
    )
