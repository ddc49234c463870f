"""Access: the pages as Airflow mounts them, behind its own middleware and auth manager."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from fastapi.testclient import TestClient

from mondrian_ops.catalogue import Catalogue, Place
from mondrian_ops.web.pages import create
from releases import entry_id, keep
from tiers import one_in

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

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

# The blue team's release is number 1, the red team's is number 2, number 3 does not exist.
OURS, THEIRS, ABSENT = entry_id(1), entry_id(2), entry_id(3)
PATHS = (
    "",
    "releases",
    f"releases/{OURS}",
    f"releases/{OURS}/series",
    f"releases/{OURS}/report.json",
    f"releases/{OURS}/report.html",
    f"releases/{ABSENT}",
    f"compare?id={OURS}&id={OURS}",
    "run?dag_id=blue_dag&run_id=r",
    "static/pages.css",
    "static/report.css",
    "nowhere/at/all",
)

Visitor = Callable[..., TestClient]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory) -> Iterator[Visitor]:
    """Airflow's API server over a database of its own; a client for each user."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("access")
        path = str(root / "catalogue.db")
        for name, value in {**SETTINGS, "AIRFLOW__MONDRIAN_OPS__CATALOGUE": path}.items():
            patch.setenv(name, value)
        patch.setenv(
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(root / "passwords.json")
        )
        catalogue = Catalogue(Place.of(path))
        keep(catalogue, 1, dag_id="blue_dag", run_id="r")
        keep(catalogue, 2, dag_id="red_dag", run_id="r")
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
    """A user who may read the blue team's DAGs."""
    return airflow("vera", "viewer", ("blue",))


@pytest.mark.parametrize("path", PATHS)
def test_without_a_user_every_path_is_refused(airflow, path):
    answer = airflow().get(path, follow_redirects=False)
    assert answer.status_code == 401
    assert "blue" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_every_route_requires_a_user(tmp_path):
    from airflow.api_fastapi.core_api.security import get_user

    app = create(lambda: Catalogue(Place.of(str(tmp_path / "catalogue.db"))))
    assert len(app.routes) == 10
    for route in app.routes:
        assert get_user in [each.call for each in route.dependant.dependencies], route.path


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", ""])
def test_a_malformed_token_is_refused(airflow, token):
    client = airflow()
    assert client.get("releases", headers={"Authorization": f"Bearer {token}"}).status_code in (
        401,
        403,
    )
    client.cookies.set("_token", token)
    assert client.get("releases").status_code in (401, 403)


def test_a_forged_token_is_refused(airflow):
    head, body, signature = _token("rolf", "viewer", ("red",)).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = json.dumps({**claims, "teams": ["blue"], "role": "admin"}).encode()
    body = base64.urlsafe_b64encode(forged).rstrip(b"=").decode()
    client = airflow()
    client.cookies.set("_token", f"{head}.{body}.{signature}")
    assert client.get(f"releases/{OURS}").status_code in (401, 403)


def test_a_cookie_or_a_token_identifies_the_user(airflow, vera):
    assert vera.get(f"releases/{OURS}").status_code == 200
    token = {"Authorization": f"Bearer {_token('vera', 'viewer', ('blue',))}"}
    assert airflow().get(f"releases/{OURS}", headers=token).status_code == 200


