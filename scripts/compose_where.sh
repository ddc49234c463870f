#!/usr/bin/env bash
# Say where the pages of docker-compose.yaml's servers are: compose_where.sh SERVICE, where SERVICE
# is the one that answers for Airflow.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

where() { # where NAME SERVICE PORT
    local address
    address=$(docker compose port "$2" "$3" 2>/dev/null) || return 0
    printf '%-16s http://%s\n' "$1" "$address"
}

where Airflow "$1" 8080
echo "                 user admin, password $(docker compose exec -T "$1" cat /opt/airflow/login/admin_password)"
where Spark spark-master 8080
where 'Spark History' spark-history 18080
where HDFS namenode 9870
