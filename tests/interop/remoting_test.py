"""What remoting.py sends is what its caller has asked for."""
import json
import socket
import struct
import unittest

import remoting as r


class Batch(unittest.TestCase):
    def test_properties_of_the_batch_and_of_its_messages(self):
        messages = [(b'one', r.properties(TAGS='a')), (b'two', r.properties(TAGS='b'))]
        fields, body = r.batch_request('T', 3, messages, r.properties(UNIQ_KEY='whole'))
        self.assertEqual(fields['i'], r.properties(UNIQ_KEY='whole'))
        self.assertEqual((fields['b'], fields['e'], fields['m']), ('T', 3, 'true'))
        self.assertEqual([body.count(r.properties(TAGS=t).encode()) for t in 'ab'], [1, 1])
        self.assertNotIn(b'whole', body)

    def test_a_batch_without_properties_has_none_of_its_messages(self):
        fields, _ = r.batch_request('T', 0, [(b'one', r.properties(TAGS='a'))])
        self.assertEqual(fields['i'], '')


class Answers(unittest.TestCase):
    def test_what_the_broker_tells_on_its_own_is_no_answer(self):
        ours, brokers = socket.socketpair()
        client = r.Client.__new__(r.Client)
        client.socket, client.file, client.opaque = ours, ours.makefile('rb'), 0
        for flag, code in ((2, 40), (0, 221), (1, 0)):
            header = json.dumps(dict(code=code, flag=flag, opaque=1)).encode()
            brokers.sendall(struct.pack('>II', 4 + len(header), len(header)) + header)
        self.assertEqual(client.answer()[0]['code'], 0)
        client.close()
        brokers.close()


if __name__ == '__main__':
    unittest.main()
