"""Half messages for tests that speak the protocol by hand. Each is known by its body, and ended by the place
of its first copy, as a producer does that is late."""
import json
import struct
import subprocess

import remoting as r
from harness import wait_until

HALF_TOPIC = 'RMQ_SYS_TRANS_HALF_TOPIC'
# Nobody is asked: whoever has the directory leaves half messages where they are.
UNCHECKED = ['transactionCheckInterval=3600000']
# RocketMQ copies them once a second, whether a producer is there or not.
CHECKED = ['transactionCheckInterval=1000', 'transactionTimeOut=1000', 'transactionCheckMax=10000']


class Halves:
    """Of the topic Tran at the broker that has the directory `d` now."""

    def __init__(self, d, rmqctl, expect):
        self.d, self.rmqctl, self.expect = d, rmqctl, expect
        self.places, self.keys = {}, {}

    def make_topic(self):
        self.d.client.call(r.UPDATE_TOPIC, dict(
            topic='Tran', defaultTopic='TBW102', readQueueNums=1, writeQueueNums=1, perm=6,
            topicFilterType='SINGLE_TAG', topicSysFlag=0, order='false'))

    def send(self, *bodies):
        for body in bodies:
            self.keys[body] = 'tran%028d' % len(self.places)
            header, _ = self.d.client.call(r.SEND, r.send_fields('Tran', 0, r.properties(
                TRAN_MSG='true', PGROUP='p', UNIQ_KEY=self.keys[body])), body.encode())
            answer = header['extFields']
            self.places[body] = answer['queueOffset'], int(answer['msgId'][16:], 16)

    def end(self, body, decision):
        queue_offset, physical = self.places[body]
        self.d.client.call(r.END_TRANSACTION, dict(
            topic='Tran', producerGroup='p', tranStateTableOffset=queue_offset, commitLogOffset=physical,
            commitOrRollback=decision, fromTransactionCheck='true', msgId='m'))

    def stored(self):
        """How many there are in the half topic, each copy counted."""
        return r.offsets(self.d.client, HALF_TOPIC, 0)[1]

    def wait_for_copies(self):
        """Until RocketMQ has copied each of them again."""
        wanted = self.stored() + 2 * len(self.places)
        wait_until(lambda: self.stored() >= wanted, 60, 'copies of half messages', self.d.process)

    def expect_visible(self, *want):
        client = self.d.client
        wait_until(lambda: len(r.pull_all(client, 'Tran', 0)) >= len(want), 10, 'what was committed')
        got = []
        for record in r.pull_all(client, 'Tran', 0).values():
            size, = struct.unpack_from('>I', record, 84)
            got.append(record[88:88 + size].decode())
        self.expect(sorted(got) == sorted(want), 'visible: %s, not %s' % (got, want))

    def expect_open(self, *want):
        done = subprocess.run([self.rmqctl, '-n', self.d.namesrv, 'transaction', 'list', '--json'],
                              capture_output=True, text=True)
        got = sorted(x['msgId'] for x in json.loads(done.stdout))
        self.expect(got == sorted(self.keys[b] for b in want), 'open: %s of %s, not %s' % (
            done.stdout, self.keys, want))
