"""An HDFS of Hadoop's own jars: two NameNodes, of which one is active, and two DataNodes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local_airflow import CHECKOUT, free_port
from servers.java import java_home
from servers.processes import START_S, Process, ServerError, wait_until

BLOCK = 1 << 20
SUPERUSER = "hdfs"

_POM = CHECKOUT / "docker" / "hadoop" / "pom.xml"
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
_LOG4J = """
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %c{1}: %m%n
"""
_REQUEST = re.compile(r"webhdfs: \S+ \w+ /webhdfs/v1(\S+?)\?(\S+) \d+$", re.MULTILINE)


class Hdfs:
    """A context manager: two NameNodes and two DataNodes, blocks of 1 MiB, two replicas of each.

    The NameNodes share their edits in a folder; one is active, the other stands by. Each DataNode
    has a loopback address of its own, as elsewhere it has a host of its own. One that is killed is
    known to be dead only some 20 seconds later: until then the NameNode goes on naming it. The
    superuser is ``hdfs``; everybody may write to ``/``.

    :param folder: for configuration, logs and blocks.

    Attributes: ``servers`` (the NameNodes' HTTP addresses, the active one first).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = [(free_port(), free_port()) for _ in range(2)]  # HTTP, RPC
        self._processes: dict[str, Process] = {}
        self._data_ports: dict[int, int] = {}
        self._active = 0

    @property
    def servers(self) -> list[str]:
        """The NameNodes' HTTP addresses, the active one first."""
        order = (self._active, 1 - self._active)
        return [f"http://127.0.0.1:{self._ports[number][0]}" for number in order]

    def __enter__(self) -> Hdfs:
        for name in ("logs", "edits"):
            (self._folder / name).mkdir(parents=True)
        try:
            self._format()
            for number in (0, 1):
                self._start_name_node(number)
            self._admin("-transitionToActive", "nn0")
            for number in (0, 1):
                self._start_data_node(number)
            self._wait_for_data_nodes()
        except BaseException:
            self._stop()
            raise
        self.call("SETPERMISSION", "/", method="PUT", permission="777")
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def url(self, path: str) -> str:
        """The ``webhdfs://`` URL of an absolute path, at the active NameNode."""
        return f"webhdfs://{urllib.parse.urlsplit(self.servers[0]).netloc}{path}"

    def call(
        self, op: str, path: str, *, method: str = "GET", user: str = SUPERUSER, **parameters: str
    ) -> Any:
        """One WebHDFS operation at the active NameNode, by nothing of this project."""
        query = urllib.parse.urlencode({"op": op, "user.name": user, **parameters})
        url = f"{self.servers[0]}/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method), timeout=START_S
        ) as answer:
            return json.loads(answer.read() or b"null")

    def blocks(self, path: str) -> list[dict[str, Any]]:
        """The blocks of a file, each with its offset, length and hosts."""
        return self.call("GETFILEBLOCKLOCATIONS", path)["BlockLocations"]["BlockLocation"]

    def data_node_host(self, number: int) -> str:
        """The address of a DataNode, as it stands in the NameNode's redirections."""
        return f"127.0.0.{number + 2}"

    def kill_data_node(self, number: int) -> None:
        """SIGKILL a DataNode; the NameNode does not know yet."""
        self._processes.pop(f"datanode-{number}").kill()

    def restart_data_nodes(self) -> None:
        """Start the DataNodes again that were killed; returns once the NameNode knows both."""
        for number in (0, 1):
            if f"datanode-{number}" not in self._processes:
                self._start_data_node(number)
        self._wait_for_data_nodes()

    def fail_over(self) -> None:
        """Make the other NameNode the active one."""
        self._admin("-transitionToStandby", f"nn{self._active}")
        self._active = 1 - self._active
        self._admin("-transitionToActive", f"nn{self._active}")

    def requests(self, op: str) -> list[tuple[int, dict[str, str]]]:
        """What the DataNodes answered over HTTP: number of the DataNode; path and parameters."""
        found = None
        while found != (found := self._logged(op)):
            time.sleep(0.3)  # a DataNode logs an answer after handing it over
        return found

    def _logged(self, op: str) -> list[tuple[int, dict[str, str]]]:
        found = []
        for number in (0, 1):
            log = self._folder / "logs" / f"datanode-{number}.log"
            for path, query in _REQUEST.findall(log.read_text(errors="replace")):
                asked = {"path": path, **dict(urllib.parse.parse_qsl(query))}
                if asked["op"] == op:
                    found.append((number, asked))
        return found

    def _format(self) -> None:
        for number, command in enumerate(["-format", "-bootstrapStandby"]):
            conf = self._write_conf(f"namenode-{number}", self._name_node_settings(number))
            if number:  # which asks the first one for its name
                continue
            self._run(f"format-{number}", [_NAME_NODE, command, "-nonInteractive"], conf)
        # What -bootstrapStandby would fetch from a running NameNode.
        shutil.copytree(self._folder / "name-0", self._folder / "name-1")

    def _start_name_node(self, number: int) -> None:
        conf = self._folder / f"namenode-{number}"
        process = self._start(f"namenode-{number}", _NAME_NODE, conf)
        server = f"http://127.0.0.1:{self._ports[number][0]}"
        process.wait_for(lambda: _answers(f"{server}/jmx?qry=Hadoop:service=NameNode,name=FSN*"))

    def _start_data_node(self, number: int) -> None:
        host = self.data_node_host(number)
        self._data_ports[number] = free_port()
        settings = {
            "dfs.datanode.data.dir": (self._folder / f"data-{number}").as_uri(),
            "dfs.datanode.hostname": host,
            "dfs.datanode.http.address": f"{host}:{self._data_ports[number]}",
            # The NameNode sees every call come from this address, and hands it on.
            "dfs.datanode.address": f"127.0.0.1:{free_port()}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
        }
        conf = self._write_conf(f"datanode-{number}", settings)
        self._start(f"datanode-{number}", _DATA_NODE, conf)

    def _wait_for_data_nodes(self) -> None:
        """Wait until the active NameNode knows both as they run now, and takes writes."""

        def all_there() -> bool:
            told = _bean(self.servers[0], "NameNodeInfo")
            live = json.loads(told["LiveNodes"]).values()
            ports = {int(each["infoAddr"].rpartition(":")[2]) for each in live}
            missing = _bean(self.servers[0], "FSNamesystem")["MissingBlocks"]
            return ports == {*self._data_ports.values()} and not told["Safemode"] and not missing

        wait_until(all_there)

    def _admin(self, *command: str) -> None:
        self._run("admin", [_ADMIN, *command], self._folder / "namenode-0")

    def _run(self, name: str, command: list[str], conf: Path) -> None:
        done = subprocess.run(
            _java(conf) + command,
            capture_output=True,
            text=True,
            env=self._environment(),
            timeout=START_S,
        )
        if done.returncode:
            raise ServerError(f"{name} failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")

    def _start(self, name: str, main: str, conf: Path) -> Process:
        log = self._folder / "logs" / f"{name}.log"
        self._processes[name] = Process([*_java(conf), main], log, self._environment())
        return self._processes[name]

    def _environment(self) -> dict[str, str]:
        return {"HADOOP_USER_NAME": SUPERUSER}

    def _stop(self) -> None:
        for process in self._processes.values():
            process.kill()  # there is nothing that anybody would read again
        self._processes.clear()

    def _name_node_settings(self, number: int) -> dict[str, str]:
        return {
            "dfs.namenode.name.dir": (self._folder / f"name-{number}").as_uri(),
            "dfs.ha.namenode.id": f"nn{number}",
        }

    def _write_conf(self, name: str, settings: Mapping[str, str]) -> Path:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        core = {
            "fs.defaultFS": "hdfs://tests",
            "hadoop.tmp.dir": str(self._folder / "tmp"),
            "hadoop.http.staticuser.user": SUPERUSER,
        }
        shared = {
            "dfs.nameservices": "tests",
            "dfs.ha.namenodes.tests": "nn0,nn1",
            "dfs.namenode.shared.edits.dir": (self._folder / "edits").as_uri(),
            "dfs.client.failover.proxy.provider.tests": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.blocksize": str(BLOCK),
            "dfs.namenode.fs-limits.min-block-size": str(BLOCK),
            "dfs.replication": "2",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.heartbeat.recheck-interval": "5000",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": "0",
        }
        for each, (http, rpc) in enumerate(self._ports):
            shared[f"dfs.namenode.http-address.tests.nn{each}"] = f"127.0.0.1:{http}"
            shared[f"dfs.namenode.rpc-address.tests.nn{each}"] = f"127.0.0.1:{rpc}"
        (folder / "core-site.xml").write_text(_xml(core))
        (folder / "hdfs-site.xml").write_text(_xml({**shared, **settings}))
        (folder / "log4j.properties").write_text(_LOG4J)
        for pages in ("hdfs", "datanode"):  # looked up on the class path; the jars hold none
            (folder / "webapps" / pages).mkdir(parents=True, exist_ok=True)
        return folder


