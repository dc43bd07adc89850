"""librdkafka (confluent-kafka) under command: driver.py BOOTSTRAP, commands on standard input (see commanded.py)."""
import functools
import sys
import time

from confluent_kafka import (OFFSET_BEGINNING, TIMESTAMP_CREATE_TIME, Consumer,
                             KafkaException, Producer, TopicPartition)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

import commanded
from wire import emit, hexed


def described(message):
    kind, timestamp = message.timestamp()
    headers = [[name.encode().hex(), hexed(value)] for name, value in message.headers() or []]
    return {"topic": message.topic(), "partition": message.partition(),
            "offset": message.offset(), "timestamp": timestamp,
            "timestampType": "CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime",
            "key": hexed(message.key()), "value": hexed(message.value()), "headers": headers}


class Member(commanded.Member):
    def __init__(self, name, config, topics):
        super().__init__(name, Consumer(config))
        self.consumer.subscribe(topics, on_assign=self.gain, on_revoke=self.give_up,
                                on_lost=self.give_up)

    def gain(self, _, partitions):
        self.partitions |= {f"{p.topic}-{p.partition}" for p in partitions}

    def give_up(self, _, partitions):
        self.partitions -= {f"{p.topic}-{p.partition}" for p in partitions}

    def step(self):
        message = self.consumer.poll(0.05)
        if message is None:
            return
        if message.error():
            raise KafkaException(message.error())
        self.tell(described(message))


class Driver(commanded.Driver):
    def producer(self, args):
        """producer id= [compression=] [c.CONFIG=]: records wait for `flush`, to share batches."""
        config = args.config(linger_ms="60000", batch_size="1000000")
        config.update({"bootstrap.servers": self.bootstrap,
                       "compression.type": args.get("compression", "none")})
        self.producers[args.need("id")] = Producer(config)
        self.sends[args.need("id")] = []

    def send(self, args):
        """send id= topic= [partition=] [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]..."""
        results = self.sends[args.need("id")]
        at = len(results)
        results.append({"failed": "no delivery report"})

        def delivered(error, message):
            results[at] = {"failed": str(error)} if error else {
                "partition": message.partition(), "offset": message.offset(),
                "timestamp": message.timestamp()[1]}

        where = {} if args.get("partition") is None else {"partition": int(args.get("partition"))}
        when = {} if args.get("ts") is None else {"timestamp": int(args.get("ts"))}
        self.producers[args.need("id")].produce(
            args.need("topic"), value=args.bytes("value"), key=args.bytes("key"), headers=args.headers(),
            on_delivery=delivered, **where, **when)

    def flush(self, args):
        """flush id=: one line for each send since the last flush, in the order of the sends."""
        left = self.producers[args.need("id")].flush(120)
        if left:
            raise TimeoutError(f"{left} records were not delivered in time")
        for result in self.sends[args.need("id")]:
            emit(result)
        self.sends[args.need("id")] = []

    def close(self, args):
        self.producers.pop(args.need("id"))

    def read(self, args):
        """read topic= [timeout=ms] [c.CONFIG=]: every record below the end of now."""
        config = args.config(group_id="unused", enable_auto_commit="false")
        consumer = Consumer({**config, "bootstrap.servers": self.bootstrap})
        try:
            self.read_all(consumer, args)
        finally:
            consumer.close()

    def read_all(self, consumer, args):
        topic = args.need("topic")
        deadline = time.monotonic() + int(args.get("timeout", "120000")) / 1000
        partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        ends = {}
        for partition in partitions:
            place = TopicPartition(topic, partition)
            _, ends[partition] = consumer.get_watermark_offsets(place, timeout=120)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        left = {partition for partition, end in ends.items() if end > 0}
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything below {ends} came in time")
            message = consumer.poll(0.1)
            if message is None:
                # Positions pass what is not delivered, such as control records.
                for at in consumer.position([TopicPartition(topic, p) for p in left]):
                    if at.offset >= ends[at.partition]:
                        left.discard(at.partition)
                continue
            if message.error():
                raise KafkaException(message.error())
            emit(described(message))
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())

    def join(self, args):
        """join name= group= topics=a,b [c.CONFIG=]: a member; its records come as events."""
        config = args.config(auto_offset_reset="earliest", auto_commit_interval_ms="200")
        config.update({"bootstrap.servers": self.bootstrap, "group.id": args.need("group")})
        self.enter(args, Member(args.need("name"), config, args.need("topics").split(",")))

    def init(self, args):
        self.producers[args.need("id")].init_transactions(120)

    def commit(self, args):
        self.producers[args.need("id")].commit_transaction(60)

    def abort(self, args):
        self.producers[args.need("id")].abort_transaction(60)

    def transform(self, args):
        """transform id= group= from= to= count= [abort=n]: copies records in transactions."""
        config = args.config(auto_offset_reset="earliest", enable_auto_commit="false",
                             isolation_level="read_committed")
        config.update({"bootstrap.servers": self.bootstrap, "group.id": args.need("group")})
        consumer = Consumer(config)
        try:
            self.copy(consumer, self.producers[args.need("id")], args)
        finally:
            consumer.close()

    def copy(self, consumer, producer, args):
        count, every = int(args.need("count")), int(args.get("abort", "0"))
        copied, aborted, transactions = 0, 0, 0
        deadline = time.monotonic() + int(args.get("timeout", "120000")) / 1000
        consumer.subscribe([args.need("from")])
        while copied < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{copied} of {count} records in time")
            messages = [m for m in consumer.consume(7, 0.1) if not m.error()]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                producer.produce(args.need("to"), value=message.value(), key=message.key(),
                                 partition=message.partition())
            places = {}
            for message in messages:
                places[message.partition()] = message.offset() + 1
            positions = [TopicPartition(args.need("from"), p, at) for p, at in places.items()]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 60)
            transactions += 1
            if every and transactions % every == 0:
                producer.abort_transaction(60)
                aborted += 1
                for at in consumer.committed(consumer.assignment(), 30):
                    at.offset = at.offset if at.offset >= 0 else 0
                    consumer.seek(at)
            else:
                producer.commit_transaction(60)
                copied += len(messages)
        emit({"copied": copied, "aborted": aborted})

    @functools.cached_property
    def admin(self):  # kept: its requests end with it
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def create(self, args):
        """create topic= partitions= key= value=: a topic with one configuration of its own."""
        topic = NewTopic(args.need("topic"), args.number("partitions"), 1,
                         config={args.need("key"): args.need("value")})
        self.admin.create_topics([topic])[topic.topic].result(60)

    def describe(self, args):
        """describe topic= key=: how many partitions it has and the value of that configuration."""
        name = args.need("topic")
        found = self.admin.list_topics(name, timeout=60).topics[name]
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        config = self.admin.describe_configs([resource])[resource].result(60)
        emit({"partitions": len(found.partitions), "value": config[args.need("key")].value})

    def delete(self, args):
        name = args.need("topic")
        self.admin.delete_topics([name])[name].result(60)

    def topics(self, _):
        emit({"topics": sorted(self.admin.list_topics(timeout=60).topics)})


if __name__ == "__main__":
    Driver(sys.argv[1]).serve(sys.stdin)
