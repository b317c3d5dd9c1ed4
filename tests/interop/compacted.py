"""A compacted topic for tests of store directories: what is written to it, and what is left of it."""
import struct
import time

import remoting as r
from harness import wait_until
from remoting import expect, unique

TOPIC = 'Compacted'
KEYS = 30


def write(client, first, count):
    for i in range(first, first + count):
        r.send(client, TOPIC, 0, b'%d ' % i + b'x' * (150 + i % 90), r.properties(
            KEYS='key%d' % (i % KEYS), TAGS='t%d' % (i % 2), UNIQ_KEY=unique('comp', i)))


def read(client):
    """{queue offset: record without its physical offset} of a consumer that begins at 0."""
    _, end = r.offsets(client, TOPIC, 0)
    at, out = 0, {}
    while at < end:
        fields = dict(consumerGroup='reader', topic=TOPIC, queueId=0, queueOffset=at, maxMsgNums=32,
                      sysFlag=4, commitOffset=0, suspendTimeoutMillis=0, subscription='*', subVersion=0,
                      expressionType='TAG')
        header, body = client.call(r.PULL, fields, good=(r.SUCCESS,))
        while body:
            size, = struct.unpack_from('>I', body)
            offset, = struct.unpack_from('>q', body, 20)
            expect(not out or offset > max(out), 'offset %d after %s' % (offset, sorted(out)[-1:]))
            out[offset] = body[:28] + body[36:size]
            body = body[size:]
        at = int(header['extFields']['nextBeginOffset'])
    return out


def wait(client, count, what):
    """Until the full files of the queue are compacted: what is left then. Every message is as its offset
    says, and the latest of each key is there."""
    left = {}

    def few():
        left.clear()
        left.update(read(client))
        return len(left) < KEYS + 100    # the last file has 99 at most
    wait_until(few, 60, what + ' compacts')
    while True:                         # RocketMQ rests from 4 to 7 s
        time.sleep(8)
        before = dict(left)
        few()
        if left == before:
            break
    for offset, record in left.items():
        expect(b'%d xxx' % offset in record, '%s: another message at %d: %r' % (what, offset, record))
    lost = set(range(count - KEYS, count)) - set(left)
    expect(not lost, '%s: the latest of their keys are lost: %s' % (what, sorted(lost)))
    return dict(left)


def same_records(before, after, what):
    expect(sorted(before) == sorted(after), '%s: lost %s, new %s' % (
        what, sorted(set(before) - set(after)), sorted(set(after) - set(before))))
    other = [k for k in before if before[k] != after[k]]
    expect(not other, '%s: other bytes at %s' % (what, other))
