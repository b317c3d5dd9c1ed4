"""Store directories both ways: RocketMQ writes one and stops, or is killed; rmqd opens it, serves every
record byte for byte at the same offsets and goes on writing; RocketMQ opens it again and serves what both
wrote."""
import json
import os
import re
import shutil
import struct
import subprocess
import time
import zlib

import compacted
import filters
import halves
import inner_batches as inner
import light
import pops as pop
import remoting as r
from harness import Unusable, command, rmqctl, wait_until
from remoting import Failed, expect, unique
from store_directory import FILES, Directory, check_store, relaxed_json

TOPICS = {'Plain': 4, 'Tagged': 2, 'Batches': 1, 'Big': 3}
SCHEDULE = 'SCHEDULE_TOPIC_XXXX'
LONGEST_DELAY = 18                      # 2 h: still pending when the test ends
GROUPS = ['billing', 'audit']


def make_topics(client):
    for topic, queues in TOPICS.items():
        client.call(r.UPDATE_TOPIC, dict(topic=topic, defaultTopic='TBW102', readQueueNums=queues,
                                         writeQueueNums=queues, perm=6, topicFilterType='SINGLE_TAG',
                                         topicSysFlag=0, order='false'))
    for group in GROUPS:
        client.call(r.UPDATE_GROUP, body=json.dumps(dict(
            groupName=group, consumeEnable=True, consumeFromMinEnable=True, consumeBroadcastEnable=True,
            retryQueueNums=1, retryMaxTimes=5, brokerId=0, whichBrokerWhenConsumeSlowly=1,
            notifyConsumerIdsChangedEnable=True)).encode())


def write(client, who, megabytes):
    """One round of messages of all sorts; `who` tells the rounds apart."""
    for i in range(40):
        r.send(client, 'Plain', i % 4, ('%s %d \u00fc\u4e2d' % (who, i)).encode(), flag=i)
        r.send(client, 'Tagged', i % 2, b'%d' % i, r.properties(
            TAGS='tag%d' % (i % 3), KEYS='%s-%d key2' % (who, i), UNIQ_KEY=unique(who, i),
            colour='bl\u00e4u\u1234'))
    for i in range(5):
        r.send_batch(client, 'Batches', 0, [(b'%s %d.%d' % (who.encode(), i, k), r.properties(
            TAGS='b%d' % k, UNIQ_KEY=unique(who, 1000 + i * 7 + k))) for k in range(7)])
    body = bytes(range(256)) * 1024     # 256 KiB
    for i in range(megabytes * 4):
        r.send(client, 'Big', i % 3, body[:len(body) - i], r.properties(TAGS='big'))
    for i in range(6):
        r.send(client, 'Tagged', 1, b'later %d' % i, r.properties(DELAY=str(LONGEST_DELAY), TAGS='late',
                                                                  KEYS='%s-late-%d' % (who, i)))
    for n, group in enumerate(GROUPS):
        for queue in range(4):
            _, top = r.offsets(client, 'Plain', queue)
            client.call(r.UPDATE_OFFSET, dict(consumerGroup=group, topic='Plain', queueId=queue,
                                              commitOffset=max(top - n - queue, 0)))


def snapshot(client):
    """All that a client can see of the store."""
    out = {'records': {}, 'offsets': {}, 'topics': {}, 'groups': {}, 'committed': {}}
    queues = [(t, q) for t, n in TOPICS.items() for q in range(n)] + [(SCHEDULE, LONGEST_DELAY - 1)]
    for topic, queue in queues:
        out['offsets'][topic, queue] = r.offsets(client, topic, queue)
        out['records'][topic, queue] = r.pull_all(client, topic, queue)
    table = relaxed_json(client.call(r.ALL_TOPICS)[1])['topicConfigTable']
    for topic in TOPICS:
        out['topics'][topic] = [table[topic][k] for k in ('readQueueNums', 'writeQueueNums', 'perm')]
    groups = relaxed_json(client.call(r.ALL_GROUPS)[1])['subscriptionGroupTable']
    for group in GROUPS:
        out['groups'][group] = groups[group]['retryMaxTimes']
        for queue in range(4):
            header, _ = client.call(r.QUERY_OFFSET, dict(consumerGroup=group, topic='Plain', queueId=queue))
            out['committed'][group, queue] = header['extFields']['offset']
    return out


