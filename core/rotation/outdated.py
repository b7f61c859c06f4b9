"""Which nodes are not what their group would launch today, and why: what triggers a rotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What an instance was launched as, or would be; None is what is not known of it."""

    template_id: str | None = None
    template_version: str | None = None
    image_id: str | None = None
    instance_type: str | None = None
    # What a launch template says beyond its image, by name; None: its version cannot be read.
    beyond_image: Mapping[str, str] | None = None
    # What an instance and the image of its root volume must have in common, by name.
    traits: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """An instance as it is, and as its group would launch it now."""

    present: Build
    wanted: Build
    # EKS or Karpenter replaces what differs from its template, and would call this drift.
    managed: bool = False


def why_outdated(launched: Launched, kubelet: str, server: str) -> str | None:
    """Say in what a node differs from a new one; None: a new one would be the same.

    A kubelet of another minor version than the control plane's is a reason of its own, unless a new
    instance would be of the very same image, and have that kubelet too (`stale_template`).
    """
    return ", ".join(_changes(launched, kubelet, server)) or None


def _behind(kubelet: str, server: str) -> bool:
    return _minor(kubelet) is not None and _minor(kubelet) != _minor(server)


def _same_image(launched: Launched) -> bool:
    """Say whether a new instance is known to be of the same image; one unknown may be another."""
    present, wanted = launched.present.image_id, launched.wanted.image_id
    return present is not None and present == wanted


def _changes(launched: Launched, kubelet: str, server: str) -> Iterator[str]:
    present, wanted = launched.present, launched.wanted
    if _behind(kubelet, server) and not _same_image(launched):
        yield f"kubelet {kubelet} under Kubernetes {server}"
    pairs = (
        ("image", present.image_id, wanted.image_id),
        ("instance type", present.instance_type, wanted.instance_type),
        ("launch template", present.template_id, wanted.template_id),
    )
    for name, is_, would in pairs:
        if is_ is not None and would is not None and is_ != would:
            yield f"{name} {is_} instead of {would}"
    # Versions of two templates say nothing about each other.
    was, new = present.template_version, wanted.template_version
    same = present.template_id == wanted.template_id
    if same and was is not None and new is not None and was != new and not _says_the_same(launched):
        yield f"launch template version {was} instead of {new}"


def _says_the_same(launched: Launched) -> bool:
    """Say whether another version of a template would launch the very same: a root volume that was
    replaced in place has the image of the newer one."""
    was, new = launched.present.beyond_image, launched.wanted.beyond_image
    return was is not None and was == new and _same_image(launched)


def stale_template(
    launched: Mapping[str, Launched], kubelets: Mapping[str, str], server: str
) -> Iterator[str]:
    """Yield the instances that no rotation would bring to the control plane's version."""
    for instance_id, kubelet in sorted(kubelets.items()):
        found = launched.get(instance_id)
        if found is None or not _behind(kubelet, server):
            continue
        if _same_image(found):
            yield (
                f"Instance {instance_id} has kubelet {kubelet} under Kubernetes {server}, and its "
                f"launch template still names the same image: `pulumi up` on the kafka stack first."
            )


def _minor(version: str) -> tuple[str, str] | None:
    """Return major and minor.

    >>> _minor("v1.36.1-eks-0a1b2c3")
    ('1', '36')
    """
    parts = version.lstrip("v").split(".")
    return (parts[0], parts[1].rstrip("+")) if len(parts) > 1 else None
