"""POP for tests that speak the protocol by hand: requests, and the handles that a client makes of answers."""
import struct
import time

import remoting as r

POP, ACK, CHANGE_INVISIBLE, BATCH_ACK = 200050, 200051, 200053, 200151
POLLING_TIMEOUT = 210


class Popped:
    """A message, and the handle by which it is acknowledged."""

    def __init__(self, topic, group, queue, offset, body, reconsume, handle):
        self.topic, self.group, self.queue, self.offset = topic, group, queue, offset
        self.body, self.reconsume, self.handle = body, reconsume, handle


def properties_of(record, at):
    size, = struct.unpack_from('>H', record, at)
    text = record[at + 2:at + 2 + size].decode()
    return dict(p.split('\x01', 1) for p in text.split('\x02') if p)


def records(body):
    """Queue, queue offset, topic, body, reconsume times and properties of each record."""
    at = 0
    while at < len(body):
        size, = struct.unpack_from('>I', body, at)
        record = body[at:at + size]
        queue, _, offset = struct.unpack_from('>IIq', record, 12)
        reconsume, = struct.unpack_from('>I', record, 72)
        length, = struct.unpack_from('>I', record, 84)
        end = 88 + length
        topic = record[end + 1:end + 1 + record[end]].decode()
        yield queue, offset, topic, record[88:end], reconsume, properties_of(record, end + 1 + record[end])
        at += size


def mark_of(topic, group):
    retry = '%RETRY%' + group
    return '1' if topic.startswith(retry + '_') else '2' if topic.startswith(retry + '+') else '0'


def pop_fields(topic, group, invisible_ms, most=32, poll_ms=0, queue=-1, expression='*', kind='TAG'):
    return dict(consumerGroup=group, topic=topic, queueId=queue, maxMsgNums=most, invisibleTime=invisible_ms,
                pollTime=poll_ms, bornTime=int(time.time() * 1000), initMode=0, expType=kind, exp=expression,
                order='false')


def popped(header, body, topic, group, broker='broker-a'):
    """The messages of an answer."""
    fields = header['extFields']
    start = {}
    for part in (fields.get('startOffsetInfo') or '').split(';'):
        if part:
            mark, queue, offset = part.split(' ')
            start[mark, queue] = offset
    out = []
    for queue, offset, name, text, reconsume, props in records(body):
        handle = props.get('POP_CK')
        mark = handle.split(' ')[4] if handle else mark_of(name, group)
        if handle is None:
            handle = ' '.join([start[mark, str(queue)], fields['popTime'], fields['invisibleTime'],
                               fields['reviveQid'], mark, broker, str(queue), str(offset)])
        real = topic if mark == '0' else '%%RETRY%%%s%s%s' % (group, '_' if mark == '1' else '+', topic)
        out.append(Popped(real, group, queue, offset, text, reconsume, handle))
    return out


def pop(client, topic, group, invisible_ms, most=32, poll_ms=0):
    fields = pop_fields(topic, group, invisible_ms, most, poll_ms)
    header, body = client.call(POP, fields, good=(r.SUCCESS, POLLING_TIMEOUT))
    return popped(header, body, topic, group) if header['code'] == r.SUCCESS else []


def pop_all(client, topic, group, invisible_ms, quiet_s):
    """Until nothing has come for so long."""
    out, last = [], time.monotonic()
    while time.monotonic() - last < quiet_s:
        some = pop(client, topic, group, invisible_ms)
        out += some
        if some:
            last = time.monotonic()
        else:
            time.sleep(0.1)
    return out


def ack_fields(m):
    return dict(consumerGroup=m.group, topic=m.topic, queueId=m.queue, extraInfo=m.handle, offset=m.offset)


def ack(client, m):
    client.call(ACK, ack_fields(m))