def compare(before, after, what):
    for part in before:
        for key, value in before[part].items():
            now = after[part].get(key)
            if part == 'records' and now != value:
                lost = sorted(set(value) - set(now))
                more = sorted(set(now) - set(value))
                other = sorted(k for k in value if k in now and now[k] != value[k])
                raise Failed('%s: %s: lost %s, new %s, other bytes at %s' % (what, key, lost, more, other))
            expect(now == value, '%s: %s of %s was %s and is %s' % (what, part, key, value, now))


def expect_dense(snap, what):
    for key, records in snap['records'].items():
        low, high = snap['offsets'][key]
        expect(sorted(records) == list(range(low, high)), '%s: %s has %s, not %d to %d' % (
            what, key, sorted(records), low, high))


def grown(before, after, what):
    """Everything of `before` is still there, and every queue has more."""
    for key, records in before['records'].items():
        now = after['records'][key]
        expect(all(now.get(k) == v for k, v in records.items()), '%s: records of %s are lost' % (what, key))
        expect(len(now) > len(records), '%s: nothing new in %s' % (what, key))


def check_crcs(snap, older, what):
    """Every record that `older` has not ends with the CRC of all that is before it, lowest digit first."""
    for key, records in snap['records'].items():
        for offset, record in records.items():
            if older is not None and offset in older['records'][key]:
                continue
            found = re.search(rb'__CRC32#\x01(\d{10})\x02$', record, re.S)
            expect(found, '%s: %s at %d has no CRC: %r' % (what, key, offset, record[-60:]))
            crc = zlib.crc32(record[:-20]) & 0x7fffffff
            expect(int(found[1][::-1]) == crc, '%s: %s at %d says CRC %s, it is %d' % (
                what, key, offset, found[1], crc))


def round_trip(d, writer, end):
    """Yields the names of steps as they are done; a step that fails raises."""
    d.start(writer)
    make_topics(d.client)
    write(d.client, 'first', 9)
    first = snapshot(d.client)
    expect_dense(first, 'written by ' + writer)
    if d.crc and writer == 'reference':
        check_crcs(first, None, 'written by ' + writer)
    d.wait_for_offsets(first)           # a kill does not lose them then
    d.end(end)
    report = check_store(d.store)
    expect(report['logFiles'] >= 3 and report['records'] > 100, 'too little was written: %s' % report)
    expect(report['stopped'] == (end == 'stop'), 'the report says stopped=%s' % report['stopped'])
    yield 'check_after_%s' % end

    d.start('rmqd')
    compare(first, snapshot(d.client), 'rmqd on the directory')
    expect((MADE_ANEW in d.journal()) == (end == 'kill'), 'of the ConsumeQueues: ' + d.journal())
    yield 'rmqd_serves_it'
    write(d.client, 'second', 5)
    second = snapshot(d.client)
    expect_dense(second, 'after rmqd wrote')
    grown(first, second, 'after rmqd wrote')
    if d.crc:
        check_crcs(second, first, 'written by rmqd')
    yield 'rmqd_goes_on'
    d.end('stop')
    check_store(d.store)
    d.start('rmqd')
    compare(second, snapshot(d.client), 'rmqd again')
    d.end('stop')
    expect(check_store(d.store)['leftBy'] == 'none', 'abort is there after a stop')
    yield 'check_after_rmqd'

    d.start(writer)
    compare(second, snapshot(d.client), writer + ' on the directory')
    yield 'writer_serves_both'
    write(d.client, 'third', 1)
    third = snapshot(d.client)
    grown(second, third, 'after %s wrote again' % writer)
    d.wait_for_offsets(third)
    d.end(end)
    check_store(d.store)
    d.start('rmqd')
    compare(third, snapshot(d.client), 'rmqd after the way back')
    d.end('stop')
    check_store(d.store)
    yield 'and_again'


