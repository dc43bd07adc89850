"""What the drivers of clients for Python share: members of groups, commands that are only handed on, the loop.

The line protocol and the commands are those of tests/interop/java/KafkaDriver.java.
"""
import threading

from wire import done, emit, failed, parts

VERBS = ("producer", "send", "flush", "close", "read", "join", "assignment", "leave", "init", "begin",
         "commit", "abort", "transform", "create", "describe", "delete", "topics")


class Member(threading.Thread):
    """One consumer of a group, polled by its own thread; its kind says how in `step`."""

    def __init__(self, name, consumer):
        super().__init__(name=name, daemon=True)
        self.consumer = consumer
        self.leaving = threading.Event()
        self.failure = None
        self.partitions = set()  # asking the consumer itself from another thread may block

    def tell(self, described):
        emit({**described, "event": "record", "member": self.name})

    def run(self):
        try:
            while not self.leaving.is_set():
                self.step()
        except Exception as error:
            self.failure = error
        finally:
            self.consumer.close()

    def assigned(self):
        if self.failure:
            raise self.failure
        return sorted(self.partitions)

    def leave(self):
        self.leaving.set()
        self.join()
        if self.failure:
            raise self.failure


class Driver:
    """A driver whose calls block; a client's kind adds the commands that it answers in its own way."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.producers, self.sends, self.members = {}, {}, {}

    def enter(self, args, member):
        self.members[args.need("name")] = member
        member.start()

    def assignment(self, args):
        emit({"partitions": self.members[args.need("name")].assigned()})

    def leave(self, args):
        self.members.pop(args.need("name")).leave()

    def begin(self, args):
        self.producers[args.need("id")].begin_transaction()

    def serve(self, lines):
        """Obeys each line until there is none."""
        for line in lines:
            verb, args = parts(line)
            try:
                if verb not in VERBS:
                    raise ValueError(f"no such command: {verb}")
                getattr(self, verb)(args)
                if verb != "send":  # `flush` tells how it ended
                    done()
            except Exception as error:  # the other side of the pipe judges it
                failed(error)
