#!/usr/bin/env bash
# `make compose-test`: the platform of docker-compose.yaml from nothing, under a name and on ports of
# its own, with two of all that scales; the demo in it, which fails unless both engines agree; and
# nothing left behind but the images.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export COMPOSE_PROJECT_NAME=mondrian-ops-test
export AIRFLOW_PORT=0 SPARK_PORT=0 HISTORY_PORT=0 NAMENODE_PORT=0 # any that are free
export AIRFLOW_WORKERS=2 SPARK_WORKERS=2 DATANODES=2
export DEMO_ROWS=${DEMO_ROWS:-100000}

remove() { docker compose --profile '*' down --volumes --remove-orphans --timeout 10; }

report() { # what a person needs to see why it failed
    docker compose ps --all
    docker compose logs --tail 40
}

remove
trap remove EXIT
trap report ERR
docker compose build
docker compose up --detach --wait
docker compose ps
docker compose run --rm demo