def test_releases_of_other_teams_are_not_listed(vera):
    listed = vera.get("releases").text
    assert OURS in listed
    assert THEIRS not in listed
    assert "red_dag" not in listed


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("releases/ID", 404),
        ("releases/ID/report.json", 404),
        ("releases/ID/report.html", 404),
        (f"compare?id={OURS}&id=ID", 404),
        (f"compare?id=ID&id={OURS}", 404),
        ("compare?id=ID&id=ID", 404),
        ("run?dag_id=DAG&run_id=r", 200),
        ("releases?dag_id=DAG", 200),
        ("releases?dag_id=DAG&run_id=r&dataset=out&state=published", 200),
    ],
)
def test_a_release_of_another_team_is_answered_as_one_that_does_not_exist(
    airflow, path, status, method
):
    """Status, body and headers are equal, so that nobody can tell the two cases apart."""
    for user in (("vera", "viewer", ("blue",)), ("nora", None)):
        client = airflow(*user)
        answers = [
            client.request(
                method, path.replace("ID", its).replace("DAG", dag), follow_redirects=False
            )
            for its, dag in ((THEIRS, "red_dag"), (ABSENT, "nil_dag"))
        ]
        seen = [(each.status_code, each.content, each.headers.multi_items()) for each in answers]
        assert seen[0] == seen[1]
        assert "out/people" not in answers[0].text
        if user[0] == "vera":
            assert answers[0].status_code == status


def test_an_admin_sees_all(airflow):
    ada = airflow("ada", "admin")
    assert {OURS, THEIRS} <= set(ada.get("releases").text.replace('"', "/").split("/"))
    assert ada.get(f"compare?id={OURS}&id={THEIRS}").status_code == 200


def test_a_user_without_a_role_sees_nothing(airflow):
    nobody = airflow("nora", None)
    assert OURS not in nobody.get("releases").text
    assert nobody.get(f"releases/{OURS}").status_code == 404


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
        "releases/key",
        "releases/..%2fkey",
        "releases/../key/report.json",
        "static/..%2f..%2fapp.py",
    ],
)
def test_a_path_that_does_not_exist_is_not_found(vera, path):
    answer = vera.get(path)
    assert answer.status_code == 404
    assert "passwords" not in answer.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", one_in(2, ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]))
def test_nothing_can_be_changed(vera, method, path):
    answer = vera.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "user",
    [
        ("vera", "viewer", ("blue",)),
        *(pytest.param(user, marks=pytest.mark.soak) for user in (("nora", None), ())),
    ],
)
def test_a_head_has_the_headers_of_the_page(airflow, user, path):
    client = airflow(*user)
    page = client.get(path, follow_redirects=False)
    head = client.head(path, follow_redirects=False)
    assert head.status_code == page.status_code
    assert head.headers.multi_items() == page.headers.multi_items()
    assert head.content == b""


@pytest.fixture
def served(vera) -> Iterator[http.client.HTTPConnection]:
    """A connection to a server of the pages."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(vera.app, lifespan="off", log_level="error"))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        running.start()
        connection = http.client.HTTPConnection(*listening.getsockname())
        yield connection
        connection.close()
        server.should_exit = True
        running.join()


def test_a_server_sends_no_body_with_a_head(vera, served):
    """One connection serves all requests: a body would be read as the next answer."""
    cookie = {"Cookie": f"_token={vera.cookies['_token']}"}
    for path in PATHS:
        answers = []
        for method in ("HEAD", "GET", "HEAD"):
            served.request(method, f"/mondrian_ops/{path}", headers=cookie)
            answer = served.getresponse()
            length = int(answer.headers["Content-Length"])
            answers.append((answer.status, length, len(answer.read())))
        status, length, _ = answers[1]
        assert answers == [(status, length, 0), (status, length, length), (status, length, 0)]


def test_airflow_shows_the_pages_where_people_look_for_them(airflow):
    ada = airflow("ada", "admin")
    plugins = ada.get("http://testserver/api/v2/plugins").json()["plugins"]
    (plugin,) = [each for each in plugins if each["name"] == "mondrian_ops"]
    views = {each["destination"]: each for each in plugin["external_views"]}
    assert views.keys() == {"nav", "dag", "dag_run"}
    assert views["nav"]["name"] == "Anonymization"
    for view in views.values():
        path = view["href"].format(DAG_ID="blue_dag", RUN_ID="r")
        for link in (path, view["icon"], view["icon_dark_mode"]):
            assert ada.get(f"http://testserver/{link}").status_code == 200
