"""What a survey asks of AWS: calls as botocore's models have them, and no right beyond the list."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from botocore import xform_name
from botocore.session import get_session
from botocore.validate import ParamValidator

from cli.survey import command
from core.checks.rights import READS
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.further_changes import of_ecr
from tests.unit.cli.survey.machines import managed, own_groups
from tests.unit.cli.survey.platforms import by_configuration, short, template
from tests.unit.cli.survey.test_around import behind, told
from tests.unit.cli.survey.worlds import World, bare

IAM = {
    "elbv2": "elasticloadbalancing",
    "service-quotas": "servicequotas",
}


@cache
def operations(service: str) -> dict[str, Any]:
    model = get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


class Recorded:
    """A client whose calls are held against botocore's model of its service."""

    def __init__(self, world: World, service: str, asked: set[str]) -> None:
        self._world, self._service, self._asked = world, service, asked

    def __getattr__(self, call: str) -> Callable[..., Any]:
        return self._checked(call, getattr(self._world, call))

    def can_paginate(self, call: str) -> bool:
        return self._world.can_paginate(call)

    def get_paginator(self, call: str) -> Any:
        paginate = self._checked(call, self._world.get_paginator(call).paginate)
        return type("Pages", (), {"paginate": staticmethod(paginate)})

    def _checked(self, call: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def ask(**given: Any) -> Any:
            operation = operations(self._service)[call]
            report = ParamValidator().validate(given, operation.input_shape)
            assert not report.has_errors(), report.generate_report()
            prefix = IAM.get(self._service, self._service)
            self._asked.add(f"{prefix}:{operation.name}")
            return answer(**given)

        return ask


def _asked_of(world: World) -> set[str]:
    asked: set[str] = set()
    command.read(world, lambda service, _: Recorded(world, service, asked), None, CLUSTER)
    return asked


def test_a_survey_calls_what_its_rights_list_and_nothing_else() -> None:
    world = own_groups(bare())
    world.queue_attributes["Policy"] = {"Statement": []}
    behind(**{"load_balancing.cross_zone.enabled": "use_load_balancer_configuration"})(world)
    told("issue")(world)
    before_templates = own_groups(bare())
    by_configuration()(before_templates)
    short(world)
    parts = {"ImageId": "ami-1", "SecurityGroupIds": ["sg-1"], "KeyName": "ops"}
    encrypted = {"BlockDeviceMappings": [{"Ebs": {"KmsKeyId": "alias/mine"}}]}
    template(**parts, **encrypted, IamInstanceProfile={"Name": "nodes"})(world)
    world.around.cluster["accessConfig"] = {"authenticationMode": "API"}
    world.roles, world.entries = {"nodes": "shop-nodes"}, ["shop-nodes"]
    world.profiles["web"] = []
    of_ecr("ImageNotFoundException")(world)
    world.routes["a"].pop()
    asked = (_asked_of(each) for each in (world, managed(bare()), before_templates))
    assert set().union(*asked) == set(READS)


def test_every_listing_is_read_over_all_of_its_pages() -> None:
    from botocore.exceptions import DataNotFoundError  # noqa: PLC0415

    paged = {
        "ec2": (
            *("DescribeSubnets", "DescribeVolumes", "DescribeVolumesModifications"),
            *("DescribeInstances", "DescribeVolumeStatus", "DescribeSnapshots", "DescribeImages"),
            *("DescribeRouteTables", "DescribeNatGateways", "DescribeVpcEndpoints"),
            "DescribeSecurityGroups",
        ),
        "eks": (
            "DescribeClusterVersions",
            "ListInsights",
            "ListFargateProfiles",
            "ListAccessEntries",
        ),
        "kms": ("ListGrants",),
        "ecr": ("DescribePullThroughCacheRules",),
        "service-quotas": ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"),
        "arc-zonal-shift": ("ListManagedResources",),
        "health": ("DescribeEvents", "DescribeAffectedEntities"),
    }
    for service, calls in paged.items():
        try:
            known = get_session().get_paginator_model(service)
        except DataNotFoundError:
            raise AssertionError(service) from None
        for call in calls:
            known.get_paginator(call)
