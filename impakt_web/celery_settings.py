"""How tasks travel. Every value that is not Celery's default says why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

DATA_DIR = Path(
    os.environ.get("IMPAKT_DATA", Path(__file__).resolve().parent.parent / "data")
).resolve()
# Embedded: a 0700 unix socket in the data folder, started by `impakt up`.
broker_url = os.environ.get("IMPAKT_BROKER_URL", f"redis+socket://{DATA_DIR}/broker/broker.sock")
# Results live in the database as states of their objects; the broker keeps none.
task_ignore_result = True
broker_connection_retry_on_startup = True
broker_transport_options: dict[str, Any] = {
    # Above the longest load run (a day): a shorter one redelivers a task that still runs.
    "visibility_timeout": 36 * 3600,
    # kombu looks for lost messages about every 100 s by default; this many seconds here.
    "unacked_restore_interval": 5,
    "socket_keepalive": not broker_url.startswith("redis+socket"),
}
task_acks_late = True
# A task lost with its worker is not put back by Celery: the lease decides.
task_reject_on_worker_lost = False
worker_prefetch_multiplier = 1
worker_cancel_long_running_tasks_on_connection_loss = False
worker_hijack_root_logger = False
task_serializer = "json"
accept_content = ["json"]
timezone = "UTC"
task_default_queue = "default"
# Load generation has workers of its own with one slot: two runs at once on one
# host would measure each other.
task_routes = {"runners.tasks.run_load": {"queue": "loadgen"}}
beat_schedule = {
    "sweep-leases": {"task": "records.tasks.sweep_leases", "schedule": 5.0},
}
