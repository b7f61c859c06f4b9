"""Reads an account for core.checks.new_cluster: Describe, Get, List, DryRun and simulation only.

Every part is asked at the same time as the others; what one cannot be asked is an Unknown with the
reason, and costs no other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.config import Config

from cli.answers import answer_or_reason
from cli.aws import Clients, require_login
from cli.preflight.asked import PARTS, AccountClients
from core.model.account import Account, Needs

CLIENT = Config(
    connect_timeout=5,
    read_timeout=20,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=16,
)
THREADS = 12


class Reader:
    """Asks one account in one region, through the clients of a session."""

    def __init__(
        self, needs_of: Callable[[str], Needs], clients: Callable[..., Any], region: str
    ) -> None:
        self._needs_of, self._clients, self._region = needs_of, Clients(clients), region

    def read(self, show: Callable[[str], None]) -> tuple[Needs, Account]:
        """Return what is needed and what the account says; raise without an identity."""
        with require_login("the account"):
            identity = self._clients("sts").get_caller_identity()
        caller, number = str(identity["Arn"]), str(identity["Account"])
        needs = self._needs_of(number)
        asked = AccountClients(needs, caller, number, self._clients)
        found: dict[str, Any] = {}
        with ThreadPoolExecutor(THREADS) as pool:
            futures = {
                part: pool.submit(answer_or_reason, ask, asked) for part, ask in PARTS.items()
            }
            for done, (part, future) in enumerate(futures.items(), 1):
                found[part] = future.result()
                show(f"{done} of {len(PARTS)} parts of account {number} asked")
        return needs, Account(caller=caller, number=number, region=self._region, **found)
