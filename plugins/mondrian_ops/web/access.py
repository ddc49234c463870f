"""Who may see what: as for Airflow's own pages, a release for those who may read its DAG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.models.dag import DagModel

__all__ = ["readable_dags"]


def readable_dags(user: BaseUser, dag_ids: Iterable[str]) -> set[str]:
    """Those of the DAGs that the user may read."""
    asked = set(dag_ids)
    teams = DagModel.get_dag_id_to_team_name_mapping(sorted(asked))
    of_team: dict[str | None, set[str]] = defaultdict(set)
    for dag_id in asked:
        of_team[teams.get(dag_id)].add(dag_id)
    manager = get_auth_manager()
    return {
        dag_id
        for team, ids in of_team.items()
        for dag_id in manager.filter_authorized_dag_ids(dag_ids=ids, user=user, team_name=team)
    }
