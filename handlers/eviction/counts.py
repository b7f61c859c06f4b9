"""Counts answers and how long they took, as text that Prometheus reads."""

from __future__ import annotations

import threading
from collections import Counter

from core.gate import GateAnswer

BOUNDS_SECONDS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 8.0)
ANSWERS = "stillwater_gate_answers_total"
SECONDS = "stillwater_gate_answer_seconds"


class Counts:
    """Since this replica started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[bool] = Counter()
        self._within: Counter[float] = Counter()
        self._sum = 0.0

    def add(self, answer: GateAnswer, seconds: float) -> None:
        with self._lock:
            self._answers[answer.allowed] += 1
            self._sum += seconds
            for bound in BOUNDS_SECONDS:
                self._within[bound] += seconds <= bound

    def text(self) -> str:
        """Return every count in the text format of Prometheus."""
        with self._lock:
            total = sum(self._answers.values())
            lines = [f"# TYPE {ANSWERS} counter"]
            lines += [
                f'{ANSWERS}{{answer="{said}"}} {self._answers[allowed]}'
                for allowed, said in ((True, "allowed"), (False, "denied"))
            ]
            lines.append(f"# TYPE {SECONDS} histogram")
            lines += [
                f'{SECONDS}_bucket{{le="{bound}"}} {self._within[bound]}'
                for bound in BOUNDS_SECONDS
            ]
            lines += [
                f'{SECONDS}_bucket{{le="+Inf"}} {total}',
                f"{SECONDS}_sum {self._sum}",
                f"{SECONDS}_count {total}",
            ]
        return "\n".join(lines) + "\n"
