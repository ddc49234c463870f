"""Where the pages and Airflow's own are, whatever names are in them."""

from __future__ import annotations

import pytest

from mondrian_ops import links


def test_a_release_has_an_address_in_the_frame_of_airflow():
    assert links.release_path("ab") == "/plugin/anonymization/mondrian_ops/releases/ab"
    below = "/air/plugin/anonymization/air/mondrian_ops/releases/ab"
    assert links.release_path("ab", "/air") == below
    assert "/../" not in links.release_path("/../x")


def test_what_waits_is_answered_on_the_page_of_its_task():
    action = links.action_path("a/b", "m+?1", "g.wrap_up", 0, "/air")
    assert action == "/air/dags/a%2Fb/runs/m%2B%3F1/tasks/g.wrap_up/mapped/0/required_actions"
    action = links.action_path("d", "r", "wrap_up", -1)
    assert action == "/dags/d/runs/r/tasks/wrap_up/required_actions"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("webhdfs://nn:9870/out/a b", "http://nn:9870/explorer.html#/out/a%20b"),
        ("swebhdfs://nn.example.org/out", "https://nn.example.org/explorer.html#/out"),
        ('webhdfs://nn/x?y#z"<', "http://nn/explorer.html#/x%3Fy%23z%22%3C"),
        ("hdfs://nn:8020/out", ""),
        ("s3://bucket/out", ""),
        ("/data/out", ""),
        ("file:///data/out", ""),
        ("javascript:alert(1)//webhdfs://nn/x", ""),
        ("webhdfs://user@nn/x", ""),
        ("webhdfs:///x", ""),
    ],
)
def test_files_have_a_web_address_where_their_store_has_one(location, url):
    assert links.files_url(location) == url


def test_a_task_has_the_address_of_what_it_is_mapped_to():
    run = "/air/dags/a%2Fb/runs/m%2B%3F1"
    assert links.run_path("a/b", "m+?1", "/air") == run
    assert links.task_path("a/b", "m+?1", "g.t", -1, "/air") == f"{run}/tasks/g.t"
    assert links.task_path("a/b", "m+?1", "g.t", 0, "/air") == f"{run}/tasks/g.t/mapped/0"
    assert links.task_path("a/b", "m+?1", "g.t", None, "/air") == f"{run}/tasks/g.t/mapped"
