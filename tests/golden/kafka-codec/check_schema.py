#!/usr/bin/env python3
"""Checks broker/src/kafka/codec/schema.txt against the message schemas of a kafka-clients jar.

usage: check_schema.py JAR [--write]

Prints a diff and exits with 1 when the table differs; `--write` rewrites the table instead.
The table keeps only facts of the wire: names, types, versions, nullability, tags, defaults.
"""

import difflib
import json
import pathlib
import re
import sys
import zipfile

# One name per API that the server speaks: the request and the response of each.
APIS = """
Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat
LeaveGroup SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics InitProducerId
OffsetForLeaderEpoch DescribeConfigs DeleteGroups CreatePartitions IncrementalAlterConfigs
DescribeCluster DescribeTopicPartitions OffsetDelete ConsumerGroupHeartbeat ConsumerGroupDescribe
AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers
TxnOffsetCommit DescribeProducers DescribeTransactions ListTransactions
DeleteRecords AlterConfigs AlterReplicaLogDirs DescribeLogDirs ElectLeaders
AlterPartitionReassignments ListPartitionReassignments DescribeClientQuotas AlterClientQuotas
DescribeUserScramCredentials AlterUserScramCredentials DescribeQuorum UpdateFeatures
UnregisterBroker ListConfigResources DescribeAcls CreateAcls DeleteAcls
GetTelemetrySubscriptions PushTelemetry
""".split()

SCHEMA = pathlib.Path(__file__).parents[3] / "broker/src/kafka/codec/schema.txt"

HEAD = """\
# Kafka's messages, one line a field; build.rs makes the types and their codecs from this table.
# Checked against the jar of kafka-clients 4.3.1 by tests/golden/kafka-codec/check_schema.py.
#
#   request|response API_KEY NAME VERSIONS FLEXIBLE_VERSIONS
#     NAME TYPE VERSIONS [null=VERSIONS] [tag=N:VERSIONS] [default=VALUE]
#     struct NAME VERSIONS          a type that several fields of the message share
#
# Fields of a struct stand two columns further in. `-` = in no version, `3+` = from 3 on.
"""


def without_comments(text):
    """Drops // comments that are not inside a string."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda m: m.group(1) or "", text)


def parse_versions(text):
    if text == "none":
        return None
    if text.endswith("+"):
        return int(text[:-1]), 32767
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def show_versions(versions):
    if versions is None:
        return "-"
    low, high = versions
    if high == 32767:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def overlap(a, b):
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else None



def field_lines(field, indent, served):
    versions = parse_versions(field["versions"])
    if overlap(versions, served) is None:
        return []
    if "flexibleVersions" in field:
        raise SystemExit(f"{field['name']}: a field with flexible versions of its own")
    words = [field["name"], field["type"], show_versions(versions)]
    nullable = parse_versions(field.get("nullableVersions", "none"))
    if nullable and overlap(nullable, served):
        words.append("null=" + show_versions(nullable))
    if "tag" in field:
        words.append(f"tag={field['tag']}:{field['taggedVersions']}")
    default = field.get("default", "")
    # Some schemas quote true and false, some do not.
    default = str(default).lower() if isinstance(default, bool) else str(default)
    if default != "":
        words.append("default=" + default)
    lines = [" " * indent + " ".join(words)]
    for child in field.get("fields", []):
        lines += field_lines(child, indent + 2, served)
    return lines


def message_lines(schema):
    low, high = parse_versions(schema["validVersions"])
    if schema.get("latestVersionUnstable"):
        high -= 1
    name = schema["name"].removesuffix("Request").removesuffix("Response")
    flexible = show_versions(parse_versions(schema["flexibleVersions"]))
    lines = [f"{schema['type']} {schema['apiKey']} {name} {show_versions((low, high))} {flexible}"]
    for struct in schema.get("commonStructs", []):
        lines.append(f"  struct {struct['name']} {struct['versions']}")
        for child in struct["fields"]:
            lines += field_lines(child, 4, (low, high))
    for field in schema["fields"]:
        lines += field_lines(field, 2, (low, high))
    return lines


def table(jar):
    with zipfile.ZipFile(jar) as archive:
        schemas = [
            json.loads(without_comments(archive.read(f"common/message/{name}{kind}.json").decode()))
            for name in APIS
            for kind in ("Request", "Response")
        ]
    for request, response in zip(schemas[::2], schemas[1::2]):
        # The unstable version of a pair is declared on the request alone.
        if request.get("latestVersionUnstable"):
            response["latestVersionUnstable"] = True
    schemas.sort(key=lambda schema: schema["apiKey"])
    return HEAD + "".join("\n" + "\n".join(message_lines(schema)) + "\n" for schema in schemas)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        raise SystemExit(__doc__)
    wanted = table(sys.argv[1])
    if sys.argv[2:]:
        SCHEMA.write_text(wanted)
        return
    found = SCHEMA.read_text()
    diff = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), str(SCHEMA), sys.argv[1], lineterm=""
    )
    lines = list(diff)
    print("\n".join(lines) if lines else "schema.txt agrees with the jar")
    raise SystemExit(1 if lines else 0)


main()
