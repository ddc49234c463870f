"""Who gets in: the pages as Airflow mounts them, behind its own middleware and auth manager."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from mondrian_ops.storage import Archive
from mondrian_ops.web.app import create
from releases import entry, entry_id, keep

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"

SETTINGS = {
    "AIRFLOW__API__BASE_URL": "http://testserver/",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the tests, " * 4,
    "AIRFLOW__CORE__AUTH_MANAGER": (
        "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
    ),
    "AIRFLOW__CORE__MULTI_TEAM": "True",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ada:admin,vera:viewer:blue,rolf:viewer:red",
}

# Of three teams' releases: that of the blue one is number 1, that of the red one number 2.
OURS, THEIRS, ABSENT = entry_id(1), entry_id(2), entry_id(3)
PATHS = (
    "",
    "releases",
    f"releases/{OURS}",
    f"releases/{OURS}/report.json",
    f"releases/{OURS}/report.html",
    f"releases/{ABSENT}",
    f"compare?id={OURS}&id={OURS}",
    "run?dag_id=blue_dag&run_id=r",
    "static/pages.css",
    "static/echarts.min.js",
    "nowhere/at/all",
)

Visitor = Callable[..., TestClient]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory) -> Iterator[Visitor]:
    """Airflow's API server over a database of its own; a client for each user."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("access")
        reports = str(root / "reports")
        for name, value in {**SETTINGS, "AIRFLOW__MONDRIAN_OPS__REPORTS": reports}.items():
            patch.setenv(name, value)
        patch.setenv(
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(root / "passwords.json")
        )
        archive = Archive(reports)
        keep(archive, 1, dag_id="blue_dag", run_id="r")
        keep(archive, 2, dag_id="red_dag", run_id="r")
        app = _airflow_app(patch)

        def visitor(name: str = "", role: str | None = None, teams: tuple[str, ...] = ()):
            client = TestClient(app, base_url="http://testserver/mondrian_ops/")
            if name:
                client.cookies.set("_token", _token(name, role, teams))
            return client

        yield visitor


def _airflow_app(patch: pytest.MonkeyPatch):
    from airflow import plugins_manager, settings
    from airflow.api_fastapi import app as airflow_app
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.team import Team
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    patch.setattr(settings, "PLUGINS_FOLDER", str(PLUGINS))
    plugins_manager._get_plugins.cache_clear()
    initdb()
    with create_session() as session:
        for colour in ("blue", "red"):
            bundle = DagBundleModel(name=colour)
            bundle.teams = [Team(name=colour)]
            session.add(bundle)
            session.flush()
            session.add(DagModel(dag_id=f"{colour}_dag", bundle_name=colour))
    airflow_app.purge_cached_app()
    return airflow_app.create_app(apps="core")


def _token(name: str, role: str | None, teams: tuple[str, ...]) -> str:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    user = SimpleAuthManagerUser(username=name, role=role, teams=list(teams))
    return get_auth_manager().generate_jwt(user)


@pytest.fixture
def vera(airflow) -> TestClient:
    """Who may read what the blue team's DAGs made."""
    return airflow("vera", "viewer", ("blue",))


@pytest.mark.parametrize("path", PATHS)
def test_nobody_gets_in_without_being_somebody(airflow, path):
    answer = airflow().get(path, follow_redirects=False)
    assert answer.status_code == 401
    assert "blue" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_every_route_asks_who_somebody_is(tmp_path):
    from airflow.api_fastapi.core_api.security import get_user

    app = create(Archive(str(tmp_path)))
    assert len(app.routes) == 9
    for route in app.routes:
        assert get_user in [each.call for each in route.dependant.dependencies], route.path


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", ""])
def test_a_token_that_is_none_does_not_help(airflow, token):
    client = airflow()
    assert client.get("releases", headers={"Authorization": f"Bearer {token}"}).status_code in (
        401,
        403,
    )
    client.cookies.set("_token", token)
    assert client.get("releases").status_code in (401, 403)


