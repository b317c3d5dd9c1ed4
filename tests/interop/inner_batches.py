"""A topic with queue.type=BatchCQ for directories.py: what is written to it, and all that a client can see
of it."""
import re

import remoting as r

TOPIC = 'InnerBatches'


def write(client, who, count):
    """Single messages, and batches that are one record each, in two queues."""
    for i in range(count):
        if i % 3 == 0:
            r.send(client, TOPIC, i % 2, b'%s %d' % (who.encode(), i), r.properties(
                TAGS='single', UNIQ_KEY=r.unique(who, i)))
            continue
        r.send_batch(client, TOPIC, i % 2, [(b'%s %d.%d' % (who.encode(), i, k), r.properties(
            TAGS='t%d' % k, UNIQ_KEY=r.unique(who, 1000 * i + k))) for k in range(i % 40 + 1)],
            r.properties(UNIQ_KEY=r.unique(who, 1000 * i + 999)))


def snapshot(client):
    """Of each queue its ends, and each record at the first of its offsets; they leave no gap."""
    out = {'records': {}, 'offsets': {}}
    for queue in range(2):
        out['offsets'][TOPIC, queue] = low, high = r.offsets(client, TOPIC, queue)
        out['records'][TOPIC, queue] = records = r.pull_all(client, TOPIC, queue)
        at = low
        for offset in sorted(records):
            if offset != at:
                raise ValueError('queue %d has a record at %d, not %d' % (queue, offset, at))
            inner = re.search(rb'INNER_NUM\x01(\d+)', records[offset])
            at += int(inner[1]) if inner else 1
        if at != high:
            raise ValueError('queue %d ends at %d, its records at %d' % (queue, high, at))
    return out