MADE_ANEW = 'all ConsumeQueues were made anew'       # what rmqd's journal says of it


def lost_queues(d, writer):
    """A store that was stopped in order, and lost a queue and a topic's queues since."""
    d.start(writer)
    make_topics(d.client)
    write(d.client, 'first', 9)
    first = snapshot(d.client)
    d.end('stop')
    for lost in ('Plain/1', 'Tagged'):
        shutil.rmtree('%s/consumequeue/%s' % (d.store, lost))
    d.start('rmqd')
    compare(first, snapshot(d.client), 'rmqd on the directory')
    expect(MADE_ANEW in d.journal(), 'rmqd does not say what it did')
    yield 'rmqd_serves_it'
    write(d.client, 'second', 1)
    second = snapshot(d.client)
    expect_dense(second, 'after rmqd wrote')
    grown(first, second, 'after rmqd wrote')
    d.end('stop')
    check_store(d.store)
    yield 'rmqd_goes_on'


class Timers:
    """Timer messages and when they are due; what came of them. Queue 0 of the topic Late."""

    def __init__(self):
        self.due, self.recalled, self.step = {}, set(), 0

    def send(self, client, body, delay_s):
        due = int((time.time() + delay_s) * 1000)
        header, _ = client.call(r.SEND, r.send_fields('Late', 0, r.properties(
            TIMER_DELIVER_MS=str(due), UNIQ_KEY=unique('late', len(self.due)))), body.encode())
        self.due[body] = due
        return header['extFields'].get('recallHandle')

    def send_by_level(self, client, body, level, delay_s):
        due = int((time.time() + delay_s) * 1000)
        client.call(r.SEND, r.send_fields('Late', 0, r.properties(
            DELAY=str(level), UNIQ_KEY=unique('late', len(self.due)))), body.encode())
        self.due[body] = due

    def recall(self, client, body, handle):
        client.call(r.RECALL, dict(producerGroup='p', topic='Late', recallHandle=handle))
        self.recalled.add(body)

    def wait(self, client, until_s, what):
        """What is due by then has come, once, not before its second, and nothing else has."""
        # The reference takes an exact second for the one before, and delivers up to 2 s late.
        want = {b for b, due in self.due.items() if due <= until_s * 1000 and b not in self.recalled}
        end = until_s + 15
        while True:
            came = [record_facts(x) for x in r.pull_all(client, 'Late', 0).values()]
            if want <= {body for body, _ in came} or time.time() > end:
                break
            time.sleep(0.5)
        time.sleep(3)                   # what comes twice may come later
        came = [record_facts(x) for x in r.pull_all(client, 'Late', 0).values()]
        bodies = [body for body, _ in came]
        now_ms = time.time() * 1000
        expect(want <= set(bodies), '%s: %s did not come' % (what, sorted(want - set(bodies))))
        expect(len(set(bodies)) == len(bodies), '%s: twice: %s' % (what, sorted(bodies)))
        expect(not self.recalled & set(bodies), '%s: recalled ones came: %s' % (what, sorted(bodies)))
        for body, stored_ms in came:
            expect(stored_ms >= (self.due[body] - 1) // 1000 * 1000 - 1000, '%s: %s was %d ms early' % (
                what, body, self.due[body] - stored_ms))
            expect(self.due[body] <= now_ms + 2000, '%s: %s came too soon' % (what, body))


def record_facts(record):
    """Body and store time of a stored record."""
    stored_ms, = struct.unpack_from('>q', record, 56)
    size, = struct.unpack_from('>I', record, 84)
    return record[88:88 + size].decode(), stored_ms