def test_a_token_that_somebody_changed_does_not_help(airflow):
    head, body, signature = _token("rolf", "viewer", ("red",)).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = json.dumps({**claims, "teams": ["blue"], "role": "admin"}).encode()
    body = base64.urlsafe_b64encode(forged).rstrip(b"=").decode()
    client = airflow()
    client.cookies.set("_token", f"{head}.{body}.{signature}")
    assert client.get(f"releases/{OURS}").status_code in (401, 403)


def test_a_cookie_or_a_token_lets_somebody_in(airflow, vera):
    assert vera.get(f"releases/{OURS}").status_code == 200
    token = {"Authorization": f"Bearer {_token('vera', 'viewer', ('blue',))}"}
    assert airflow().get(f"releases/{OURS}", headers=token).status_code == 200


def test_what_others_made_is_not_listed(vera):
    listed = vera.get("releases").text
    assert OURS in listed
    assert THEIRS not in listed
    assert "red_dag" not in listed


@pytest.mark.parametrize(
    "path",
    [
        f"releases/{THEIRS}",
        f"releases/{THEIRS}/report.json",
        f"releases/{THEIRS}/report.html",
        f"compare?id={OURS}&id={THEIRS}",
        f"compare?id={THEIRS}&id={OURS}",
        "run?dag_id=red_dag&run_id=r",
        "releases?dag_id=red_dag",
    ],
)
def test_what_others_made_is_forbidden(vera, path):
    answer = vera.get(path, follow_redirects=False)
    assert answer.status_code == 403
    assert "out/people" not in answer.text


def test_an_admin_sees_all(airflow):
    ada = airflow("ada", "admin")
    assert {OURS, THEIRS} <= set(ada.get("releases").text.replace('"', "/").split("/"))
    assert ada.get(f"compare?id={OURS}&id={THEIRS}").status_code == 200


def test_somebody_without_a_role_sees_nothing(airflow):
    nobody = airflow("nora", None)
    assert OURS not in nobody.get("releases").text
    assert nobody.get(f"releases/{OURS}").status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        f"releases/{ABSENT}",
        f"releases/{ABSENT}/report.json",
        f"compare?id={OURS}&id={ABSENT}",
        "releases/x",
        "releases/..%2f..%2fpasswords.json",
        "releases/%2e%2e/%2e%2e/report.json",
        "releases/" + "A" * 32,
        "static/..%2f..%2fapp.py",
    ],
)
def test_what_is_not_there_is_not_found(vera, path):
    answer = vera.get(path)
    assert answer.status_code == 404
    assert "passwords" not in answer.text


def test_a_report_that_leads_out_of_the_archive_is_not_shown(airflow, vera, tmp_path):
    from mondrian_ops.hooks import settings

    archive = Archive(settings.reports())
    archive.keep(entry(7, dag_id="blue_dag", files=["_report.json"]), {"_report.json": b"{}"})
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    kept = Path(archive.url) / "reports" / entry_id(7) / "_report.json"
    kept.unlink()
    kept.symlink_to(secret)
    for path in ("", "/report.json", "/report.html"):
        answer = vera.get(f"releases/{entry_id(7)}{path}")
        assert answer.status_code == 404
        assert "secret" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(vera, method):
    assert vera.request(method, f"releases/{OURS}").status_code == 405


def test_airflow_shows_the_pages_where_people_look_for_them(airflow):
    ada = airflow("ada", "admin")
    told = ada.get("http://testserver/api/v2/plugins").json()["plugins"]
    (plugin,) = [each for each in told if each["name"] == "mondrian_ops"]
    views = {each["destination"]: each for each in plugin["external_views"]}
    assert views.keys() == {"nav", "dag", "dag_run"}
    assert views["nav"]["name"] == "Anonymization"
    for view in views.values():
        path = view["href"].format(DAG_ID="blue_dag", RUN_ID="r")
        for link in (path, view["icon"], view["icon_dark_mode"]):
            assert ada.get(f"http://testserver/{link}").status_code == 200
