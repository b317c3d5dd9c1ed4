"""What remoting.py sends is what its caller has asked for."""
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


if __name__ == '__main__':
    unittest.main()
