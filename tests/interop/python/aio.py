"""aiokafka under command: aio.py BOOTSTRAP, commands on standard input.

The line protocol and the commands are those of tests/interop/java/KafkaDriver.java.
"""
import asyncio
import sys
import time

from aiokafka import (AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener,
                      TopicPartition)
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import for_code

from wire import done, emit, failed, hexed, parts


def described(record):
    headers = [[name.encode().hex(), hexed(value)] for name, value in record.headers]
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": "LogAppendTime" if record.timestamp_type == 1 else "CreateTime",
            "key": hexed(record.key), "value": hexed(record.value), "headers": headers}


def judge(code):
    if code != 0:
        raise for_code(code)


class Member(ConsumerRebalanceListener):
    """One consumer of a group, polled by its own task."""

    def __init__(self, name, consumer, topics):
        self.name, self.consumer = name, consumer
        self.partitions, self.leaving = set(), False
        consumer.subscribe(topics, listener=self)
        self.task = asyncio.create_task(self.run())

    def on_partitions_assigned(self, assigned):
        self.partitions = {f"{p.topic}-{p.partition}" for p in assigned}

    def on_partitions_revoked(self, revoked):
        self.partitions = set()

    async def run(self):
        await self.consumer.start()
        try:
            while not self.leaving:
                for records in (await self.consumer.getmany(timeout_ms=50)).values():
                    for record in records:
                        emit({**described(record), "event": "record", "member": self.name})
        finally:
            await self.consumer.stop()

    def assigned(self):
        if self.task.done():
            self.task.result()
        return sorted(self.partitions)

    async def leave(self):
        self.leaving = True
        await self.task


