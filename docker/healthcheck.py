#!/usr/bin/env -S python3 -I
"""Ask a server how it is: healthcheck URL [PATH=VALUE …].

Exit status 0 if the URL answers without an error, and with JSON in which each path
(``scheduler.status``, ``beans.0.State``) has its value; ``*`` stands for any item of a list. JSON
inside a text is read.
"""

import json
import sys
import urllib.request

TIMEOUT_S = 10


def main(url, *expectations):
    """Raises SystemExit with what is wrong, if something is."""
    try:
        answer = fetch(url)
        unmet = [each for each in expectations if not is_met(json.loads(answer), each)]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{url}: {error}") from error
    if unmet:
        raise SystemExit(f"{url}: not {', '.join(unmet)}")


def fetch(url):
    """What the URL answers. Raises OSError where it does not, or answers with an error."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=TIMEOUT_S) as answer:
        return answer.read()


def is_met(answer, expectation):
    """Whether one of the values at the path is the one expected."""
    path, _, expected = expectation.partition("=")
    return expected in map(str, values_at(answer, path.split(".")))


def values_at(value, keys):
    """The values at a path; none where it leads nowhere."""
    if not keys:
        return [value]
    if isinstance(value, str):
        value = json.loads(value)
    key, *rest = keys
    if isinstance(value, dict):
        return values_at(value[key], rest) if key in value else []
    items = value if key == "*" else value[int(key) : int(key) + 1]
    return [each for item in items for each in values_at(item, rest)]


if __name__ == "__main__":
    main(*sys.argv[1:])
