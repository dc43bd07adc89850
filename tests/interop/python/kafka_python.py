"""kafka-python under command: kafka_python.py BOOTSTRAP, commands on standard input (see commanded.py)."""
import sys
import time

from kafka import (ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer,
                   OffsetAndMetadata, TopicPartition)
from kafka.admin import ConfigResource
from kafka.coordinator.assignors.range import RangePartitionAssignor

import commanded
from wire import emit, hexed

# For a poll during which a consumer may learn of its topic. A member joins without knowing it, and again when it does; if a poll ends
# between that second JoinGroup and its answer, kafka-python 3.0.12 forgets the join and stays without partitions.
JOINING_MS = 10_000


def described(record):
    headers = [[name.encode().hex(), hexed(value)] for name, value in record.headers]
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": "LogAppendTime" if record.timestamp_type == 1 else "CreateTime",
            "key": hexed(record.key), "value": hexed(record.value), "headers": headers}


def following(offset):
    """The position behind it."""
    return OffsetAndMetadata(offset + 1, "", -1)


class Member(commanded.Member, ConsumerRebalanceListener):
    """It commits what it has told."""

    def __init__(self, name, consumer, topics):
        super().__init__(name, consumer)
        consumer.subscribe(topics, listener=self)
        self.wait_ms = JOINING_MS

    def on_partitions_assigned(self, assigned):
        self.partitions = {f"{p.topic}-{p.partition}" for p in assigned}

    def on_partitions_revoked(self, revoked):
        self.partitions = set()

    def step(self):
        polled = self.consumer.poll(timeout_ms=self.wait_ms)
        self.wait_ms = 50
        for records in polled.values():
            for record in records:
                self.tell(described(record))


class Driver(commanded.Driver):
    def producer(self, args):
        """producer id= [compression=] [c.CONFIG=]: records wait for `flush`, to share batches."""
        config = args.keywords(linger_ms=60_000, batch_size=1_000_000)
        compression = args.get("compression", "none")
        self.producers[args.need("id")] = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if compression == "none" else compression, **config)
        self.sends[args.need("id")] = []

    def send(self, args):
        """send id= topic= [partition=] [ts=] [key=hex] [value=hex] [h=hexname:hexvalue]..."""
        sent = self.producers[args.need("id")].send(
            args.need("topic"), value=args.bytes("value"), key=args.bytes("key"),
            headers=args.headers(), partition=args.number("partition"),
            timestamp_ms=args.number("ts"))
        self.sends[args.need("id")].append(sent)

    def flush(self, args):
        """flush id=: one line for each send since the last flush, in the order of the sends."""
        self.producers[args.need("id")].flush(timeout=120)
        for sent in self.sends[args.need("id")]:
            if sent.failed():
                emit({"failed": repr(sent.exception)})
            else:
                at = sent.get()
                emit({"partition": at.partition, "offset": at.offset, "timestamp": at.timestamp})
        self.sends[args.need("id")] = []

    def close(self, args):
        self.producers.pop(args.need("id")).close()

    def read(self, args):
        """read topic= [timeout=ms] [c.CONFIG=]: every record below the end of now."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False,
                                 **args.keywords())
        try:
            self.read_all(consumer, args)
        finally:
            consumer.close()

    @staticmethod
    def read_all(consumer, args):
        topic = args.need("topic")
        deadline = time.monotonic() + args.number("timeout", 30_000) / 1000
        places = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
        ends = consumer.end_offsets(places)
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        while any(consumer.position(place) < ends[place] for place in places):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything below {ends} came in time")
            for records in consumer.poll(timeout_ms=100).values():
                for record in records:
                    emit(described(record))

    def consumer(self, args, **defaults):
        return KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=args.need("group"),
                             partition_assignment_strategy=[RangePartitionAssignor],
                             **args.keywords(auto_offset_reset="earliest", **defaults))

    def join(self, args):
        """join name= group= topics=a,b [c.CONFIG=]: a member; its records come as events."""
        consumer = self.consumer(args, auto_commit_interval_ms=200)
        self.enter(args, Member(args.need("name"), consumer, args.need("topics").split(",")))

    def init(self, args):
        self.producers[args.need("id")].init_transactions()

    def commit(self, args):
        self.producers[args.need("id")].commit_transaction()

    def abort(self, args):
        self.producers[args.need("id")].abort_transaction()

    def transform(self, args):
        """transform id= group= from= to= count= [abort=n]: copies records in transactions."""
        consumer = self.consumer(args, enable_auto_commit=False, max_poll_records=7,
                                 isolation_level="read_committed")
        try:
            self.copy(consumer, self.producers[args.need("id")], args)
        finally:
            consumer.close()

    @staticmethod
    def copy(consumer, producer, args):
        count, every = args.number("count"), args.number("abort", 0)
        copied, aborted, transactions = 0, 0, 0
        deadline = time.monotonic() + args.number("timeout", 60_000) / 1000
        consumer.subscribe([args.need("from")])
        while copied < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{copied} of {count} records in time")
            polled = consumer.poll(timeout_ms=JOINING_MS)
            if not polled:
                continue
            producer.begin_transaction()
            for record in sum(polled.values(), []):
                producer.send(args.need("to"), value=record.value, key=record.key,
                              partition=record.partition)
            positions = {p: following(records[-1].offset) for p, records in polled.items()}
            producer.send_offsets_to_transaction(positions, consumer.group_metadata())
            transactions += 1
            if every and transactions % every == 0:
                producer.abort_transaction()
                aborted += 1
                for place in consumer.assignment():
                    consumer.seek(place, consumer.committed(place) or 0)
            else:
                producer.commit_transaction()
                copied += sum(map(len, polled.values()))
        emit({"copied": copied, "aborted": aborted})

    def admin(self):
        return KafkaAdminClient(bootstrap_servers=self.bootstrap)

    def create(self, args):
        """create topic= partitions= key= value=: a topic with one configuration of its own."""
        wanted = {"num_partitions": args.number("partitions"), "replication_factor": 1,
                  "configs": {args.need("key"): args.need("value")}}
        self.admin().create_topics({args.need("topic"): wanted}, wait_for_metadata=True)

    def describe(self, args):
        """describe topic= key=: how many partitions it has and the value of that configuration."""
        name = args.need("topic")
        (found,) = self.admin().describe_topics([name])
        configs = self.admin().describe_configs([ConfigResource("TOPIC", name)])
        emit({"partitions": len(found["partitions"]),
              "value": configs["topic"][name][args.need("key")]["value"]})

    def delete(self, args):
        self.admin().delete_topics([args.need("topic")])

    def topics(self, _):
        emit({"topics": sorted(self.admin().list_topics())})


if __name__ == "__main__":
    Driver(sys.argv[1]).serve(sys.stdin)
