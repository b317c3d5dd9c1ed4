"""A store directory that one broker after the other has."""
import json
import os
import re
import subprocess

import remoting as r
from harness import command, free_ports, registered, rmqctl, wait_until
from remoting import expect

# Small files, so that a few megabytes make several; both brokers must be told the same.
FILES = ['mappedFileSizeCommitLog=4194304', 'mappedFileSizeConsumeQueue=20000', 'maxMessageSize=1048576',
         'flushConsumerOffsetInterval=1000']


def check_store(store):
    """The report of rmqctl store check; it must be clean."""
    done = subprocess.run([rmqctl(), 'store', 'check', store, '--json'], capture_output=True, text=True,
                          timeout=300)
    expect(done.returncode == 0, 'rmqctl store check ends with %d: %s%s' % (
        done.returncode, done.stdout, done.stderr))
    return json.loads(done.stdout)


def relaxed_json(body):
    """fastjson writes numbers as names without quotes."""
    return json.loads(re.sub(r'([{,]\s*)(\d+):', r'\1"\2":', body.decode()))


class Directory:
    """A directory that one broker after the other has. crc: they give each record a CRC of all of its bytes,
    where they know how to, and RocketMQ 5.5 takes no other records."""

    def __init__(self, place, path, crc=False):
        self.place, self.path, self.store, self.crc = place, path, path + '/store', crc
        self.options = []               # of both brokers, beside FILES
        os.makedirs(path)
        self.namesrv_port, self.broker_port = free_ports()
        self.broker = '127.0.0.1:%d' % self.broker_port
        self.namesrv = '127.0.0.1:%d' % self.namesrv_port
        self.names = place.procs.start(command('rmqd', 'namesrv', path, self.namesrv_port, self.broker_port),
                                       path + '/namesrv.log')
        wait_until(lambda: registered(self.namesrv), 30, 'rmq-namesrvd', self.names)
        self.process = None

    def start(self, target):
        log = '%s/%s.log' % (self.path, target)
        # Recalls name topic and key, which RocketMQ 5.5 understands when it is told so.
        extra = FILES + self.options
        if target == 'reference':
            extra = extra + ['appendTopicForTimerDeleteKey=true']
        if self.crc and target != 'reference49':
            extra = extra + ['enabledAppendPropCRC=true']
        if self.crc and target == 'reference':
            extra = extra + ['forceVerifyPropCRC=true']
        self.process = self.place.procs.start(
            command(target, 'broker', self.path, self.namesrv_port, self.broker_port, extra), log)
        wait_until(lambda: registered(self.namesrv, self.broker), 240, '%s (log: %s)' % (target, log),
                   self.process)
        self.client = r.Client(self.broker)

    def journal(self):
        with open(self.path + '/rmqd.log', errors='replace') as f:
            return f.read()

    def wait_for_offsets(self, snap):
        self.wait_for_file('consumerOffset.json', {
            ('Plain@' + group, str(queue)): offset for (group, queue), offset in snap['committed'].items()})

    def wait_for_file(self, name, offsets):
        """Until the offsets are in their file. RocketMQ begins with that 10 s after its start."""
        def written():
            try:
                with open(self.store + '/config/' + name, 'rb') as f:
                    table = relaxed_json(f.read())['offsetTable']
            except (OSError, ValueError):
                return False            # it is being replaced
            return all(str(table.get(group, {}).get(queue)) == str(offset)
                       for (group, queue), offset in offsets.items())
        wait_until(written, 60, name, self.process)

    def end(self, how):
        self.client.close()
        if how == 'kill':
            self.process.kill()
            self.process.wait()
        self.place.procs.stop(self.process, 60)

    def close(self):
        for p in (self.process, self.names):
            if p is not None:
                self.place.procs.stop(p, 60)