def timers(d):
    """Delayed messages that one broker took are delivered by the other, each once, both ways: by level and of
    any delay."""
    t = Timers()
    d.start('rmqd')
    d.client.call(r.UPDATE_TOPIC, dict(topic='Late', defaultTopic='TBW102', readQueueNums=1, writeQueueNums=1,
                                       perm=6, topicFilterType='SINGLE_TAG', topicSysFlag=0, order='false'))
    began = time.time()
    for i in range(20):
        t.send(d.client, 'first %d' % i, 2 + i % 3)     # delivered by rmqd, among those that are pending
        t.send(d.client, 'second %d' % i, 40 + i % 5)
        t.send_by_level(d.client, 'level 1.%d' % i, 1, 1)
        t.send_by_level(d.client, 'level 4.%d' % i, 4, 30)
    t.recall(d.client, 'gone', t.send(d.client, 'gone', 41))
    t.send(d.client, 'in three days', 3 * 86400 + 100)  # beyond RocketMQ's wheel
    t.wait(d.client, began + 5, 'rmqd')
    t.send(d.client, 'overdue', 2)                      # comes due while nobody runs
    d.end('stop')
    check_store(d.store)
    time.sleep(3)
    yield 'rmqd_stops'

    d.start('reference')
    for i in range(10):
        t.send(d.client, 'third %d' % i, 25)
        t.send(d.client, 'fourth %d' % i, 110)
        t.send_by_level(d.client, 'level 3.%d' % i, 3, 10)
        t.send_by_level(d.client, 'level 6.%d' % i, 6, 120)
    t.wait(d.client, began + 46, 'RocketMQ')
    t.wait(d.client, max(t.due['third %d' % i] for i in range(10)) / 1000, 'RocketMQ')
    yield 'rocketmq_delivers_it'
    d.end('stop')
    check_store(d.store)

    d.start('rmqd')
    t.wait(d.client, max(t.due['level 6.%d' % i] for i in range(10)) / 1000, 'rmqd again')
    pending = subprocess.run([rmqctl(), '-n', d.namesrv, 'timer', 'list', '--json'], capture_output=True,
                             text=True)
    expect(len(json.loads(pending.stdout)) == 1, 'pending at the end: %s' % pending)
    d.end('stop')
    check_store(d.store)
    yield 'and_back'


def transactions(d):
    """Half messages that one broker took are ended at the other, each once, both ways; what has ended has."""
    d.options = halves.UNCHECKED
    t = halves.Halves(d, rmqctl(), expect)
    d.start('rmqd')
    t.make_topic()
    t.send('a', 'b', 'c', 'd', 'e')
    t.end('a', r.COMMIT)
    t.end('b', r.ROLLBACK)
    t.expect_visible('a')
    t.expect_open('c', 'd', 'e')
    d.end('stop')
    check_store(d.store)
    yield 'rmqd_stops'

    d.start('reference')
    t.expect_open('c', 'd', 'e')
    t.end('c', r.COMMIT)
    t.end('d', r.ROLLBACK)
    t.send('f', 'g')
    t.end('f', r.COMMIT)
    t.expect_visible('a', 'c', 'f')
    time.sleep(5)                       # it notes ends up to 3 s late
    d.end('stop')
    check_store(d.store)
    yield 'rocketmq_ends_them'

    d.start('rmqd')
    t.expect_open('e', 'g')
    for body in 'abcdf':                # again: nothing comes of it
        t.end(body, r.COMMIT)
    t.end('e', r.COMMIT)
    t.end('g', r.ROLLBACK)
    t.expect_visible('a', 'c', 'e', 'f')
    t.expect_open()
    d.end('stop')
    check_store(d.store)
    yield 'and_back'


