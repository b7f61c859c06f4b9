"""Stands in for the AWS command line, as far as the tutorial types it.

Every API's command is read by botocore's own model of the operation, so that what is typed on the
twin is what AWS's command would send. What that command has beside the APIs is below `OWN`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import jmespath
import yaml
from botocore import xform_name

from handlers.adapters.eks import eks_token
from local.place import PLACE_VARIABLE

SERVICE_OF = {"s3api": "s3"}
GLOBAL = ("query", "output", "region")
KUBECONFIG = Path("~/.kube/config")
FOLLOW_SECONDS = 0.3


def main(words: Sequence[str]) -> int:
    """Run one command and print what it answers."""
    command = " ".join(words[:2])
    if command in OWN:
        return OWN[command](words[2:])
    service, operation, *rest = words
    client = boto3.client(SERVICE_OF.get(service, service))
    method = operation.replace("-", "_")
    model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method])
    asked, shown = request(rest, model.input_shape)
    if client.can_paginate(method):
        answer = client.get_paginator(method).paginate(**asked).build_full_result()
    else:
        answer = getattr(client, method)(**asked)
    answer.pop("ResponseMetadata", None)
    found = jmespath.search(shown["query"], answer) if "query" in shown else answer
    if shown.get("output") == "text":
        sys.stdout.write("".join(f"{line}\n" for line in text(found)))
    elif found:
        sys.stdout.write(f"{json.dumps(found, indent=4, default=str)}\n")
    return 0


def options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each option's name with its values."""
    name, values = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            values.append(word)
            continue
        if name:
            yield name, values
        name, values = word.removeprefix("--"), []


def request(words: Sequence[str], shape: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the operation is asked, and how its answer is shown."""
    members = {xform_name(name, "-"): (name, each) for name, each in shape.members.items()}
    asked: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for option, values in options(words):
        if option in GLOBAL:
            shown[option] = values[0]
        elif option in members:
            name, member = members[option]
            asked[name] = value(values, member)
        else:
            asked[members[option.removeprefix("no-")][0]] = False
    return asked, shown


def value(values: Sequence[str], shape: Any) -> Any:
    """Return an option's value as its shape has it."""
    if shape.type_name == "boolean" and not values:
        return True
    if shape.type_name == "list":
        return [value([each], shape.member) for each in values]
    if shape.type_name == "structure":
        return structure(values[0], shape)
    return {"boolean": lambda said: said == "true", "integer": int}.get(shape.type_name, str)(
        values[0]
    )


def structure(said: str, shape: Any) -> dict[str, Any]:
    """Return the shorthand Name=x,Values=a,b as a structure."""
    parts: dict[str, list[str]] = {}
    for piece in said.split(","):
        key, equals, first = piece.partition("=")
        if equals:
            parts[key] = [first]
        else:
            parts[list(parts)[-1]].append(piece)
    return {key: value(values, shape.members[key]) for key, values in parts.items()}


def text(found: Any) -> list[str]:
    """Return an answer as `--output text` has it: a line, its values by tabs."""
    if isinstance(found, list):
        return ["\t".join(map(str, found))] if found else []
    return ["None" if found is None else str(found)]


def make_bucket(words: Sequence[str]) -> int:
    """Make a bucket: `s3 mb s3://NAME`."""
    bucket = words[0].removeprefix("s3://")
    boto3.client("s3").create_bucket(Bucket=bucket)
    sys.stdout.write(f"make_bucket: {bucket}\n")
    return 0


def update_kubeconfig(words: Sequence[str]) -> int:
    """Write how kubectl logs in to a cluster: by `aws eks get-token`."""
    given = {name: values[0] for name, values in options(words)}
    name = given["name"]
    cluster = boto3.client("eks").describe_cluster(name=name)["cluster"]
    get_token = ["--region", given["region"], "eks", "get-token", "--cluster-name", name]
    execute = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": get_token,
    }
    server = {
        "server": cluster["endpoint"],
        "certificate-authority-data": cluster["certificateAuthority"]["data"],
    }
    arn = cluster["arn"]
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": arn,
        "clusters": [{"name": arn, "cluster": server}],
        "contexts": [{"name": arn, "context": {"cluster": arn, "user": arn}}],
        "users": [{"name": arn, "user": {"exec": execute}}],
    }
    path = KUBECONFIG.expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(written))
    sys.stdout.write(f"Added new context {arn} to {path}\n")
    return 0


def get_token(words: Sequence[str]) -> int:
    """Print a token, as kubectl asks for it."""
    given = {name: values[0] for name, values in options(words)}
    made = eks_token(given["cluster-name"], boto3.Session().region_name)
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "spec": {},
        "status": {"token": made},
    }
    sys.stdout.write(json.dumps(credential))
    return 0


def tail(words: Sequence[str]) -> int:
    """Follow a function's log, which the twin keeps as a file, until Ctrl-C."""
    function = words[0].removeprefix("/aws/lambda/")
    log = Path(os.environ[PLACE_VARIABLE], "logs", f"lambda-{function}.log")
    try:
        while not log.exists():  # until it is first called
            time.sleep(FOLLOW_SECONDS)
        with log.open(encoding="utf-8", errors="replace") as lines:
            while True:
                line = lines.readline()
                sys.stdout.write(line)
                sys.stdout.flush()
                if not line:
                    time.sleep(FOLLOW_SECONDS)
    except KeyboardInterrupt:
        return 130


OWN: Mapping[str, Callable[[Sequence[str]], int]] = {
    "s3 mb": make_bucket,
    "eks update-kubeconfig": update_kubeconfig,
    "eks get-token": get_token,
    "logs tail": tail,
}

if __name__ == "__main__":
    given = sys.argv[1:]
    if given[0] == "--region":
        # The one option that AWS's own kubeconfig puts first.
        os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = given[1]
        given = given[2:]
    sys.exit(main([re.sub(r"\s*\n\s*", " ", word) for word in given]))
