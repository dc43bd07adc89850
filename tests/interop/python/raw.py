"""Raw frames of both protocols, for loads that no stock tool makes."""
import json
import socket
import struct
import time

from stock import Failure

LIMIT_S = 300
FETCH_BYTES = 50 << 20


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=LIMIT_S)


def received(peer, count):
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(count - len(data))
        if not piece:
            raise Failure("the server closed a connection")
        data += piece
    return bytes(data)


class Kafka:
    """A connection that asks one thing at a time, in versions without flexible fields."""

    def __init__(self, address):
        self.peer = connect(address)

    def close(self):
        self.peer.close()

    def send(self, key, version, body):
        frame = struct.pack(">hhih", key, version, 1, -1) + body
        self.peer.sendall(struct.pack(">i", len(frame)) + frame)

    def ask(self, key, version, body):
        self.send(key, version, body)
        return received(self.peer, struct.unpack(">i", received(self.peer, 4))[0])[4:]

    def create_topics(self, names, partitions):
        """CreateTopics v4, all in one request."""
        body = struct.pack(">i", len(names))
        body += b"".join(text(name) + struct.pack(">ihii", partitions, -1, 0, 0) for name in names)
        answer = Reader(self.ask(19, 4, body + struct.pack(">ib", LIMIT_S * 1000, 0)))
        answer.skip(4)
        for _ in range(answer.int32()):
            name, code, message = answer.text(), answer.int16(), answer.text()
            if code:
                raise Failure(f"topic {name}: error {code} {message}")

    def delete_topics(self, names):
        """DeleteTopics v3, all in one request."""
        body = struct.pack(">i", len(names)) + b"".join(text(name) for name in names)
        answer = Reader(self.ask(20, 3, body + struct.pack(">i", LIMIT_S * 1000)))
        answer.skip(4)
        for _ in range(answer.int32()):
            name, code = answer.text(), answer.int16()
            if code:
                raise Failure(f"deleting {name}: error {code}")

    def led_partitions(self, name):
        """How many partitions of a topic have a leader (Metadata v1)."""
        answer = Reader(self.ask(3, 1, struct.pack(">i", 1) + text(name)))
        for _ in range(answer.int32()):
            answer.skip(4)
            answer.text()
            answer.skip(4)
            answer.text()
        answer.skip(4)
        led = 0
        for _ in range(answer.int32()):
            answer.skip(2)
            answer.text()
            answer.skip(1)
            for _ in range(answer.int32()):
                code, _, leader = answer.int16(), answer.int32(), answer.int32()
                led += code == 0 and leader >= 0
                answer.skip(4 * answer.int32())
                answer.skip(4 * answer.int32())
        return led

    def produce(self, name, partitions, batch):
        """The same batch to each partition (Produce v3, acks=all)."""
        each = struct.pack(">i", len(batch)) + batch
        body = struct.pack(">hhi", -1, -1, LIMIT_S * 1000) + struct.pack(">i", 1) + text(name)
        body += struct.pack(">i", len(partitions))
        body += b"".join(struct.pack(">i", index) + each for index in partitions)
        answer = Reader(self.ask(0, 3, body))
        for _ in range(answer.int32()):
            answer.text()
            for _ in range(answer.int32()):
                index, code, _, _ = (answer.int32(), answer.int16(), answer.int64(), answer.int64())
                if code:
                    raise Failure(f"{name}-{index}: error {code}")

    def send_fetch(self, name, partitions, max_wait_ms=0):
        """A Fetch v4 from offset 0 of each partition."""
        body = struct.pack(">iiiib", -1, max_wait_ms, int(max_wait_ms > 0), FETCH_BYTES, 0)
        body += struct.pack(">i", 1) + text(name) + struct.pack(">i", len(partitions))
        body += b"".join(struct.pack(">iqi", index, 0, 1 << 20) for index in partitions)
        self.send(1, 4, body)

    def fetch(self, name, partitions):
        """How many of the partitions gave records."""
        self.send_fetch(name, partitions)
        answer = Reader(received(self.peer, struct.unpack(">i", received(self.peer, 4))[0])[4:])
        answer.skip(4)
        found = 0
        for _ in range(answer.int32()):
            answer.text()
            for _ in range(answer.int32()):
                index, code = answer.int32(), answer.int16()
                if code:
                    raise Failure(f"{name}-{index}: error {code}")
                answer.skip(16)
                answer.skip(16 * max(0, answer.int32()))
                length = answer.int32()
                answer.skip(max(0, length))
                found += length > 0
        return found


class Remoting:
    """A connection to a broker that holds a pull."""

    def __init__(self, address):
        self.peer = connect(address)

    def close(self):
        self.peer.close()

    def send_pull(self, topic, group, hold_ms):
        """PULL_MESSAGE at the end of queue 0, to be held."""
        fields = {"consumerGroup": group, "topic": topic, "queueId": "0", "queueOffset": "0",
                  "maxMsgNums": "32", "sysFlag": "6", "commitOffset": "0",
                  "suspendTimeoutMillis": str(hold_ms), "subscription": "*", "subVersion": "0",
                  "expressionType": "TAG"}
        header = json.dumps({"code": 11, "language": "JAVA", "version": 513, "opaque": 1, "flag": 0,
                             "serializeTypeCurrentRPC": "JSON", "extFields": fields}).encode()
        self.peer.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)


class Reader:
    """Takes an answer apart."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def skip(self, count):
        self.at += count

    def number(self, form, count):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += count
        return value

    def int16(self):
        return self.number(">h", 2)

    def int32(self):
        return self.number(">i", 4)

    def int64(self):
        return self.number(">q", 8)

    def text(self):
        length = self.int16()
        self.at += max(0, length)
        return self.data[self.at - max(0, length):self.at].decode()


def text(value):
    return struct.pack(">h", len(value.encode())) + value.encode()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def zigzag(value):
    value <<= 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def record_batch(values):
    """An uncompressed batch of format 2 of records of now that have values only."""
    timestamp = int(time.time() * 1000)
    records = b""
    for delta, value in enumerate(values):
        # No key: a length of -1.
        body = b"\0\0" + zigzag(delta) + b"\1" + zigzag(len(value)) + value + b"\0"
        records += zigzag(len(body)) + body
    checked = struct.pack(">hiqqqhii", 0, len(values) - 1, timestamp, timestamp, -1, -1, -1,
                          len(values)) + records
    tail = struct.pack(">ibI", 0, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail
