"""What scripts/demo and scripts/bench share: stock clients, a node of our own, process figures."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
INTEROP = ROOT / "target" / "interop"
HOST = "127.0.0.1"
KAFKA, ROCKETMQ = "kafka-4.3.1", "rocketmq-5.5.0"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms32m", "-Xmx256m")
START_LIMIT_S = 30
TICKS = os.sysconf("SC_CLK_TCK")
STOCK_PORTS = {"kafka": 9092, "namesrv": 9876, "broker": 10911, "vip": 10909, "http": 9464}


class Failure(Exception):
    """Ends the command with one line for the user."""


def main(run):
    """Runs the command; a Failure becomes its text and exit code 1."""
    try:
        run()
    except Failure as failure:
        sys.exit(f"{Path(sys.argv[0]).name}: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


def prepare(build=True):
    """The stock clients and, if wanted, the node's executable: $TESTED_DUOLOG, or the release build."""
    if subprocess.call([ROOT / "scripts" / "setup"]) != 0:
        raise Failure("scripts/setup failed")
    if not build:
        return None
    if tested := os.environ.get("TESTED_DUOLOG"):
        return Path(tested)
    command = ["cargo", "build", "--release", "-p", "duolog-broker", "--bin", "duolog"]
    if subprocess.call([*command, "--quiet"], cwd=ROOT) != 0:
        raise Failure("cargo build failed")
    metadata = subprocess.check_output(
        ["cargo", "metadata", "--format-version=1", "--no-deps", "--offline"], cwd=ROOT)
    return Path(json.loads(metadata)["target_directory"]) / "release" / "duolog"


def java(version, main_class, *arguments, jvm=QUICK):
    """The command line that runs a class on the class path of that client version."""
    home = INTEROP / "home"
    home.mkdir(parents=True, exist_ok=True)
    jars = (INTEROP / version / "classpath.txt").read_text().strip()
    return ["java", *jvm, "--add-opens=java.base/java.nio=ALL-UNNAMED", f"-Duser.home={home}",
            f"-Drocketmq.home.dir={home}",
            f"-Dlog4j2.configurationFile={ROOT / 'tests/interop/log4j2.xml'}",
            "-cp", f"{INTEROP / version / 'classes'}:{jars}", main_class, *map(str, arguments)]


def tool(command, limit_s=300, errors=subprocess.PIPE):
    """Runs a command line tool; its standard output, or a Failure with all it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                          stdin=subprocess.DEVNULL, timeout=limit_s, check=False)
    if done.returncode != 0:
        said = f"{done.stdout}{done.stderr or ''}"
        raise Failure(f"{command[-1]}: exit code {done.returncode}\n{said}")
    return done.stdout


def hexed(text):
    return text.encode().hex()


class Driver:
    """A stock client under command; tests/interop/java/Wire.java tells the protocol."""

    def __init__(self, version, address):
        name = "KafkaDriver" if version == KAFKA else "RocketmqDriver"
        self.process = subprocess.Popen(java(version, name, address), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, encoding="utf-8")
        self.events = []

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def call(self, command):
        """The lines of the answer; events that come meanwhile are kept."""
        self.tell(command)
        lines = []
        for text in self.process.stdout:
            line = json.loads(text)
            if "event" in line:
                self.events.append(line)
            elif "error" in line:
                raise Failure(f"{command.split(' ')[0]}: {line['error']}")
            elif line.get("done"):
                return lines
            else:
                lines.append(line)
        raise Failure(f"the client ended at {command.split(' ')[0]}")

    def end(self):
        self.process.kill()
        self.process.wait()


def free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def choose_ports():
    """The stock ports, or a free block when one of them is taken."""
    if all(map(free, STOCK_PORTS.values())):
        return STOCK_PORTS
    for base in range(21000, 31000, 8):
        ports = {"kafka": base, "namesrv": base + 1, "vip": base + 2, "http": base + 3,
                 "broker": base + 4}
        if all(map(free, ports.values())):
            return ports
    raise Failure("no free ports")


class Node:
    """A node of the release build on loopback, with its data in a folder that it takes along."""

    def __init__(self, executable, settings=()):
        self.ports = choose_ports()
        self.folder = Path(tempfile.mkdtemp(prefix="duolog-"))
        values = {"listeners": f"PLAINTEXT://{HOST}:{self.ports['kafka']}",
                  "rocketmq.namesrvListenPort": self.ports["namesrv"],
                  "rocketmq.listenPort": self.ports["broker"], "http.port": self.ports["http"],
                  **dict(settings)}
        self.command = [executable, "serve", "--data-dir", self.folder / "data"]
        for key, value in values.items():
            self.command += ["--set", f"{key}={value}"]
        self.kafka, self.namesrv = (f"{HOST}:{self.ports[key]}" for key in ("kafka", "namesrv"))
        self.process = None

    def spawn(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def start(self):
        """Starts the process and waits until its listeners accept."""
        self.spawn()
        deadline = time.monotonic() + START_LIMIT_S
        while not all(self.accepts(self.ports[key]) for key in ("kafka", "namesrv", "broker")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"the node does not answer:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.005)
        return self

    @staticmethod
    def accepts(port):
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- figures of a process
def usage(pid):
    """CPU seconds (user and system) and resident MiB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    resident = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return {"cpu_s": (int(fields[11]) + int(fields[12])) / TICKS,
            "rss_mib": int(resident[1]) / 1024}


