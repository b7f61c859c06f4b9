"""Which nodes are not what their group would launch today, and why: what triggers a rotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What an instance was launched as, or would be; None is what is not known of it."""

    template_id: str | None = None
    template_version: str | None = None
    configuration: str | None = None  # a launch configuration's name
    image_id: str | None = None
    instance_type: str | None = None
    # What a launch template says beyond its image, by name; None: its version cannot be read.
    beyond_image: Mapping[str, str] | None = None
    # What an instance and the image of its root volume must have in common, by name.
    traits: Mapping[str, str] | None = None


# An image that a launch template names by a parameter of Systems Manager's.
_BY_PARAMETER = "resolve:"


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


def why_unknown(launched: Launched | None) -> str | None:
    """Say why nobody can tell whether a node differs from a new one; None: somebody can."""
    if launched is None:
        return "no group of this cluster has its instance, or says what it launches"
    image = launched.wanted.image_id
    if image is not None and image.startswith(_BY_PARAMETER):
        return f"its launch template names its image by a parameter ({image}), which was not read"
    return None


def _behind(kubelet: str, server: str) -> bool:
    return _minor(kubelet) is not None and _minor(kubelet) != _minor(server)


def _same_image(launched: Launched) -> bool:
    """Say whether a new instance is known to be of the same image; one unknown may be another."""
    present, wanted = launched.present.image_id, launched.wanted.image_id
    return present is not None and present == wanted


def _changes(launched: Launched, kubelet: str, server: str) -> Iterator[str]:
    present, wanted = launched.present, launched.wanted
    image = None if (wanted.image_id or "").startswith(_BY_PARAMETER) else wanted.image_id
    if _behind(kubelet, server) and not _same_image(launched):
        yield f"kubelet {kubelet} under Kubernetes {server}"
    pairs = (
        ("image", present.image_id, image),
        ("instance type", present.instance_type, wanted.instance_type),
    )
    for name, is_, would in pairs:
        if is_ is not None and would is not None and is_ != would:
            yield f"{name} {is_} instead of {would}"
    was_by, would_by = _launcher(present), _launcher(wanted)
    if would_by is not None and was_by != would_by:
        kind, name = was_by or ("no launch template or configuration", "")
        other = would_by[1] if would_by[0] == kind else " ".join(would_by)
        yield f"{kind} {name}".rstrip() + f" instead of {other}"
    # Versions of two templates say nothing about each other.
    was, new = present.template_version, wanted.template_version
    same = present.template_id == wanted.template_id
    if same and was is not None and new is not None and was != new and not _says_the_same(launched):
        yield f"launch template version {was} instead of {new}"


def _launcher(build: Build) -> tuple[str, str] | None:
    """Return what an instance is launched by, in words and by its name; None: nothing is named."""
    if build.configuration is not None:
        return "launch configuration", build.configuration
    return None if build.template_id is None else ("launch template", build.template_id)


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
                f"launch template still names the same image: give it a newer one first (in "
                f"stacks of ours by `stillwater up`)."
            )


def _minor(version: str) -> tuple[str, str] | None:
    """Return major and minor.

    >>> _minor("v1.36.1-eks-0a1b2c3")
    ('1', '36')
    """
    parts = version.lstrip("v").split(".")
    return (parts[0], parts[1].rstrip("+")) if len(parts) > 1 else None
