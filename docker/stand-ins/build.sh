#!/usr/bin/env bash
# Base images for trying the compose file where no image registry can be reached: Debian's own
# Python and Redis and the PostgreSQL that Maven Central holds, under the names and tags of the
# official images that docker-compose.yaml and docker/Dockerfile ask for. They honour of the
# official images' settings what the compose file uses, and no more. Not for production.
#
# Needs root, debootstrap and a Docker engine with BuildKit. Certificates that this machine was
# given by hand (/usr/local/share/ca-certificates) are trusted inside, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tag_of() { # tag_of NAME: the tag that the compose file or the Dockerfile asks for
    grep --no-filename --only-matching --max-count=1 "\b$1:[0-9][0-9A-Za-z.-]*" \
        ../../docker-compose.yaml ../Dockerfile | head --lines=1
}

root=$(mktemp --directory)
trap 'rm --recursive --force -- "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    chroot "$root" update-ca-certificates
fi
rm --recursive --force -- "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb
tar --create --directory "$root" . | docker import - mondrian-ops-stand-in/debian:bookworm

postgres=$(tag_of postgres)
version=${postgres#*:}
for name in python postgres redis; do
    docker buildx build --tag "$(tag_of "$name")" --target "$name" \
        --build-arg POSTGRES_VERSION="${version%%-*}.0" .
done
