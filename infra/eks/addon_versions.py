"""Which version of each EKS add-on a cluster gets: ours, or the one its spec names.

Apart from the components, so that a spec is checked without starting the engine's library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from infra.versions import ADDONS, ADDONS_KUBERNETES

VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")
# The one add-on whose version must be that of the control plane.
FOLLOWS_KUBERNETES = "kube-proxy"


def problems(kubernetes_version: str, chosen: Mapping[str, str]) -> list[str]:
    """Return a sentence for each add-on that is not ours, or that no version is known of."""
    found = [
        f"kubernetes.addon_versions names {addon}, which is no add-on of this cluster: it has "
        f"{', '.join(sorted(ADDONS))}."
        for addon in sorted(chosen.keys() - ADDONS.keys())
    ]
    found += [
        f"kubernetes.addon_versions has {addon} at {asked}, and EKS's versions read like "
        f"{ADDONS[addon]}; take one of `aws eks describe-addon-versions --addon-name {addon} "
        f"--kubernetes-version {kubernetes_version}`."
        for addon, asked in sorted(chosen.items())
        if addon in ADDONS and VERSION.fullmatch(asked) is None
    ]
    if kubernetes_version != ADDONS_KUBERNETES and FOLLOWS_KUBERNETES not in chosen:
        found.append(_unknown(kubernetes_version))
    return found


def version(addon: str, chosen: Mapping[str, str]) -> str:
    """Return the version of an add-on: the spec's, else the one this release was made with."""
    return chosen[addon] if addon in chosen else ADDONS[addon]


def _unknown(kubernetes_version: str) -> str:
    return (
        f"kubernetes.version is {kubernetes_version}, but the version of {FOLLOWS_KUBERNETES} "
        f"known here is for {ADDONS_KUBERNETES}: name one in kubernetes.addon_versions, from `aws "
        f"eks describe-addon-versions --addon-name {FOLLOWS_KUBERNETES} "
        f"--kubernetes-version {kubernetes_version}`."
    )
