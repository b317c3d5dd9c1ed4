"""A broker whose figures are taken, and what the programs here share."""
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Broker:
    def __init__(self, o):
        self.o, self.process = o, None
        self.store = o.store or tempfile.mkdtemp(prefix='rmqd-figures-')
        self.namesrv = o.namesrv or f'127.0.0.1:{free_port()}'
        self.port = free_port()

    def start(self):
        if self.o.namesrv:
            return 0.0
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.o.rmqd, '--standalone', '-o', f'storePathRootDir={self.store}',
             '-o', f'listenPort={self.port}', '-o', f'namesrvListenPort={self.namesrv.split(":")[1]}',
             '-o', 'bindAddress=127.0.0.1',
             '-o', 'brokerIP1=127.0.0.1'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(self.ctl('cluster', 'list', '--json', check=False).stdout) < 10:  # no broker registered yet
            time.sleep(0.01)
        return time.monotonic() - began

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()

    def rss(self):
        if not self.process:
            return 0
        for line in open(f'/proc/{self.process.pid}/status'):
            if line.startswith('VmRSS'):
                return int(line.split()[1]) * 1024

    def ctl(self, *args, check=True):
        return subprocess.run([self.o.rmqctl, '-n', self.namesrv, *args], check=check, capture_output=True,
                              text=True)

    def load(self, topic, *args):
        return json.loads(self.ctl('bench', 'send', topic, '--json', *args).stdout)

    def info(self):
        out = self.ctl('broker', 'status', '--json', check=False).stdout
        return json.loads(out) if out.startswith(('[', '{')) else {}
