"""Kafka's own tool, as an outsider would try it: reads the brokers' configuration."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

TOOL_SECONDS = 120
# Whoever is refused waits for its answer no longer than this.
TIMEOUTS = "security.protocol=SSL\ndefault.api.timeout.ms=10000\nrequest.timeout.ms=5000\n"


def kafkas_tool(java: Sequence[str], options: str, where: Sequence[str]) -> str:
    """Return what kafka-configs.sh says when it is sent `where` with these client options."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "client.properties")
        file.write_text(TIMEOUTS + options)
        ended = subprocess.run(
            [
                *(*java, "kafka.admin.ConfigCommand", *where, "--command-config", str(file)),
                *("--describe", "--entity-type", "brokers", "--entity-default"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TOOL_SECONDS,
        )
    return ended.stdout