def pid_listening(port):
    """The process that listens on a loopback or wildcard port."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) in inodes for link in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    raise Failure(f"no process of this machine listens on port {port}")


# ---- requests over a plain connection, where a tool's JVM would cost a second
def exchange(address, payload):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(struct.pack(">i", len(payload)) + payload)
        stream = connection.makefile("rb")
        (length,) = struct.unpack(">i", stream.read(4))
        return stream.read(length)


def kafka_topic(bootstrap, name, partitions):
    """CreateTopics v4 with the server's default replication factor."""
    encoded = name.encode()
    header = struct.pack(">hhih", 19, 4, 1, -1)
    body = struct.pack(">ih", 1, len(encoded)) + encoded
    body += struct.pack(">ihiiib", partitions, -1, 0, 0, 30_000, 0)
    answer = exchange(bootstrap, header + body)
    at = 4 + 4 + 4 + 2 + len(encoded)
    (error,) = struct.unpack_from(">h", answer, at)
    if error:
        raise Failure(f"topic {name}: error {error} {answer[at + 4:].decode(errors='replace')}")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def kafka_record(bootstrap, topic, value):
    """Produce v7 of one record to partition 0, acks=1; its offset."""
    now = int(time.time() * 1000)
    # Attributes, deltas of time and offset, no key, the value (below 64 bytes), no headers.
    record = bytes([0, 0, 0, 1, 2 * len(value)]) + value + b"\0"
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1)
    checked += bytes([2 * len(record)]) + record
    batch = struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked
    name = topic.encode()
    request = struct.pack(">hhihhhiih", 0, 7, 1, -1, -1, 1, 30_000, 1, len(name)) + name
    answer = exchange(bootstrap, request + struct.pack(">iii", 1, 0, len(batch)) + batch)
    error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    if error:
        raise Failure(f"produce to {topic}: error {error}")
    return offset


def remoting(address, code, fields, body=b""):
    """One remoting request with a JSON header; the answer's header and body."""
    header = json.dumps({"code": code, "language": "JAVA", "version": 513, "opaque": 1, "flag": 0,
                         "serializeTypeCurrentRPC": "JSON", "extFields": fields}).encode()
    answer = exchange(address, struct.pack(">i", len(header)) + header + body)
    (length,) = struct.unpack_from(">i", answer)
    return json.loads(answer[4:4 + length]), answer[4 + length:]


def broker_of(namesrv):
    """The address of the first master that the name server knows (GET_BROKER_CLUSTER_INFO)."""
    _, body = remoting(namesrv, 106, {})
    # fastjson writes the broker ids, which are keys, without quotes.
    found = re.search(rb'[{,]"?0"?\s*:\s*"([^"]+)"', body)
    if not found:
        raise Failure(f"the name server {namesrv} knows no broker")
    return found[1].decode()


def rocketmq_topic(namesrv, name, queues):
    """UPDATE_AND_CREATE_TOPIC, then waits until the name server has the route."""
    header, _ = remoting(broker_of(namesrv), 17, {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": str(queues),
        "writeQueueNums": str(queues), "perm": "6", "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0", "order": "false"})
    if header["code"] != 0:
        raise Failure(f"topic {name}: {header['code']} {header.get('remark')}")
    deadline = time.monotonic() + 30
    while remoting(namesrv, 105, {"topic": name})[0]["code"] != 0:
        if time.monotonic() > deadline:
            raise Failure(f"topic {name} has no route")
        time.sleep(0.01)
