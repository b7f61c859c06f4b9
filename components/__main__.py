"""The provider of Stillwater's components, as the engine starts it (PulumiPlugin.yaml)."""

from __future__ import annotations

import sys
from pathlib import Path

# A checkout's own code; elsewhere requirements.txt has installed the package.
CHECKOUT = Path(__file__).resolve().parents[1]
if (CHECKOUT / "stillwater").is_dir():
    sys.path.insert(0, str(CHECKOUT))

from stillwater.components import main  # noqa: E402 - found only now

main()