def checked_transactions(d, end):
    """RocketMQ has copied half messages for its checks. An end that names the first copy ends each at rmqd,
    once; what RocketMQ has ended is not asked about; and the other way round."""
    d.options = halves.CHECKED
    t = halves.Halves(d, rmqctl(), expect)
    d.start('rmqd')
    t.make_topic()
    t.send('ours', 'ours later')        # RocketMQ copies these, too
    d.end('stop')
    d.start('reference')
    t.send('commit', 'rollback', 'late', 'later')
    t.wait_for_copies()
    t.end('late', r.COMMIT)             # RocketMQ asks about its copy all the same
    t.expect_visible('late')
    time.sleep(5)
    d.end(end)
    check_store(d.store)
    yield 'rocketmq_copies_them'

    d.start('rmqd')
    t.expect_open('commit', 'rollback', 'later', 'ours', 'ours later')
    for body in ('commit', 'ours'):
        t.end(body, r.COMMIT)
    t.end('rollback', r.ROLLBACK)
    for body in ('late', 'commit', 'rollback', 'ours'):     # again
        t.end(body, r.COMMIT)
    t.expect_visible('commit', 'late', 'ours')
    t.expect_open('later', 'ours later')
    d.end('kill')
    check_store(d.store)
    d.start('rmqd')
    t.expect_open('later', 'ours later')
    for body in ('later', 'ours later'):
        t.end(body, r.COMMIT)
    t.expect_visible('commit', 'late', 'later', 'ours', 'ours later')
    t.expect_open()
    d.end('stop')
    check_store(d.store)
    yield 'rmqd_ends_each_once'

    d.start('reference')
    before = t.stored()
    time.sleep(5)
    expect(t.stored() == before, 'RocketMQ makes copies of what has ended')
    d.end('stop')
    yield 'rocketmq_has_none_open'


INVISIBLE_MS = 60000


class Pops:
    """Messages of one topic and group by number; which were acknowledged, and how often each has come."""

    def __init__(self):
        self.sent, self.acknowledged, self.came = 0, set(), {}

    def send(self, client, n):
        for _ in range(n):
            r.send(client, 'Popped', self.sent % 2, b'%d' % self.sent)
            self.sent += 1

    def take(self, client, invisible_ms, quiet_s, what):
        """What is popped until nothing more comes: none of it was acknowledged, none comes twice."""
        got = pop.pop_all(client, 'Popped', 'poppers', invisible_ms, quiet_s)
        numbers = [int(m.body) for m in got]
        expect(len(set(numbers)) == len(numbers), '%s: twice: %s' % (what, sorted(numbers)))
        late = self.acknowledged & set(numbers)
        expect(not late, '%s: acknowledged before: %s' % (what, sorted(late)))
        for n in numbers:
            self.came[n] = self.came.get(n, 0) + 1
        return dict(zip(numbers, got))

    def ack(self, client, got, numbers):
        for n in numbers:
            pop.ack(client, got[n])
            self.acknowledged.add(n)


def pops(d, end):
    """What RocketMQ gave out and was not acknowledged is rmqd's to go on with, by the handles that clients
    have: what they acknowledge never comes again, all else does when its time is up. On the way back nothing
    is lost."""
    s = Pops()
    d.start('reference')
    d.client.call(r.UPDATE_TOPIC, dict(topic='Popped', defaultTopic='TBW102', readQueueNums=2,
                                       writeQueueNums=2, perm=6, topicFilterType='SINGLE_TAG',
                                       topicSysFlag=0, order='false'))
    d.client.call(r.UPDATE_GROUP, body=json.dumps(dict(groupName='poppers', consumeEnable=True)).encode())
    s.send(d.client, 40)
    began = time.time()
    first = s.take(d.client, INVISIBLE_MS, 2, 'RocketMQ')
    expect(len(first) == 40, 'RocketMQ gave %d of 40' % len(first))
    s.ack(d.client, first, range(0, 10))
    s.send(d.client, 10)
    time.sleep(12 if end == 'kill' else 0)      # the first time that RocketMQ writes offsets is after 10 s
    d.end(end)
    check_store(d.store)

    d.start('rmqd')
    s.ack(d.client, first, range(10, 20))
    expect(time.time() - began < INVISIBLE_MS / 1000 - 5, 'the machine is too slow for this test')
    fresh = s.take(d.client, 3600000, 1, 'rmqd at once')
    expect(sorted(fresh) == list(range(40, 50)), 'rmqd gave out at once: %s' % sorted(fresh))
    yield 'handles_of_rocketmq_count_at_rmqd'
    time.sleep(max(0, began + INVISIBLE_MS / 1000 + 2 - time.time()))
    again = s.take(d.client, 3600000, 4, 'rmqd after the invisible time')
    expect(sorted(again) == list(range(20, 40)), 'came again: %s' % sorted(again))
    expect(all(m.reconsume == 1 for m in again.values()), 'they are not counted')
    yield 'what_nobody_acknowledged_comes_again'

    s.ack(d.client, again, range(20, 30))
    s.ack(d.client, fresh, range(45, 50))
    d.end('stop')
    check_store(d.store)
    d.start('reference')
    # RocketMQ gives out from the first that was not acknowledged, and so some twice, but all; not
    # what its own timer knew of, and was acknowledged at either.
    left, seen = set(range(30, 45)), set()
    until = time.time() + 60
    while not left <= seen and time.time() < until:
        for m in pop.pop_all(d.client, 'Popped', 'poppers', 8000, 1):
            seen.add(int(m.body))
            pop.ack(d.client, m)
    expect(left <= seen, 'lost on the way back: %s' % sorted(left - seen))
    expect(not seen & set(range(20)), 'came again from RocketMQ: %s' % sorted(seen & set(range(20))))
    yield 'rocketmq_gives_the_rest'
    time.sleep(2.5)
    d.end('stop')
    d.start('rmqd')
    late = pop.pop_all(d.client, 'Popped', 'poppers', 60000, 10)
    expect(not late, 'acknowledged, and came: %s' % [m.body for m in late])
    d.end('stop')
    check_store(d.store)
    yield 'nothing_is_left'


