#!/usr/bin/env bash
# What the compose file uses of the official image: POSTGRES_USER, POSTGRES_DB, and
# POSTGRES_PASSWORD_FILE, which root may read; a database made on the first start.
set -euo pipefail

as_postgres() { setpriv --reuid postgres --regid postgres --init-groups -- "$@"; }

if [[ ! -s "$PGDATA/PG_VERSION" ]]; then
    chown postgres: "$PGDATA"
    password=$(mktemp)
    install --owner postgres --mode 0600 "$POSTGRES_PASSWORD_FILE" "$password"
    as_postgres initdb --username="$POSTGRES_USER" --pwfile="$password" --encoding=UTF8 \
        --auth-local=trust --auth-host=trust
    rm "$password"
    # Others than this container's own processes give the password.
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    as_postgres postgres --single -D "$PGDATA" postgres <<<"CREATE DATABASE \"$POSTGRES_DB\""
fi
exec setpriv --reuid postgres --regid postgres --init-groups -- "$@" -D "$PGDATA" \
    -c listen_addresses='*' -c unix_socket_directories=/tmp