def _java(conf: Path) -> list[str]:
    java = Path(java_home() or "") / "bin" / "java"
    small = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [str(java), *small, "-cp", f"{conf}:{_jars()}"]


def _jars() -> str:
    """Hadoop's class path, resolved by Maven once for each state of the pom."""
    state = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    known = CHECKOUT / "build" / f"hadoop-{state}.classpath"
    if known.exists() and all(Path(jar).exists() for jar in known.read_text().split(":")):
        return known.read_text()
    known.parent.mkdir(exist_ok=True)
    command = ["mvn", "-q", "-B", "-f", str(_POM), "dependency:build-classpath"]
    done = subprocess.run(
        [*command, f"-Dmdep.outputFile={known}.new"], capture_output=True, text=True
    )
    if done.returncode:
        raise ServerError(f"Maven found no Hadoop:\n{done.stdout[-1500:]}{done.stderr[-500:]}")
    Path(f"{known}.new").replace(known)
    return known.read_text()


def _xml(settings: Mapping[str, str]) -> str:
    entries = "".join(
        f"  <property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{entries}</configuration>\n'


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(json.load(answer)["beans"])
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _bean(server: str, name: str) -> Any:
    url = f"{server}/jmx?qry=Hadoop:service=NameNode,name={name}"
    with urllib.request.urlopen(url, timeout=START_S) as answer:
        return json.load(answer)["beans"][0]
