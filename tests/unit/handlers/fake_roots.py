"""Root volumes in memory: EC2's tasks, each under its incident's key, moved on by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.incidents.observation import RootTask
from handlers.adapters.templates import RootVolumes


@dataclass
class FakeRoots(RootVolumes):
    """EC2, as far as root volumes go."""

    tasks: dict[str, RootTask] = field(default_factory=dict)  # by incident
    asked: list[tuple[str, str, bool]] = field(default_factory=list)
    refuses_trial: str = ""  # its words
    refuses: str = ""

    def task_of(self, instance_id: str, incident_id: str) -> RootTask | None:
        return self.tasks.get(incident_id)

    def replace(
        self, instance_id: str, image_id: str, incident_id: str, *, trial: bool
    ) -> str | None:
        self.asked.append((incident_id, image_id, trial))
        if trial:
            return self.refuses_trial or None
        if self.refuses:
            return self.refuses
        self.tasks.setdefault(incident_id, RootTask(f"replacevol-{len(self.tasks)}", "pending"))
        return None

    def go(self, incident_id: str, state: str) -> None:
        self.tasks[incident_id] = RootTask(self.tasks[incident_id].id, state)
