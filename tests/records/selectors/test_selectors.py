"""What is read stays within its project, filtered and sorted by what was asked, in few queries."""

from __future__ import annotations

import inspect

import pytest
from django.contrib.auth.models import AnonymousUser

from records.errors import FieldError
from records.models import Project, Run
from records.selectors import registry
from records.selectors.configuration import configuration_diff
from records.selectors.project import member_list, project_get, projects_for
from records.selectors.run import (
    SORT_KEYS,
    run_comparisons,
    run_evidence,
    run_get,
    run_judgment_sets,
    run_list,
    run_record,
)
from records.services import access, campaign, comparison
from records.services.alert import alert_raise
from tests import factories


@pytest.fixture
def full(project, alice, tmp_path):
    """A project with one of nearly everything."""
    return _fill(project, alice, tmp_path)


def _fill(project, owner, tmp_path) -> Run:
    folder = factories.sample_folder(tmp_path, name=project.slug, run_id=project.slug)
    run = factories.make_run(project, folder=folder)
    other = factories.make_run(project)
    comparison.comparison_create(
        project=project, user=owner, title="t", baselines=[run], candidates=[other], workload=None
    )
    campaign.campaign_launch(
        project=project, user=owner, workload=run.workload, endpoints=[run.endpoint],
        trace=run.trace, replicates=1, policies={}, title="t", seed=1,
    )  # fmt: skip
    alert_raise(project=project, kind="run_failed", title="t", run=run)
    access.token_create(project=project, user=owner, name="ci")
    return run


def test_members_see_their_projects_and_nobody_else_s(project, alice, bob, mallory):
    """Owner and teammate see the project, the outsider only her own, nobody none."""
    assert list(projects_for(alice)) == [project] == list(projects_for(bob))
    assert project not in projects_for(mallory)
    assert projects_for(mallory).count() == 1
    for nobody in (None, AnonymousUser()):
        assert not projects_for(nobody).exists()
    assert project_get(user=bob, slug=project.slug) == project
    with pytest.raises(Project.DoesNotExist):
        project_get(user=mallory, slug=project.slug)
    assert [m.user for m in member_list(project)] == [alice, bob]


def test_a_run_is_got_by_members_only(project, bob, mallory):
    """The right number is not enough: who asks has to be a member."""
    run = factories.make_run(project)
    assert run_get(user=bob, project=project, number=run.number) == run
    for user, where in ((mallory, project), (bob, projects_for(mallory).get())):
        with pytest.raises(Run.DoesNotExist):
            run_get(user=user, project=where, number=run.number)


LISTS = {
    name: function
    for name, function in inspect.getmembers(registry, inspect.isfunction)
    if name.endswith("_list")
}


def test_every_list_and_get_stays_in_its_project(full, mallory, tmp_path):
    """No row of one project comes out of a list of another, and no get reaches across."""
    mine, hers = full.project, projects_for(mallory).get()
    _fill(hers, mallory, tmp_path)
    assert len(LISTS) >= 11
    empty = {"decision_list", "upload_list"}
    for name, rows_of in LISTS.items():
        rows = list(rows_of(mine))
        assert bool(rows) != (name in empty), name
        assert {row.project_id for row in rows} <= {mine.pk}, name
        get = getattr(registry, name.replace("_list", "_get"), None)
        for row in rows if get else ():
            key = row.number if "number" in inspect.signature(get).parameters else row.pk
            assert get(mine, key) == row
            reached = None
            try:
                reached = get(hers, key)
            except type(row).DoesNotExist:
                continue
            # Numbers count up in each project: hers may have the same one, but its own.
            assert reached.project_id == hers.pk, name


def test_lists_take_few_queries_however_long_they_are(full, django_assert_max_num_queries):
    """One query for the rows, at most two more for what belongs to them."""
    for _ in range(3):
        factories.make_run(full.project)
    for rows_of in LISTS.values():
        with django_assert_max_num_queries(3):
            for row in rows_of(full.project):
                str(row)
    with django_assert_max_num_queries(1):
        for run in run_list(project=full.project):
            str((run.workload, run.configuration, run.endpoint, run.trace, run.campaign))
            str((run.owner, run.project))


