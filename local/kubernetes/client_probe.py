"""Runs the client probe of a pod: `python -m local.kubernetes.client_probe HOSTS`.

The program is the pod's own; what a node would give it, the cluster's names, comes from the twin.
"""

from __future__ import annotations

import sys
from pathlib import Path

from handlers import probe
from local.kubernetes import dns

if __name__ == "__main__":
    dns.install(Path(sys.argv[1]))
    probe.main()
