"""The Celery application: queues, recovery and the schedule.

A run is recovered by its own lease in the database, never by redelivery: the
broker may deliver a task twice, and `records.services.run.run_claim` lets one win.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "impakt_web.settings")

app = Celery("impakt")
# Celery's "current app" belongs to the thread that made it; without a default,
# other threads (the web's) would send to an application without our settings.
app.set_default()
app.config_from_object("impakt_web.celery_settings")
app.autodiscover_tasks(["records", "runners", "impakt_web"])