def light_queues(d):
    """Light queues, which are only in the queue files and in properties of records, both ways."""
    d.options = ['enableLmq=true', 'enableMultiDispatch=true']
    d.start('reference')
    make_topics(d.client)
    light.make_parent(d.client)
    light.write(d.client, 'first')
    first = light.snapshot(d.client)
    expect(first['records'][light.NAMES[0], 0], 'RocketMQ has nothing in ' + light.NAMES[0])
    time.sleep(2.5)
    d.end('stop')
    check_store(d.store)
    d.start('rmqd')
    compare(first, light.snapshot(d.client), 'rmqd on the directory')
    yield 'rmqd_serves_it'
    light.write(d.client, 'second')
    second = light.snapshot(d.client)
    grown(first, second, 'after rmqd wrote')
    d.end('stop')
    check_store(d.store)
    d.start('reference')
    compare(second, light.snapshot(d.client), 'RocketMQ on the directory')
    yield 'rocketmq_serves_both'
    light.write(d.client, 'third')
    third = light.snapshot(d.client)
    grown(second, third, 'after RocketMQ wrote again')
    d.wait_for_file('lmqConsumerOffset.json', light.committed(third))
    d.end('kill')
    check_store(d.store)
    d.start('rmqd')
    compare(third, light.snapshot(d.client), 'rmqd after the way back')
    d.end('stop')
    check_store(d.store)
    yield 'and_again'


def inner_batches(d, end):
    """A topic of type BatchCQ, both ways."""
    d.options = ['mapperFileSizeBatchConsumeQueue=920']        # 20 records
    d.start('reference')
    d.client.call(r.UPDATE_TOPIC, dict(topic=inner.TOPIC, defaultTopic='TBW102', readQueueNums=2,
                                       writeQueueNums=2, perm=6, topicFilterType='SINGLE_TAG', topicSysFlag=0,
                                       order='false', attributes='+queue.type=BatchCQ'))
    r.send(d.client, 'Plain', 0, b'of another kind')
    inner.write(d.client, 'first', 60)
    time.sleep(2.5)                     # RocketMQ's queues lag behind its answers
    first = inner.snapshot(d.client)
    d.end(end)
    expect(check_store(d.store)['batchQueues'] == 2, 'store check does not see its queues')
    d.start('rmqd')
    compare(first, inner.snapshot(d.client), 'rmqd on the directory')
    yield 'rmqd_serves_it'
    inner.write(d.client, 'second', 50)
    second = inner.snapshot(d.client)
    grown(first, second, 'after rmqd wrote')
    d.end('kill')
    check_store(d.store)
    d.start('rmqd')
    compare(second, inner.snapshot(d.client), 'rmqd after a kill')
    d.end('stop')
    report = check_store(d.store)
    records = sum(len(x) for x in second['records'].values())
    expect(report['batchUnits'] == records, '%d units of %d records' % (report['batchUnits'], records))
    yield 'rmqd_goes_on'
    d.start('reference')
    compare(second, inner.snapshot(d.client), 'RocketMQ on the directory')
    yield 'rocketmq_serves_both'
    inner.write(d.client, 'third', 40)
    time.sleep(2.5)
    third = inner.snapshot(d.client)
    grown(second, third, 'after RocketMQ wrote again')
    d.end(end)
    check_store(d.store)
    d.start('rmqd')
    compare(third, inner.snapshot(d.client), 'rmqd after the way back')
    d.end('stop')
    check_store(d.store)
    yield 'and_again'


