"""Sends a fixed list of requests to a RocketMQ name server and broker and writes what they answer.

usage: capture.py NAMESRV_HOST:PORT BROKER_HOST:PORT > answers.jsonl

The peer must be fresh (no data). One JSON object a line: name, door, request, answer.
A body is text where it is UTF-8 without control characters, else hex. Requests run in order, each
after the answer to the one before it; all on one connection per door.
"""
import json
import socket
import struct
import sys
import zlib

BORN = 1700000000000


class Door:
    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=40)
        self.opaque = 100

    def read(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError("closed by the peer")
            data += piece
        return data

    def call(self, code, fields, body, version, oneway):
        self.opaque += 1
        header = {"code": code, "language": "JAVA", "version": version, "opaque": self.opaque,
                  "flag": 2 if oneway else 0, "serializeTypeCurrentRPC": "JSON"}
        if fields is not None:
            header["extFields"] = fields
        header = json.dumps(header).encode()
        self.socket.sendall(struct.pack(">ii", 4 + len(header) + len(body), len(header))
                            + header + body)
        if oneway:
            return None
        while True:
            size, word = struct.unpack(">ii", self.read(8))
            rest = self.read(size - 4)
            length = word & 0xFFFFFF
            answer = json.loads(rest[:length])
            if answer["flag"] & 1 and answer["opaque"] == self.opaque:
                break
        out = {"code": answer["code"], "remark": answer.get("remark"),
               "ext": answer.get("extFields", {})}
        if rest[length:]:
            out.update(text(rest[length:]))
        return out


def text(body):
    try:
        decoded = body.decode()
        if all(c >= " " or c == "\n" for c in decoded):
            return {"body": decoded}
    except UnicodeDecodeError:
        pass
    return {"hex": body.hex()}


NS, BR = "namesrv", "broker"
STEPS = []


def step(name, door, code, fields=None, body=b"", version=513, oneway=False):
    STEPS.append((name, door, code, fields, body, version, oneway))


def send(name, topic, body=b"hello", code=310, version=513, drop=(), **change):
    fields = {"a": "p1", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": str(BORN),
              "h": "0", "i": "UNIQ_KEY\u00017F0000010001\u0002WAIT\u0001true\u0002", "j": "0",
              "k": "false", "m": "false"}
    fields.update(change)
    step(name, BR, code, {k: v for k, v in fields.items() if k not in drop}, body, version)


def message(body, properties=b"", total=None, crc=0, magic=0):
    data = struct.pack(">iiii", magic, crc, 0, len(body)) + body
    data += struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", 4 + len(data) if total is None else total) + data


def pull(name, topic, code=11, drop=(), **change):
    fields = {"consumerGroup": "g1", "topic": topic, "queueId": "0", "queueOffset": "0",
              "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "300",
              "subscription": "*", "subVersion": "0", "expressionType": "TAG"}
    fields.update(change)
    step(name, BR, code, {k: v for k, v in fields.items() if k not in drop})


def heartbeat(name, group, client="c1", topics=("t1",), sub="*", version=1, kind="TAG", **change):
    subscriptions = [{"topic": t, "subString": sub, "subVersion": version, "expressionType": kind,
                      "classFilterMode": False,
                      "tagsSet": [] if sub == "*" else sub.split("||"),
                      "codeSet": []} for t in topics]
    consumer = {"groupName": group, "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                "subscriptionDataSet": subscriptions, "unitMode": False}
    data = {"clientID": client, "consumerDataSet": [consumer],
            "producerDataSet": [{"groupName": "p1"}], "heartbeatFingerprint": 0,
            "withoutSub": False}
    data.update(change)
    step(name, BR, 34, None, json.dumps(data).encode())


def name_server():
    step("unknown code", NS, 9999, {})
    step("route, no topic field", NS, 105, {})
    step("route, no fields", NS, 105, None)
    step("route, unknown topic", NS, 105, {"topic": "nowhere"})
    step("route, empty topic", NS, 105, {"topic": ""})
    step("route of the template", NS, 105, {"topic": "TBW102"})
    step("route of the template, old client", NS, 105, {"topic": "TBW102"}, version=315)
    step("route of the template, standard json", NS, 105,
         {"topic": "TBW102", "acceptStandardJsonOnly": "true"}, version=0)
    step("put kv", NS, 100, {"namespace": "n", "key": "k", "value": "v 1"})
    step("put kv, no value", NS, 100, {"namespace": "n", "key": "k"})
    step("get kv", NS, 101, {"namespace": "n", "key": "k"})
    step("get kv, unknown", NS, 101, {"namespace": "n", "key": "other"})
    step("delete kv", NS, 102, {"namespace": "n", "key": "k"})
    step("delete kv again", NS, 102, {"namespace": "n", "key": "k"})
    step("get kv, deleted", NS, 101, {"namespace": "n", "key": "k"})
    step("delete kv, no key", NS, 102, {"namespace": "n"})
    step("cluster info", NS, 106, None)
    step("topic list", NS, 206, None)
    step("delete unknown topic", NS, 216, {"topic": "nowhere"})
    step("delete route, no field", NS, 216, {})


def sends():
    step("group config before all", BR, 352, {"group": "g1"})
    step("unknown code at the broker", BR, 9999, {})
    step("send, no fields", BR, 310, {}, b"x")
    step("send, header absent", BR, 310, None, b"x")
    step("send long names, no topic", BR, 10, {"producerGroup": "p1"}, b"x")
    send("send, queue id no number", "t1", e="abc")
    send("send, queue id too big for 32 bits", "t1", e="2147483648")
    send("send, empty topic", "")
    send("send, blank topic", " ")
    send("send, illegal topic", "a b")
    send("send, dotted topic", "a.b")
    send("send, topic of 128", "x" * 128)
    send("send, topic of 127", "y" * 127)
    send("send, schedule topic", "SCHEDULE_TOPIC_XXXX")
    send("send, half topic", "RMQ_SYS_TRANS_HALF_TOPIC")
    send("send, self test topic", "SELF_TEST_TOPIC")
    send("send, offset moved topic", "OFFSET_MOVED_EVENT")
    send("send, system topic", "rmq_sys_x")
    send("send, template topic", "TBW102")
    send("send, unknown default topic", "t0", c="nothing")
    send("send, new topic", "t1")
    send("send, second", "t1")
    send("send, new topic 16 asked", "t16", d="16")
    send("send, new topic 0 asked", "tzero", d="0")
    send("send, new topic -3 asked", "tneg", d="-3")
    send("send, queue past the end", "t1", e="4")
    send("send, queue far past the end", "t1", e="99")
    send("send, broker chooses", "chosen", e="-1")
    send("send, no properties", "t1", drop=("i",))
    send("send, no unique key", "t1", i="a\u0001b\u0002")
    send("send, tag without last separator", "t1", i="UNIQ_KEY\u0001u\u0002TAGS\u0001TagA")
    send("send, empty body", "t1", body=b"")
    send("send, body at the limit", "t1", body=b"z" * (4 * 1024 * 1024))
    send("send, body over the limit", "t1", body=b"z" * (4 * 1024 * 1024 + 1))
    send("send, properties over the limit", "t1", i="k\u0001" + "v" * 32768 + "\u0002")
    send("send, old code", "t1", code=310)
    step("send long names", BR, 10,
         {"producerGroup": "p1", "topic": "t1", "defaultTopic": "TBW102",
          "defaultTopicQueueNums": "4", "queueId": "1", "sysFlag": "0", "bornTimestamp": str(BORN),
          "flag": "7", "properties": "UNIQ_KEY\u0001u2\u0002"}, b"long")
    send("send, bad compressed body", "odd", f="1", body=b"not zlib")
    send("send, compressed body", "t1", f="1", body=zlib.compress(b"packed " * 20), e="3")
    send("send, multi-char born time", "t1", g="x")


def batches():
    good = message(b"b0", b"UNIQ_KEY\x01u0\x02TAGS\x01TagA") \
        + message(b"b1", b"UNIQ_KEY\x01u1\x02TAGS\x01TagB\x02") + message(b"b2")
    send("batch", "t1", code=320, m="true", e="2", body=good)
    send("batch by 310", "t1", code=310, m="true", e="2", body=good)
    send("batch, one message", "t1", code=320, m="true", e="2", body=message(b"one"))
    send("batch, retry topic", "%RETRY%g9", code=320, m="true", body=good)
    send("batch, queue past the end", "t1", code=320, m="true", e="9", body=good)
    send("batch, compressed as a whole", "odd", code=320, m="true", f="1",
         body=zlib.compress(good))
    send("batch, length over the rest", "odd", code=320, m="true",
         body=message(b"x", total=9999))
    send("batch, length zero", "odd", code=320, m="true", body=message(b"x", total=0))
    send("batch, negative length", "odd", code=320, m="true", body=message(b"x", total=-1))
    send("batch of none", "odd", code=320, m="true", body=b"")
    send("batch, one body too large", "odd", code=320, m="true",
         body=message(b"z" * (4 * 1024 * 1024)))


def topics():
    create = {"topic": "made", "defaultTopic": "TBW102", "readQueueNums": "3",
              "writeQueueNums": "2", "perm": "6", "topicFilterType": "SINGLE_TAG",
              "topicSysFlag": "0", "order": "false", "attributes": "", "force": "false"}

    def made(name, drop=(), **change):
        fields = dict(create, **change)
        step(name, BR, 17, {k: v for k, v in fields.items() if k not in drop})

    made("create topic")
    made("create topic again")
    made("create topic, illegal name", topic="a b")
    made("create topic, empty name", topic="")
    made("create topic, long name", topic="l" * 128)
    made("create topic, system name", topic="TBW102")
    made("create topic, system prefix", topic="rmq_sys_q")
    made("create topic, no read queues field", drop=("readQueueNums",))
    made("create topic, no filter type", drop=("topicFilterType",))
    made("create topic, unknown filter type", topicFilterType="X")
    made("create topic, no order", drop=("order",))
    made("create topic, 0 queues", topic="made0", readQueueNums="0", writeQueueNums="0")
    made("create topic, negative queues", topic="madeneg", readQueueNums="-1", writeQueueNums="-1")
    made("create topic, perm 9", topic="made9", perm="9")
    made("create topic, message type", topic="fifo", attributes="+message.type=FIFO")
    made("create topic, mixed", topic="mixed", attributes="+message.type=MIXED")
    made("create topic, unknown type", topic="strange", attributes="+message.type=ODD")
    made("create topic, unknown attribute", topic="strange", attributes="+what=1")
    made("create topic, malformed attribute", topic="strange", attributes="what")
    made("create topic, delete attribute of a new topic", topic="strange",
         attributes="-message.type")
    step("topic config", BR, 351, {"topic": "made"})
    step("topic config, with mapping", BR, 351, {"topic": "fifo", "lo": "true"})
    step("topic config, unknown", BR, 351, {"topic": "nowhere"})
    step("topic config, no field", BR, 351, {})
    made("grow topic", readQueueNums="5", writeQueueNums="5", perm="4", order="true")
    step("topic config, grown", BR, 351, {"topic": "made"})
    send("send, topic without write", "made")
    made("topic without read", perm="2")
    pull("pull, topic without read", "made")
    step("topic stats", BR, 202, {"topic": "t1"})
    step("topic stats, unknown", BR, 202, {"topic": "nowhere"})
    step("topic stats, no data", BR, 202, {"topic": "made"})


def pulls():
    pull("pull, no group field", "t1", drop=("consumerGroup",))
    pull("pull, no queue field", "t1", drop=("queueId",))
    step("pull, no fields", BR, 11, None)
    pull("pull, queue id no number", "t1", queueId="abc")
    pull("pull, queue id too big for 32 bits", "t1", queueId="2147483648")
    pull("pull, unknown topic", "nowhere")
    pull("pull, queue past the end", "t1", queueId="4")
    pull("pull, queue -1", "t1", queueId="-1")
    pull("pull, illegal group", "t1", consumerGroup="a b")
    pull("pull, empty group", "t1", consumerGroup="")
    pull("pull, no group known", "t1", sysFlag="0", consumerGroup="gx")
    pull("pull, found", "t1", queueId="2")
    pull("pull, lite", "t1", code=361, queueId="2", sysFlag="20")
    pull("pull, two", "t1", queueId="2", maxMsgNums="2")
    pull("pull, none asked", "t1", queueId="2", maxMsgNums="0")
    pull("pull, negative count", "t1", queueId="2", maxMsgNums="-5")
    pull("pull, at the end", "t1", queueId="2", queueOffset="7")
    pull("pull, at the end, held", "t1", queueId="2", queueOffset="7", sysFlag="6")
    pull("pull, one past the end", "t1", queueId="2", queueOffset="8")
    pull("pull, far past the end", "t1", queueId="2", queueOffset="1000")
    pull("pull, below zero", "t1", queueId="2", queueOffset="-1")
    pull("pull, empty queue at 0", "made0000", queueId="0")
    pull("pull, tag", "t1", queueId="2", subscription="TagB")
    pull("pull, two tags", "t1", queueId="2", subscription="TagB || TagA")
    pull("pull, tag of none", "t1", queueId="2", subscription="Nothing")
    pull("pull, empty subscription", "t1", queueId="2", subscription="")
    pull("pull, no subscription", "t1", queueId="2", drop=("subscription",))
    pull("pull, odd subscription", "t1", queueId="2", subscription="||")
    pull("pull, sql", "t1", queueId="2", subscription="a > 1", expressionType="SQL92")
    pull("pull, bad sql", "t1", queueId="2", subscription="a >", expressionType="SQL92")
    pull("pull, unknown expression type", "t1", queueId="2", expressionType="X")
    pull("pull, no expression type", "t1", queueId="2", drop=("expressionType",))
    pull("pull, compressed", "t1", queueId="3")
    pull("pull, few bytes asked", "t1", queueId="2", maxMsgBytes="1")
    step("create empty topic", BR, 17,
         {"topic": "empty", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
          "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"})
    pull("pull, empty topic at 0", "empty")
    pull("pull, empty topic at 5", "empty", queueOffset="5")
    pull("pull, empty topic at -1", "empty", queueOffset="-1")


def offsets():
    where = {"topic": "t1", "queueId": "2"}
    group = dict(where, consumerGroup="g1")
    step("offset of a group without one", BR, 14, group)
    step("offset, not zero", BR, 14, dict(group, setZeroIfNotFound="false"))
    step("offset, zero if not found", BR, 14, dict(group, setZeroIfNotFound="true"))
    step("offset, unknown group", BR, 14, dict(group, consumerGroup="never"))
    step("offset, unknown topic", BR, 14, dict(group, topic="nowhere"))
    step("offset, unknown queue", BR, 14, dict(group, queueId="77"))
    step("offset, no queue field", BR, 14, {"topic": "t1", "consumerGroup": "g1"})
    step("commit", BR, 15, dict(group, commitOffset="3"))
    step("offset after the commit", BR, 14, group)
    step("commit, unknown group", BR, 15, dict(group, consumerGroup="never2", commitOffset="3"))
    step("commit, unknown topic", BR, 15, dict(group, topic="nowhere", commitOffset="3"))
    step("commit, unknown queue", BR, 15, dict(group, queueId="77", commitOffset="3"))
    step("commit, far past the end", BR, 15, dict(group, queueId="1", commitOffset="1000000000"))
    step("commit, negative", BR, 15, dict(group, queueId="0", commitOffset="-9"))
    step("offset after the negative commit", BR, 14, dict(group, queueId="0"))
    step("commit, no offset field", BR, 15, group)
    step("max offset", BR, 30, where)
    step("max offset, committed", BR, 30, dict(where, committed="true"))
    step("max offset, unknown topic", BR, 30, dict(where, topic="nowhere"))
    step("max offset, unknown queue", BR, 30, dict(where, queueId="77"))
    step("max offset, no queue field", BR, 30, {"topic": "t1"})
    step("min offset", BR, 31, where)
    step("min offset, unknown topic", BR, 31, dict(where, topic="nowhere"))
    step("min offset, unknown queue", BR, 31, dict(where, queueId="77"))
    step("min offset, empty topic", BR, 31, {"topic": "empty", "queueId": "0"})
    step("search, before all", BR, 29, dict(where, timestamp="0"))
    step("search, after all", BR, 29, dict(where, timestamp="4000000000000"))
    step("search, lower before all", BR, 29, dict(where, timestamp="0", boundaryType="lower"))
    step("search, upper before all", BR, 29, dict(where, timestamp="0", boundaryType="upper"))
    step("search, upper after all", BR, 29,
         dict(where, timestamp="4000000000000", boundaryType="UPPER"))
    step("search, negative time", BR, 29, dict(where, timestamp="-1"))
    step("search, odd boundary", BR, 29, dict(where, timestamp="0", boundaryType="middle"))
    step("search, unknown topic", BR, 29, dict(where, topic="nowhere", timestamp="0"))
    step("search, unknown queue", BR, 29, dict(where, queueId="77", timestamp="0"))
    step("search, empty topic", BR, 29, {"topic": "empty", "queueId": "0", "timestamp": "5"})
    step("search, no time field", BR, 29, where)


def groups():
    step("members of an unknown group", BR, 38, {"consumerGroup": "nobody"})
    step("members, no field", BR, 38, {})
    step("connections of an unknown group", BR, 203, {"consumerGroup": "nobody"})
    heartbeat("heartbeat", "g1", version=1700000000001)
    step("members", BR, 38, {"consumerGroup": "g1"})
    step("connections", BR, 203, {"consumerGroup": "g1"})
    heartbeat("heartbeat, fingerprint", "g1", version=1700000000001, heartbeatFingerprint=42)
    heartbeat("heartbeat, other fingerprint", "g1", version=1700000000001, heartbeatFingerprint=43)
    heartbeat("heartbeat, same fingerprint", "g1", version=1700000000001, heartbeatFingerprint=43,
              withoutSub=True)
    heartbeat("heartbeat, illegal group", "a b")
    step("heartbeat, no body", BR, 34, None)
    step("heartbeat, no json", BR, 34, None, b"{{{")
    step("heartbeat, empty json", BR, 34, None, b"{}")
    pull("pull by heartbeat", "t1", sysFlag="0", queueId="2", subVersion="1700000000001")
    pull("pull by heartbeat, older", "t1", sysFlag="0", queueId="2", subVersion="1")
    pull("pull by heartbeat, newer", "t1", sysFlag="0", queueId="2", subVersion="1700000000002")
    pull("pull by heartbeat, other topic", "t16", sysFlag="0", subVersion="1")
    heartbeat("heartbeat, tag", "g2", client="c2", sub="TagB", version=1700000000001)
    pull("pull by heartbeat, tag", "t1", consumerGroup="g2", sysFlag="0", queueId="2",
         subVersion="1700000000001")
    heartbeat("heartbeat, sql", "g3", client="c3", sub="a > 1", kind="SQL92", version=5)
    pull("pull by heartbeat, sql", "t1", consumerGroup="g3", sysFlag="0", queueId="2",
         subVersion="5")
    step("route of a retry topic", NS, 105, {"topic": "%RETRY%g1"})
    step("retry topic config", BR, 351, {"topic": "%RETRY%g1"})
    step("commit offset in a pull", BR, 11,
         {"consumerGroup": "g1", "topic": "t1", "queueId": "2", "queueOffset": "0",
          "maxMsgNums": "1", "sysFlag": "5", "commitOffset": "5", "suspendTimeoutMillis": "0",
          "subscription": "*", "subVersion": "0"})
    step("offset after the pull", BR, 14, {"consumerGroup": "g1", "topic": "t1", "queueId": "2"})
    step("consume stats", BR, 208, {"consumerGroup": "g1"})
    step("consume stats, one topic", BR, 208, {"consumerGroup": "g1", "topic": "t1"})
    step("consume stats, other topic", BR, 208, {"consumerGroup": "g1", "topic": "t16"})
    step("consume stats, unknown topic", BR, 208, {"consumerGroup": "g1", "topic": "nowhere"})
    step("consume stats, unknown group", BR, 208, {"consumerGroup": "nobody"})
    step("consume stats, no field", BR, 208, {})
    step("check client, tag", BR, 46, None,
         b'{"clientId":"c1","group":"g1","subscriptionData":{"topic":"t1","subString":"*",'
         b'"expressionType":"TAG"}}')
    step("check client, sql", BR, 46, None,
         b'{"clientId":"c1","group":"g1","subscriptionData":{"topic":"t1","subString":"a>1",'
         b'"expressionType":"SQL92"}}')
    step("check client, bad sql", BR, 46, None,
         b'{"clientId":"c1","group":"g1","subscriptionData":{"topic":"t1","subString":"a>",'
         b'"expressionType":"SQL92"}}')
    step("check client, no body", BR, 46, None)
    step("leave", BR, 35, {"clientID": "c1", "consumerGroup": "g1", "producerGroup": "p1"})
    step("leave again", BR, 35, {"clientID": "c1", "consumerGroup": "g1"})
    step("leave, no client field", BR, 35, {"consumerGroup": "g1"})
    step("members after leaving", BR, 38, {"consumerGroup": "g1"})
    step("connections after leaving", BR, 203, {"consumerGroup": "g1"})
    config = {"groupName": "made", "consumeEnable": True, "retryMaxTimes": 5, "retryQueueNums": 1}
    step("create group", BR, 200, None, json.dumps(config).encode())
    step("group config", BR, 352, {"group": "made"})
    step("group config, created by asking", BR, 352, {"group": "fresh"})
    step("group config, illegal", BR, 352, {"group": "a b"})
    step("group config, no field", BR, 352, {})
    config["groupName"] = "a b"
    step("create group, illegal name", BR, 200, None, json.dumps(config).encode())
    config["groupName"] = ""
    step("create group, empty name", BR, 200, None, json.dumps(config).encode())
    step("create group, no body", BR, 200, None)
    config.update(groupName="off", consumeEnable=False)
    step("create group that may not consume", BR, 200, None, json.dumps(config).encode())
    pull("pull, group may not consume", "t1", consumerGroup="off")
    config.update(groupName="nobroad", consumeEnable=True, consumeBroadcastEnable=False)
    step("create group without broadcast", BR, 200, None, json.dumps(config).encode())


def last():
    send("send, retry topic", "%RETRY%g1", j="1", l="3")
    send("send, retry topic, too often", "%RETRY%g1", j="4", l="3")
    send("send, dead letter topic", "%DLQ%g1")
    send("send, retry topic of a long group", "%RETRY%" + "g" * 130)
    step("delete topic", BR, 215, {"topic": "t16"})
    step("delete topic again", BR, 215, {"topic": "t16"})
    step("delete topic, empty name", BR, 215, {"topic": ""})
    step("delete topic, system", BR, 215, {"topic": "TBW102"})
    step("delete topic, no field", BR, 215, {})
    step("topic config, deleted", BR, 351, {"topic": "t16"})
    step("delete topic in name server", NS, 216, {"topic": "t16", "clusterName": "DefaultCluster"})
    step("route, deleted", NS, 105, {"topic": "t16"})
    step("route", NS, 105, {"topic": "t1"})
    step("runtime info", BR, 28, None)
    step("topic of a group, by heartbeat", BR, 351, {"topic": "%RETRY%g2"})
    send("send, no default topic field", "t99", drop=("c",))
    send("send, no queue count field", "t99", drop=("d",))
    send("send, no queue field", "t1", drop=("e",))
    send("send, no flags", "t1", drop=("f", "h", "j", "k", "m"))
    send("send, not delayed yet", "t1", i="UNIQ_KEY\u0001u\u0002DELAY\u00013\u0002")


def topic_lists():
    def topic(name, **change):
        return dict({"topicName": name, "readQueueNums": 2, "writeQueueNums": 2, "perm": 6,
                     "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
                     "attributes": {}}, **change)

    def made(name, *all, **change):
        body = {"topicConfigList": list(all)}
        step(name, BR, 18, {}, json.dumps(dict(body, **change)).encode())

    made("topic list, two", topic("list1"), topic("list2", readQueueNums=3, order=True))
    step("topic list, first", BR, 351, {"topic": "list1"})
    step("topic list, second", BR, 351, {"topic": "list2"})
    made("topic list, again", topic("list1"), topic("list2", readQueueNums=3, order=True))
    made("topic list, one illegal", topic("list3"), topic("a b"))
    step("topic list, beside the illegal one", BR, 351, {"topic": "list3"})
    made("topic list, illegal first", topic("c d"), topic("list4"))
    step("topic list, after the illegal one", BR, 351, {"topic": "list4"})
    made("topic list, system", topic("TBW102"), topic("list5"))
    made("topic list, message type", topic("list6", attributes={"+message.type": "FIFO"}))
    step("topic list, typed", BR, 351, {"topic": "list6"})
    made("topic list, plain attribute", topic("list7", attributes={"message.type": "FIFO"}))
    made("topic list, mixed", topic("list8", attributes={"+message.type": "MIXED"}))
    made("topic list, unknown attribute", topic("list9", attributes={"+what": "1"}))
    made("topic list, none")
    step("topic list, no body", BR, 18, {})
    step("topic list, no json", BR, 18, {}, b"{{{")


def administration():
    where = {"topic": "t1", "queueId": "2"}
    step("earliest store time", BR, 32, where)
    step("earliest store time, unknown topic", BR, 32, dict(where, topic="nowhere"))
    step("earliest store time, unknown queue", BR, 32, dict(where, queueId="77"))
    step("earliest store time, empty topic", BR, 32, {"topic": "empty", "queueId": "0"})
    step("earliest store time, no queue field", BR, 32, {"topic": "t1"})
    heartbeat("heartbeat of an administered group", "g1", version=1700000000009)
    step("who consumes", BR, 300, {"topic": "t1"})
    step("who consumes, nobody", BR, 300, {"topic": "empty"})
    step("who consumes, unknown topic", BR, 300, {"topic": "nowhere"})
    step("who consumes, no field", BR, 300, {})
    step("topics of a group", BR, 343, {"group": "g1"})
    step("topics of a group, unknown", BR, 343, {"group": "nobody"})
    step("topics of a group, no field", BR, 343, {})
    step("subscription", BR, 345, {"group": "g1", "topic": "t1"})
    step("subscription, other topic", BR, 345, {"group": "g1", "topic": "fifo"})
    step("subscription, unknown group", BR, 345, {"group": "nobody", "topic": "t1"})
    step("subscription, no field", BR, 345, {"group": "g1"})
    step("time span", BR, 303, {"topic": "t1", "group": "g1"})
    step("time span, no position", BR, 303, {"topic": "empty", "group": "g1"})
    step("time span, unknown topic", BR, 303, {"topic": "nowhere", "group": "g1"})
    step("time span, no field", BR, 303, {"topic": "t1"})
    step("all groups' stats", BR, 317, {"isOrder": "false"})
    step("all ordered groups' stats", BR, 317, {"isOrder": "true"})
    step("system topics", BR, 305, {})
    step("system topics at the name server", NS, 304, {})
    step("topics of the cluster", NS, 224, {"cluster": "DefaultCluster"})
    step("topics of a cluster, unknown", NS, 224, {"cluster": "other"})
    step("topics of a cluster, no field", NS, 224, {})
    step("put kv of a list", NS, 100, {"namespace": "list", "key": "k", "value": "v"})
    step("kv list", NS, 219, {"namespace": "list"})
    step("kv list, unknown", NS, 219, {"namespace": "nowhere"})
    step("kv list, no field", NS, 219, {})
    step("unit topics", NS, 311, {})
    step("unit subscriptions", NS, 312, {})
    step("unit subscriptions without unit", NS, 313, {})
    step("all group configs", BR, 201, {"groupSeq": "0"})
    mode = {"topic": "t1", "consumerGroup": "g1", "mode": "PULL", "popShareQueueNum": 0}
    step("set request mode", BR, 401, {}, json.dumps(mode).encode())
    step("set request mode, pop", BR, 401, {}, json.dumps(dict(mode, mode="POP")).encode())
    step("set request mode, retry topic", BR, 401, {},
         json.dumps(dict(mode, topic="%RETRY%g1")).encode())
    step("set request mode, odd", BR, 401, {}, json.dumps(dict(mode, mode="ODD")).encode())
    step("set request mode, pull again", BR, 401, {}, json.dumps(mode).encode())
    query = {"topic": "t1", "consumerGroup": "g1", "clientId": "c1", "strategyName": "AVG",
             "messageModel": "CLUSTERING"}
    step("assignment", BR, 400, {}, json.dumps(query).encode())
    step("assignment, by circle", BR, 400, {},
         json.dumps(dict(query, strategyName="AVG_BY_CIRCLE")).encode())
    step("assignment, odd strategy", BR, 400, {},
         json.dumps(dict(query, strategyName="ODD")).encode())
    step("assignment, broadcasting", BR, 400, {},
         json.dumps(dict(query, messageModel="BROADCASTING")).encode())
    step("assignment, unknown topic", BR, 400, {},
         json.dumps(dict(query, topic="nowhere")).encode())
    step("assignment, unknown group", BR, 400, {},
         json.dumps(dict(query, consumerGroup="nobody")).encode())
    step("assignment, unknown client", BR, 400, {},
         json.dumps(dict(query, clientId="stranger")).encode())
    step("delete group", BR, 207, {"groupName": "made", "cleanOffset": "false"})
    step("delete group, again", BR, 207, {"groupName": "made"})
    step("delete group, with positions", BR, 207, {"groupName": "g1", "cleanOffset": "true"})
    step("position after its group is deleted", BR, 14, dict(where, consumerGroup="g1"))
    step("retry topic after its group is deleted", BR, 351, {"topic": "%RETRY%g1"})
    step("delete group, no field", BR, 207, {})


def main():
    doors = {NS: Door(sys.argv[1]), BR: Door(sys.argv[2])}
    for part in (name_server, sends, batches, topics, pulls, offsets, groups, last,
                 topic_lists, administration):
        part()
    for name, door, code, fields, body, version, oneway in STEPS:
        try:
            answer = doors[door].call(code, fields, body, version, oneway)
        except (EOFError, OSError) as fault:
            answer = {"closed": str(fault)}
            doors[door] = Door(sys.argv[1 if door == NS else 2])
        request = {"code": code, "ext": fields, "version": version}
        if len(body) > 65536:
            request["fill"] = [body[:1].decode(), len(body)]
        elif body:
            request.update(text(body))
        print(json.dumps({"name": name, "door": door, "request": request, "answer": answer}))


main()
