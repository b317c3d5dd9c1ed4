"""SQL92 filters of groups for tests of store directories. Each group has a retry topic with messages of
the topic Filtered, by number; what of it a group gets tells the filter that the broker has kept."""
import json
import time

import pops
import remoting as r
from harness import wait_until
from remoting import expect

TOPIC = 'Filtered'
OPTIONS = ['enablePropertyFilter=true', 'filterSupportRetry=true']
MESSAGES = 10
QUOTES = 'name = \'it\'\'s "5" \u00fc\u4e2d\' OR n IS NULL'
WANTED = {'n > 5': {6, 7, 8, 9}, 'n < 3': {0, 1, 2}, 'n BETWEEN 1 AND 2': {1, 2}, QUOTES: {5},
          "n IN ('4', '7')": {4, 7}}


def properties_of(i):
    return dict(n=i, name='it\'s "%d" \u00fc\u4e2d' % i, RETRY_TOPIC=TOPIC, UNIQ_KEY=r.unique('filt', i))


class Filters:
    """Of the broker that has the directory `d` now. kept: by group its expression and version."""

    def __init__(self, d):
        self.d, self.kept = d, {}

    def make_topics(self):
        self.d.client.call(r.UPDATE_TOPIC, dict(
            topic=TOPIC, defaultTopic='TBW102', readQueueNums=1, writeQueueNums=1, perm=6,
            topicFilterType='SINGLE_TAG', topicSysFlag=0, order='false'))
        for i in range(MESSAGES):
            r.send(self.d.client, TOPIC, 0, b'%d' % i, r.properties(**properties_of(i)))

    def heartbeat(self, group, expression, version):
        subscription = dict(topic=TOPIC, subString=expression, subVersion=version, expressionType='SQL92',
                            classFilterMode=False, tagsSet=[], codeSet=[])
        consumer = dict(groupName=group, consumeType='CONSUME_PASSIVELY', messageModel='CLUSTERING',
                        consumeFromWhere='CONSUME_FROM_FIRST_OFFSET', subscriptionDataSet=[subscription],
                        unitMode=False)
        self.d.client.call(r.HEARTBEAT, body=json.dumps(dict(
            clientID='c-' + group, producerDataSet=[], consumerDataSet=[consumer])).encode())

    def register(self, group, expression, version):
        """A member of the group brings it; it is the one that counts. A new group gets its retry messages."""
        self.heartbeat(group, expression, version)
        if group not in self.kept:
            for i in range(MESSAGES):
                r.send(self.d.client, '%RETRY%' + group, 0, b'%d' % i, r.properties(**properties_of(i)))
        self.kept[group] = expression, version

    def wait_for_file(self):
        def written():
            try:
                with open(self.d.store + '/config/consumerFilter.json', 'rb') as f:
                    groups = json.load(f)['filterDataByTopic'][TOPIC]['groupFilterData']
            except (OSError, ValueError, KeyError):
                return False            # it is being replaced
            return {g: (x['expression'], x['clientVersion']) for g, x in groups.items()} == self.kept
        wait_until(written, 60, 'consumerFilter.json', self.d.process)

    def pull(self, group, topic, expression, version):
        """The numbers of what a pull gets; without an expression it goes by the group's heartbeat."""
        end, at, numbers = r.offsets(self.d.client, topic, 0)[1], 0, set()
        while at < end:
            fields = dict(consumerGroup=group, topic=topic, queueId=0, queueOffset=at, maxMsgNums=32,
                          sysFlag=4 if expression else 0, commitOffset=0, suspendTimeoutMillis=0,
                          subscription=expression, subVersion=version, expressionType='SQL92')
            header, body = self.d.client.call(r.PULL, fields,
                                              good=(r.SUCCESS, r.PULL_NOT_FOUND, r.PULL_RETRY))
            numbers |= {int(text) for _, _, _, text, _, _ in pops.records(body)}
            expect(int(header['extFields']['nextBeginOffset']) > at, 'a pull of %s stays at %d' % (topic, at))
            at = int(header['extFields']['nextBeginOffset'])
        return numbers

    def expect_retries(self, what):
        """A pull of a retry topic goes by the filter of the topic that a message was of, whoever is there."""
        for group, (expression, version) in self.kept.items():
            got = self.pull(group, '%RETRY%' + group, 'TRUE', version)
            expect(got == WANTED[expression], '%s: the retries of %s with %s are %s' % (
                what, group, expression, sorted(got)))

    def expect_older_ignored(self, group, what):
        """A heartbeat with an older version, or the same one, changes nothing of what is kept."""
        expression, version = self.kept[group]
        for older in (version - 1, version):
            self.heartbeat(group, 'n = 0', older)
            time.sleep(0.1)
            got = self.pull(group, TOPIC, '', older)
            expect(got == WANTED[expression], '%s: %s gets %s after a heartbeat of version %d, kept is %s' % (
                what, group, sorted(got), older, self.kept[group]))
