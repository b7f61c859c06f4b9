"""How far tests walk whose every run only tries a part: once each time, further each night."""

import os

EFFORT = int(os.environ.get("STILLWATER_EFFORT", "1"))
