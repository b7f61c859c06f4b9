"""Functions of the shared cluster that are told otherwise than their stack told them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from core.settings import codec
from core.settings.codec import SETTINGS
from tests.integration.cluster import Cluster


def variables_of(cluster: Cluster, function: str) -> dict[str, str]:
    """Return a deployed function's variables."""
    described = cluster.twin.aws("lambda").get_function_configuration(FunctionName=function)
    return dict(described["Environment"]["Variables"])


@contextmanager
def retell(
    cluster: Cluster,
    function: str,
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    **fields: Any,
) -> Iterator[None]:
    """Change fields of a function's settings, and other variables of its, for the block."""
    before = variables_of(cluster, function)
    settings = codec.write({**json.loads(before[SETTINGS]), **codec.document(fields)})

    def tell(those: Mapping[str, str]) -> None:
        cluster.twin.aws("lambda").update_function_configuration(
            FunctionName=function, Environment={"Variables": dict(those)}
        )

    tell({**before, SETTINGS: settings, **variables})
    try:
        yield
    finally:
        tell(before)