class Driver:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.producers, self.sends, self.members = {}, {}, {}

    async def producer(self, args):
        """producer id= [compression=] [c.CONFIG=]: records wait for `flush`, to share batches."""
        config = args.keywords(linger_ms=50, max_batch_size=1_000_000)
        compression = args.get("compression", "none")
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if compression == "none" else compression, **config)
        self.producers[args.need("id")] = producer
        self.sends[args.need("id")] = []
        if "transactional_id" not in config:  # else `init` does it
            await producer.start()

    async def send(self, args):
        """send id= topic= [partition=] [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]..."""
        sent = await self.producers[args.need("id")].send(
            args.need("topic"), value=args.bytes("value"), key=args.bytes("key"),
            headers=args.headers(), partition=args.number("partition"),
            timestamp_ms=args.number("ts"))
        self.sends[args.need("id")].append(sent)

    async def flush(self, args):
        """flush id=: one line for each send since the last flush, in the order of the sends."""
        sends, self.sends[args.need("id")] = self.sends[args.need("id")], []
        for at in await asyncio.gather(*sends, return_exceptions=True):
            if isinstance(at, Exception):
                emit({"failed": repr(at)})
            else:
                emit({"partition": at.partition, "offset": at.offset, "timestamp": at.timestamp})

    async def close(self, args):
        await self.producers.pop(args.need("id")).stop()

    async def read(self, args):
        """read topic= [timeout=ms] [c.CONFIG=]: every record below the end of now."""
        topic = args.need("topic")
        (found,) = await self.admin(lambda admin: admin.describe_topics([topic]))
        places = [TopicPartition(topic, p["partition"]) for p in found["partitions"]]
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False,
                                    auto_offset_reset="earliest", **args.keywords())
        await consumer.start()
        try:
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            await self.read_all(consumer, places, args.number("timeout", 30_000) / 1000)
        finally:
            await consumer.stop()

    @staticmethod
    async def read_all(consumer, places, limit):
        deadline = time.monotonic() + limit
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < ends[place] for place in places]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything below {ends} came in time")
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    emit(described(record))

    def consumer(self, args, **defaults):
        return AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=args.need("group"),
                                partition_assignment_strategy=[RangePartitionAssignor],
                                **args.keywords(auto_offset_reset="earliest", **defaults))

    async def join(self, args):
        """join name= group= topics=a,b [c.CONFIG=]: a member; its records come as events."""
        consumer = self.consumer(args, auto_commit_interval_ms=200)
        self.members[args.need("name")] = Member(args.need("name"), consumer,
                                                 args.need("topics").split(","))

    async def assignment(self, args):
        emit({"partitions": self.members[args.need("name")].assigned()})

    async def leave(self, args):
        await self.members.pop(args.need("name")).leave()

    async def init(self, args):
        await self.producers[args.need("id")].start()

    async def begin(self, args):
        await self.producers[args.need("id")].begin_transaction()

    async def commit(self, args):
        await self.producers[args.need("id")].commit_transaction()

    async def abort(self, args):
        await self.producers[args.need("id")].abort_transaction()

    async def transform(self, args):
        """transform id= group= from= to= count= [abort=n]: copies records in transactions."""
        consumer = self.consumer(args, enable_auto_commit=False, max_poll_records=7,
                                 isolation_level="read_committed")
        consumer.subscribe([args.need("from")])
        await consumer.start()
        try:
            await self.copy(consumer, self.producers[args.need("id")], args)
        finally:
            await consumer.stop()

    @staticmethod
    async def copy(consumer, producer, args):
        count, every = args.number("count"), args.number("abort", 0)
        copied, aborted, transactions = 0, 0, 0
        deadline = time.monotonic() + args.number("timeout", 60_000) / 1000
        while copied < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{copied} of {count} records in time")
            polled = await consumer.getmany(timeout_ms=100)
            if not polled:
                continue
            await producer.begin_transaction()
            for record in sum(polled.values(), []):
                await producer.send(args.need("to"), value=record.value, key=record.key,
                                    partition=record.partition)
            positions = {place: records[-1].offset + 1 for place, records in polled.items()}
            await producer.send_offsets_to_transaction(positions, args.need("group"))
            transactions += 1
            if every and transactions % every == 0:
                await producer.abort_transaction()
                aborted += 1
                for place in consumer.assignment():
                    consumer.seek(place, await consumer.committed(place) or 0)
            else:
                await producer.commit_transaction()
                copied += sum(map(len, polled.values()))
        emit({"copied": copied, "aborted": aborted})

    async def admin(self, work):
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            return await work(admin)
        finally:
            await admin.close()

    async def create(self, args):
        """create topic= partitions= key= value=: a topic with one configuration of its own."""
        topic = NewTopic(args.need("topic"), args.number("partitions"), 1,
                         topic_configs={args.need("key"): args.need("value")})
        answer = await self.admin(lambda admin: admin.create_topics([topic]))
        for _, code, *_ in answer.topic_errors:
            judge(code)

    async def describe(self, args):
        """describe topic= key=: how many partitions it has and the value of that configuration."""
        name = args.need("topic")
        (found,) = await self.admin(lambda admin: admin.describe_topics([name]))
        judge(found["error_code"])
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        (configs,) = await self.admin(lambda admin: admin.describe_configs([resource]))
        entries = configs.to_object()["resources"][0]["config_entries"]
        (value,) = [e["config_value"] for e in entries if e["config_names"] == args.need("key")]
        emit({"partitions": len(found["partitions"]), "value": value})

    async def delete(self, args):
        answer = await self.admin(lambda admin: admin.delete_topics([args.need("topic")]))
        for _, code in answer.topic_error_codes:
            judge(code)

    async def topics(self, _):
        emit({"topics": sorted(await self.admin(lambda admin: admin.list_topics()))})


VERBS = ("producer", "send", "flush", "close", "read", "join", "assignment", "leave", "init", "begin",
         "commit", "abort", "transform", "create", "describe", "delete", "topics")


async def main():
    driver = Driver(sys.argv[1])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        verb, args = parts(line)
        try:
            if verb not in VERBS:
                raise ValueError(f"no such command: {verb}")
            await getattr(driver, verb)(args)
            if verb != "send":  # `flush` tells how it ended
                done()
        except Exception as error:  # the other side of the pipe judges it
            failed(error)


if __name__ == "__main__":
    asyncio.run(main())
