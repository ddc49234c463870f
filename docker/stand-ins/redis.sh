#!/usr/bin/env bash
# As the official image: redis-server never runs as root.
set -euo pipefail
if [[ "$1" == redis-server && "$(id --user)" == 0 ]]; then
    chown redis: .
    exec setpriv --reuid redis --regid redis --init-groups -- "$@"
fi
exec "$@"