def compaction(d):
    """A compacted topic, both ways: what is left of it is the same, and each goes on compacting what the
    other has left."""
    d.options = ['compactionCqMappedFileSize=4600', 'compactionMappedFileSize=23000',
                 'compactionScheduleInternal=3000']
    d.start('reference')
    d.client.call(r.UPDATE_TOPIC, dict(topic=compacted.TOPIC, defaultTopic='TBW102', readQueueNums=1,
                                       writeQueueNums=1, perm=6, topicFilterType='SINGLE_TAG', topicSysFlag=0,
                                       order='false', attributes='+cleanup.policy=COMPACTION'))
    compacted.write(d.client, 0, 400)
    first = compacted.wait(d.client, 400, 'RocketMQ')
    time.sleep(2.5)
    d.end('stop')
    check_store(d.store)
    yield 'rocketmq_compacts'

    d.start('rmqd')
    compacted.same_records(first, compacted.read(d.client), 'rmqd on the directory')
    yield 'rmqd_serves_it'
    compacted.write(d.client, 400, 400)
    second = compacted.wait(d.client, 800, 'rmqd')
    d.end('stop')
    report = check_store(d.store)
    expect(report['compactedRecords'] >= len(second), 'store check saw %s' % report)
    yield 'rmqd_compacts'

    small = d.options
    d.options = small[:2] + ['compactionScheduleInternal=3600000']
    d.start('reference')
    compacted.same_records(second, compacted.read(d.client), 'RocketMQ on the directory')
    yield 'rocketmq_serves_both'
    d.end('stop')
    d.options = small
    d.start('reference')
    compacted.write(d.client, 800, 400)
    third = compacted.wait(d.client, 1200, 'RocketMQ again')
    time.sleep(2.5)
    d.end('stop')
    check_store(d.store)
    d.start('rmqd')
    compacted.same_records(third, compacted.read(d.client), 'rmqd after the way back')
    d.end('kill')
    check_store(d.store)
    d.start('rmqd')
    compacted.same_records(third, compacted.read(d.client), 'rmqd after a kill')
    d.end('stop')
    check_store(d.store)
    yield 'and_again'


def kept_filters(d, end):
    """SQL92 filters of groups that one broker has kept are in force at the other before anybody registers
    them again, and by their versions after that, both ways."""
    d.options = filters.OPTIONS
    f = filters.Filters(d)
    d.start('reference')
    f.make_topics()
    f.register('filterers', 'n > 5', 100)
    f.register('others', filters.QUOTES, 200)
    f.register('online', 'n BETWEEN 1 AND 2', 300)
    f.expect_retries('RocketMQ')
    f.wait_for_file()
    d.end(end)
    check_store(d.store)

    d.start('rmqd')
    f.expect_retries('rmqd on the directory')
    yield 'rmqd_keeps_them'
    f.expect_older_ignored('filterers', 'rmqd on the directory')
    f.expect_older_ignored('others', 'rmqd on the directory')
    yield 'their_versions_count_at_rmqd'
    f.register('filterers', 'n < 3', 101)
    f.register('added', "n IN ('4', '7')", 1)
    f.expect_retries('rmqd')
    f.wait_for_file()
    d.end(end)
    check_store(d.store)

    d.start('reference')
    f.expect_retries('RocketMQ again')
    yield 'rocketmq_keeps_them'
    for group in f.kept:
        f.expect_older_ignored(group, 'RocketMQ again')
    yield 'their_versions_count_at_rocketmq'
    d.end('stop')
    d.start('rmqd')
    f.expect_retries('rmqd after the way back')
    d.end('stop')
    check_store(d.store)
    yield 'and_again'


