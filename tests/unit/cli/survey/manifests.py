"""Objects of Kubernetes as manifests have them."""

from typing import Any

Item = dict[str, Any]


def meta(name: str, namespace: str | None = None, **more: Any) -> Item:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def workload(name: str, namespace: str, image: str, *args: str, **env: Any) -> Item:
    settings = [
        {"name": key, **(value if isinstance(value, dict) else {"value": value})}
        for key, value in env.items()
    ]
    container = {"name": name, "image": image, "env": settings, "args": list(args)}
    labels = {"app": name}
    return {
        "metadata": meta(name, namespace),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def storage_class(name: str, **more: Any) -> Item:
    return {
        "metadata": meta(name),
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        **more,
    }


def service_of(name: str, namespace: str, selector: dict[str, str]) -> Item:
    spec: Item = {"ports": [{"port": 443}]}
    return {
        "metadata": meta(name, namespace),
        "spec": spec | ({"selector": selector} if selector else {}),
    }
