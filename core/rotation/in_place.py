"""Decides whether a node of a run keeps its instance and gets only a new root volume, or why not.

The rule: a new root volume must make of the instance what its group would launch today, as far as
anybody can know before, and whoever owns the machine must not undo it. What is not known speaks
against it. EC2 is asked itself before the broker leaves (core.incidents.in_place).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.rotation.observation import RunObservation
from core.rotation.outdated import Launched
from core.rotation.run_record import NodeTurn

# Of instances without virtualization EC2 replaces no root volume, but for Apple's.
METAL = ".metal"
ROOT_DEVICE, EBS = "root device", "ebs"


def in_place(turn: NodeTurn, launched: Launched | None, seen: RunObservation) -> NodeTurn:
    """Return a turn with the image that its root volume is made of, or why that cannot be."""
    why = next(_against(turn, launched, seen), None)
    if why is not None or launched is None:
        return replace(turn, by_replacement=why or "Nothing is known of its instance.")
    return replace(turn, image_id=launched.wanted.image_id)


def _against(turn: NodeTurn, launched: Launched | None, seen: RunObservation) -> Iterator[str]:
    if seen.claim_of(turn.instance_id) is not None:
        yield "Karpenter owns its machine, and would replace one that differs from its NodeClaim."
    if launched is None:
        yield "Its instance belongs to no group of this cluster with a launch template."
        return
    if launched.managed:
        yield "EKS manages its node group, and would replace an instance that it did not update."
    present, wanted = launched.present, launched.wanted
    if present.image_id is None or wanted.image_id is None:
        yield "Its image, or the one that its group would launch, is not known."
    if present.template_id != wanted.template_id:
        yield "Its group has another launch template than the one that it was launched from."
    if present.instance_type != wanted.instance_type and wanted.instance_type is not None:
        yield f"Its instance type is {present.instance_type}, not {wanted.instance_type}."
    if METAL in (present.instance_type or METAL):
        yield "EC2 replaces root volumes of virtual machines only."
    yield from _of_the_template(launched)
    yield from _of_the_image(launched)


def _of_the_template(launched: Launched) -> Iterator[str]:
    was, would = launched.present.beyond_image, launched.wanted.beyond_image
    if was is None or would is None:
        yield "The version of the launch template that it was launched from cannot be read."
        return
    changed = sorted(name for name in was.keys() | would.keys() if was.get(name) != would.get(name))
    if changed:
        yield f"Its launch template changes more than the image: {', '.join(changed)}."


def _of_the_image(launched: Launched) -> Iterator[str]:
    has, needs = launched.present.traits, launched.wanted.traits
    if has is None or needs is None:
        yield "EC2 tells nothing of its instance, or of the image."
        return
    if has.get(ROOT_DEVICE) != EBS or needs.get(ROOT_DEVICE) != EBS:
        yield "Its root volume, or the image's, is no EBS volume."
    for name in sorted((has.keys() | needs.keys()) - {ROOT_DEVICE}):
        if has.get(name) != needs.get(name):
            yield (
                f"The {name} of the image is {needs.get(name) or 'not known'}, and of its instance "
                f"{has.get(name) or 'not known'}."
            )
