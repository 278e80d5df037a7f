"""Tasks of the application around the rooms: doors only."""

from __future__ import annotations

from celery import Task, shared_task

_LOOK_AGAIN_S = 1.0


@shared_task(bind=True, name="impakt_web.tasks.advance_example")
def advance_example(self: Task, slug: str, retry: bool) -> None:
    """Take the worked example's next step, and come again until there is none."""
    from impakt_web.example import Step, advance

    step = advance(slug, retry=retry)
    if step == Step.DONE:
        return
    # What this life has launched is not launched again when it fails.
    again = retry and step == Step.WAITING
    self.apply_async(args=(slug, again), countdown=_LOOK_AGAIN_S)
