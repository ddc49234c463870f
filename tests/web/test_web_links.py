"""Where the pages and Airflow's own are, whatever names are in them."""

from __future__ import annotations

from mondrian_ops.web import links


def test_a_release_has_an_address_in_the_frame_of_airflow():
    assert links.release_path("ab") == "/plugin/anonymization/mondrian_ops/releases/ab"
    below = "/air/plugin/anonymization/air/mondrian_ops/releases/ab"
    assert links.release_path("ab", "/air") == below
    assert "/../" not in links.release_path("/../x")


def test_a_task_has_the_address_of_what_it_is_mapped_to():
    run = "/air/dags/a%2Fb/runs/m%2B%3F1"
    assert links.run_path("a/b", "m+?1", "/air") == run
    assert links.task_path("a/b", "m+?1", "g.t", -1, "/air") == f"{run}/tasks/g.t"
    assert links.task_path("a/b", "m+?1", "g.t", 0, "/air") == f"{run}/tasks/g.t/mapped/0"
    assert links.task_path("a/b", "m+?1", "g.t", None, "/air") == f"{run}/tasks/g.t/mapped"
