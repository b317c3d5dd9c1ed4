"""A small client of the protocol for tests that look at every byte: one connection, one request at a time."""
import json
import socket
import struct
import time
import zlib

SEND, PULL, QUERY_OFFSET, UPDATE_OFFSET = 10, 11, 14, 15
UPDATE_TOPIC, ALL_TOPICS, MAX_OFFSET, MIN_OFFSET = 17, 21, 30, 31
UPDATE_GROUP, ALL_GROUPS, SEND_BATCH, RECALL = 200, 201, 320, 370
END_TRANSACTION, COMMIT, ROLLBACK = 37, 8, 12
HEARTBEAT = 34
SUCCESS, PULL_NOT_FOUND, PULL_RETRY, PULL_OFFSET_MOVED = 0, 19, 20, 21


class Refused(Exception):
    pass


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Client:
    def __init__(self, address, timeout=30):
        host, port = address.rsplit(':', 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile('rb')
        self.opaque = 0

    def close(self):
        self.file.close()
        self.socket.close()

    def post(self, code, fields=None, body=b''):
        """Sends a request; answers come in answer()."""
        self.opaque += 1
        text = {k: str(v) for k, v in (fields or {}).items()}
        header = json.dumps(dict(code=code, flag=0, language='JAVA', opaque=self.opaque, version=493,
                                 serializeTypeCurrentRPC='JSON', extFields=text)).encode()
        self.socket.sendall(struct.pack('>II', 4 + len(header) + len(body), len(header)) + header + body)
        return self.opaque

    def answer(self):
        """The next answer; what the broker asks or tells on its own is passed over."""
        while True:
            header, body = self.frame()
            if header['flag'] & 1:
                return header, body

    def frame(self):
        head = self.file.read(8)
        if len(head) < 8:
            raise ConnectionError('the broker closed the connection')
        size, length = struct.unpack('>II', head)
        rest = self.file.read(size - 4)
        if len(rest) < size - 4:
            raise ConnectionError('the broker closed the connection')
        length &= 0xffffff
        return json.loads(rest[:length]), rest[length:]

    def call(self, code, fields=None, body=b'', good=(SUCCESS,)):
        self.post(code, fields, body)
        header, answer = self.answer()
        if header['code'] not in good:
            raise Refused('request %d %s: %s %s' % (code, fields, header['code'], header.get('remark')))
        return header, answer


def properties(**values):
    return ''.join('%s\x01%s\x02' % item for item in values.items())


def unique(who, number):
    return '%s%028d' % (who[:4].ljust(4, 'x'), number)


def send_fields(topic, queue, props='', flag=0):
    return dict(producerGroup='p', topic=topic, defaultTopic='TBW102', defaultTopicQueueNums=4, queueId=queue,
                sysFlag=0, bornTimestamp=int(time.time() * 1000), flag=flag, properties=props)


def send(client, topic, queue, body, props='', flag=0):
    header, _ = client.call(SEND, send_fields(topic, queue, props, flag), body)
    return int(header['extFields']['queueOffset'])


def batch_request(topic, queue, messages, props=''):
    """Fields and body of SEND_BATCH_MESSAGE. messages: (body, properties); props: of the batch."""
    body = b''
    for text, own in messages:
        p = own.encode()
        part = struct.pack('>IIII', 0, zlib.crc32(text), 0, len(text)) + text + struct.pack('>H', len(p)) + p
        body += struct.pack('>I', 4 + len(part)) + part
    # The short names of SEND_BATCH_MESSAGE: group, topic, default topic and queues, queue, flags, born time.
    fields = dict(a='p', b=topic, c='TBW102', d=4, e=queue, f=0, g=int(time.time() * 1000), h=0, i=props, j=0,
                  k='false', m='true')
    return fields, body


def send_batch(client, topic, queue, messages, props=''):
    """Returns the first queue offset."""
    header, _ = client.call(SEND_BATCH, *batch_request(topic, queue, messages, props))
    return int(header['extFields']['queueOffset'])


def offsets(client, topic, queue):
    def ask(code):
        header, _ = client.call(code, dict(topic=topic, queueId=queue))
        return int(header['extFields']['offset'])
    return ask(MIN_OFFSET), ask(MAX_OFFSET)


def pull_all(client, topic, queue, group='reader'):
    """Every record of a queue as it lies in the log: {queue offset: bytes}."""
    at, end = offsets(client, topic, queue)
    out = {}
    while at < end:
        fields = dict(consumerGroup=group, topic=topic, queueId=queue, queueOffset=at, maxMsgNums=32,
                      sysFlag=4, commitOffset=0, suspendTimeoutMillis=0, subscription='*', subVersion=0,
                      expressionType='TAG')
        header, body = client.call(PULL, fields, good=(SUCCESS,))
        while body:
            size, = struct.unpack_from('>I', body)
            offset, = struct.unpack_from('>q', body, 20)
            out[offset] = body[:size]
            body = body[size:]
        at = int(header['extFields']['nextBeginOffset'])
    return out
