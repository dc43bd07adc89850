"""The line protocol of the drivers; tests/interop/java/Wire.java describes it."""
import json
import threading

output_lock = threading.Lock()


def emit(line):
    with output_lock:
        print(json.dumps(line), flush=True)


def done():
    emit({"done": True})


def failed(error):
    """The other side of the pipe judges it."""
    emit({"error": f"{type(error).__name__}: {error}"})


def hexed(data):
    return None if data is None else bytes(data).hex()


def text(hex_text):
    return bytes.fromhex(hex_text).decode()


def parts(line):
    """A command's verb and arguments."""
    verb, _, rest = line.rstrip("\n").partition(" ")
    return verb, Args(rest)


class Args:
    """The key=value words of a command; a key may come more than once."""

    def __init__(self, line):
        self.words = [tuple(word.split("=", 1)) for word in line.split(" ") if "=" in word]

    def all(self, key):
        return [value for name, value in self.words if name == key]

    def get(self, key, fallback=None):
        return next(iter(self.all(key)), fallback)

    def need(self, key):
        if self.get(key) is None:
            raise ValueError(f"the command lacks {key}=")
        return self.get(key)

    def bytes(self, key):
        return None if self.get(key) is None else bytes.fromhex(self.get(key))

    def number(self, key, fallback=None):
        return None if self.get(key, fallback) is None else int(self.get(key, fallback))

    def headers(self):
        """Name and bytes, or None, of each h=."""
        pairs = (pair.split(":") for pair in self.all("h"))
        return [(text(name), None if value == "-" else bytes.fromhex(value)) for name, value in pairs]

    def config(self, **defaults):
        """What c. sets and, where it does not, the defaults; names as Kafka's."""
        own = {name[2:]: value for name, value in self.words if name.startswith("c.")}
        return {**{name.replace("_", "."): value for name, value in defaults.items()}, **own}

    def keywords(self, **defaults):
        """The same as Python's keyword arguments: underscores, numbers and truths as such."""
        return {name.replace(".", "_"): plain(value)
                for name, value in {**defaults, **self.config()}.items()}


def plain(value):
    if not isinstance(value, str):
        return value
    return {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
