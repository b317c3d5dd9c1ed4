"""Connections that send and receive what there is and never wait, for programs that are hundreds of clients;
and what a broker's process takes meanwhile."""
import json
import os
import pathlib
import resource
import selectors
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'interop'))
import remoting as r  # noqa: E402

most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))


def frame(code, opaque, fields, body=b''):
    text = {k: str(v) for k, v in fields.items()}
    header = json.dumps(dict(code=code, flag=0, language='JAVA', opaque=opaque, version=493,
                             serializeTypeCurrentRPC='JSON', extFields=text)).encode()
    return struct.pack('>II', 4 + len(header) + len(body), len(header)) + header + body


class Wire:
    """A connection that sends and receives what there is, and never waits."""

    def __init__(self, address):
        host, port = address.rsplit(':', 1)
        self.socket = socket.create_connection((host, int(port)), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.out, self.came, self.unanswered = b'', b'', 0

    def fileno(self):
        return self.socket.fileno()

    def flush(self):
        if self.out:
            try:
                self.out = self.out[self.socket.send(self.out):]
            except BlockingIOError:
                pass

    def receive(self):
        """Header and body, as bytes, of each frame that is whole."""
        try:
            got = self.socket.recv(1 << 20)
        except BlockingIOError:
            return []
        if not got:
            raise ConnectionError('the broker closed the connection')
        data, at, frames = self.came + got, 0, []
        while at + 8 <= len(data):
            size, head = struct.unpack_from('>II', data, at)
            if at + 4 + size > len(data):
                break
            head &= 0xffffff
            frames.append((data[at + 8:at + 8 + head], data[at + 8 + head:at + 4 + size]))
            at += 4 + size
        self.came = data[at:]
        return frames


def blast(address, frames, connections=4, window=64, take=None):
    """Sends all frames, so many at a time unanswered on each connection; take(header, body) gets answers."""
    wires, selector = [Wire(address) for _ in range(connections)], selectors.DefaultSelector()
    for w in wires:
        selector.register(w, selectors.EVENT_READ)
    next_one, answered = 0, 0
    while answered < len(frames):
        for w in wires:
            n = min(window - w.unanswered, len(frames) - next_one)
            if n > 0:
                w.out += b''.join(frames[next_one:next_one + n])
                w.unanswered += n
                next_one += n
            w.flush()
        for key, _ in selector.select(0.001 if any(w.out for w in wires) else 10):
            for header, body in key.fileobj.receive():
                key.fileobj.unanswered -= 1
                answered += 1
                if take:
                    take(header, body)
                elif b'"code":0' not in header:
                    raise r.Refused(header.decode())
    for w in wires:
        w.socket.close()


def cpu_seconds(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Measured:
    """Seconds and the broker's CPU seconds of a block."""

    def __init__(self, b):
        self.pid = b.process.pid

    def __enter__(self):
        self.began, self.cpu = time.monotonic(), cpu_seconds(self.pid)
        return self

    def __exit__(self, *_):
        self.seconds, self.cpu = time.monotonic() - self.began, cpu_seconds(self.pid) - self.cpu

    def of(self, n):
        return {'per second': round(n / self.seconds), 'CPU us each': round(self.cpu / n * 1e6, 1)}
