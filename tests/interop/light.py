"""What tests of store directories do with light queues."""
import time

import remoting as r
from remoting import unique

NAMES = ['%LMQ%a', '%LMQ%b']


def make_parent(client):
    client.call(r.UPDATE_TOPIC, dict(topic='Parent', defaultTopic='TBW102', readQueueNums=1, writeQueueNums=1,
                                     perm=6, topicFilterType='SINGLE_TAG', topicSysFlag=0, order='false'))


def write(client, who):
    """Messages of one topic that come into light queues, and an offset of a group in one."""
    for i in range(30):
        names = NAMES[:1 + i % 2] if i % 3 else NAMES[1:]
        r.send(client, 'Parent', 0, b'%s %d' % (who.encode(), i), r.properties(
            INNER_MULTI_DISPATCH=','.join(names), UNIQ_KEY=unique(who, i)))
    time.sleep(1)                       # RocketMQ's queues lag behind its answers
    _, top = r.offsets(client, NAMES[0], 0)
    client.call(r.UPDATE_OFFSET, dict(consumerGroup='billing', topic=NAMES[0], queueId=0,
                                      commitOffset=top - 3))


def snapshot(client):
    out = {'records': {}, 'offsets': {}, 'committed': {}}
    for topic, queue in [(t, 0) for t in NAMES] + [('Parent', 0)]:
        out['offsets'][topic, queue] = r.offsets(client, topic, queue)
        # By the queue offset in their topic: it is the one that a record has.
        out['records'][topic, queue] = r.pull_all(client, topic, queue)
    header, _ = client.call(r.QUERY_OFFSET, dict(consumerGroup='billing', topic=NAMES[0], queueId=0))
    out['committed']['billing'] = header['extFields']['offset']
    return out


def committed(snap):
    """As lmqConsumerOffset.json has it."""
    return {(NAMES[0] + '@billing', '0'): snap['committed']['billing']}