def rocksdb(d):
    """A store with its queues and configuration in RocksDB is refused, and stays as it is."""
    d.options = ['storeType=defaultRocksDB']
    d.start('reference')
    r.send(d.client, 'Plain', 0, b'in RocksDB')
    d.end('stop')
    before = tree(d.store)
    log = d.path + '/rmqd.log'
    p = d.place.procs.start(command('rmqd', 'broker', d.path, d.namesrv_port, d.broker_port, FILES), log)
    try:
        code = p.wait(30)
    except subprocess.TimeoutExpired:
        d.place.procs.stop(p)
        raise Failed('rmqd runs on a store of RocksDB')
    expect(code != 0, 'rmqd ended with 0')
    text = open(log, errors='replace').read()
    expect('RocksDB' in text, 'rmqd does not say why: ' + text)
    expect(tree(d.store) == before, 'the directory changed: %s' % sorted(set(tree(d.store)) ^ set(before)))
    done = subprocess.run([rmqctl(), 'store', 'check', d.store], capture_output=True, text=True)
    expect(done.returncode == 66 and 'RocksDB' in done.stderr, 'store check: %s' % done)
    yield 'refused_untouched'


def tree(root):
    out = {}
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            s = os.stat(path)
            out[path] = s.st_size, s.st_mtime_ns
        out[folder] = os.stat(folder).st_mtime_ns
    return out


def scenario(place, name, steps, crc=False):
    """Runs the steps of one directory; what is left undone after a failure is one failure."""
    d = None
    try:
        d = Directory(place, os.path.join(place.directory, name), crc)
        for step in steps(d):
            place.say('ok %s/%s' % (name, step))
            yield '%s/%s' % (name, step), None
        d.close()
        shutil.rmtree(d.path)
    except (Failed, Unusable, r.Refused, OSError, ValueError, KeyError) as e:
        place.say('FAILED %s: %s' % (name, e))
        yield name, '%s: %s' % (type(e).__name__, e)
    finally:
        if d is not None:
            d.close()


def directories(place):
    for writer, version in (('reference', '5.5'), ('reference49', '4.9')):
        for end in ('stop', 'kill'):
            yield from scenario(place, '%s_%s' % (version, end), lambda d: round_trip(d, writer, end))
        # A 5.5 that was killed looks at every record of ours, a 4.9 takes the CRC for a property like others.
        yield from scenario(place, '%s_crc' % version, lambda d: round_trip(d, writer, 'kill'), crc=True)
        yield from scenario(place, '%s_lost_queues' % version, lambda d: lost_queues(d, writer))
    yield from scenario(place, 'timers', timers)
    yield from scenario(place, 'transactions', transactions)
    for end in ('stop', 'kill'):
        yield from scenario(place, 'checked_transactions_' + end, lambda d: checked_transactions(d, end))
    for end in ('stop', 'kill'):
        yield from scenario(place, 'pops_' + end, lambda d: pops(d, end))
    yield from scenario(place, 'light_queues', light_queues)
    for end in ('stop', 'kill'):
        yield from scenario(place, 'batch_topic_' + end, lambda d: inner_batches(d, end))
    yield from scenario(place, 'compaction', compaction)
    for end in ('stop', 'kill'):
        yield from scenario(place, 'filters_' + end, lambda d: kept_filters(d, end))
    yield from scenario(place, 'rocksdb', rocksdb)