def test_a_run_s_own_things(full):
    """Record, evidence, judgments and comparisons of the run and of no other."""
    assert run_record(full) == full.measurement_records.get()
    assert {e.run_id for e in run_evidence(full)} == {full.pk}
    assert run_judgment_sets(full).count() == 1
    assert run_comparisons(full).count() == 1
    bare = factories.make_run(full.project)
    assert run_record(bare) is None
    assert not run_comparisons(bare).exists()


@pytest.fixture
def history(project):
    """Three runs: R-1 of static, R-2 and R-3 of continuous; R-2 invalid, R-3 stopped."""
    static = factories.make_endpoint(
        project, configuration=factories.make_configuration(project, "static", batching="static")
    )
    runs = [factories.make_run(project, endpoint=static, title="the first")]
    runs += [factories.make_run(project) for _ in range(2)]
    Run.objects.filter(pk=runs[0].pk).update(valid=True, accepted=5, ttft_p95_s=0.2)
    Run.objects.filter(pk=runs[1].pk).update(valid=False, accepted=9, ttft_p95_s=0.1)
    Run.objects.filter(pk=runs[2].pk).update(state="stopped")
    return runs


def _numbers(project, **filters) -> list[int]:
    return [run.number for run in run_list(project=project, filters=filters)]


def test_runs_are_filtered_by_what_was_asked(project, history):
    """Each filter alone, two together, and empty ones not at all."""
    first, second, third = history
    assert _numbers(project) == [3, 2, 1]
    assert _numbers(project, configuration=first.configuration_id) == [1]
    assert _numbers(project, workload=str(first.workload_id)) == [3, 2, 1]
    assert _numbers(project, endpoint=second.endpoint_id) == [2]
    assert _numbers(project, trace=third.trace_id, state="stopped") == [3]
    assert _numbers(project, kind="external") == []
    assert _numbers(project, valid="true") == [1]
    assert _numbers(project, valid="false") == [2]
    assert _numbers(project, valid="unknown") == [3]
    assert _numbers(project, campaign=1) == []
    assert _numbers(project, state="", valid=None, q="") == [3, 2, 1]


def test_runs_are_found_by_number_title_and_names(project, history):
    """R-2, 2, part of a title, part of a configuration's name."""
    assert _numbers(project, q="R-2") == [2]
    assert _numbers(project, q="2") == [2]
    assert _numbers(project, q="FIRST") == [1]
    assert _numbers(project, q="static") == [1]
    assert _numbers(project, q="R-²") == []


def test_runs_are_sorted_and_unknown_comes_last_either_way(project, history):
    """R-3 has no figures: it is neither the smallest nor the largest."""
    assert _numbers(project, sort="accepted") == [1, 2, 3]
    assert _numbers(project, sort="-accepted") == [2, 1, 3]
    assert _numbers(project, sort="ttft_p95") == [2, 1, 3]
    assert _numbers(project, sort="number") == [1, 2, 3]
    for key in SORT_KEYS:
        assert sorted(_numbers(project, sort=key)) == [1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sort": "owner__password"},
        {"state": "done"},
        {"valid": "maybe"},
        {"workload": "1 OR 1"},
        {"campaign": "9" * 30},
        {"kind": "x"},
    ],
)
def test_a_wrong_filter_is_named(project, wrong):
    """Columns that nobody offered cannot be sorted by, and words must be known."""
    with pytest.raises(FieldError, match=next(iter(wrong))):
        run_list(project=project, filters=wrong)


def test_a_diff_names_each_field_and_tells_absent_from_null(project):
    """runtime.version differs, kernels is only in a, precision null is not absent."""
    a = factories.make_configuration(
        project, "a", runtime={"name": "r", "version": "1"}, kernels="k", precision=None
    )
    b = factories.make_configuration(project, "b", runtime={"name": "r", "version": "2"})
    rows = {row.field: row for row in configuration_diff(a, b)}
    differing = [name for name, row in rows.items() if row.differs]
    assert differing == ["kernels", "precision", "runtime.version"]
    assert (rows["runtime.version"].a, rows["runtime.version"].b) == ("1", "2")
    assert (rows["precision"].in_a, rows["precision"].in_b) == (True, False)
    assert not rows["model"].differs
