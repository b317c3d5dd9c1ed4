"""The mqadmin suite: the reference's unmodified administration tool against a broker.

The tool exits 0 whatever happens, so its output is judged: no exception in it, and the columns, names and
numbers that belong there.
"""
import os
import re
import subprocess
import time

from harness import Unusable, call, reference_java, send_one
from suites import java_client


class Wrong(Exception):
    pass


def need(condition, what, output=''):
    if not condition:
        raise Wrong(what + (': ' + ' | '.join(output.split('\n'))[:400] if output else ''))


class Admin:
    """Runs single commands and takes their output apart."""

    def __init__(self, place):
        self.place = place
        self.home = os.path.join(place.directory, 'mqadmin')
        self.topic = 'adm_%d' % os.getpid()
        self.group = 'g_' + self.topic
        clusters = call(place.namesrv, 106)[1].decode()
        m = re.search(r'"(?:brokerAddrs)":\{"?0"?:"%s"' % re.escape(place.broker), clusters)
        need(m, 'the name server does not list the broker', clusters)
        self.broker = re.search(r'"brokerName":"([^"]+)"', clusters).group(1)
        self.cluster = re.search(r'"cluster":"([^"]+)"', clusters).group(1)

    def raw(self, *args):
        argv = reference_java(self.home, 'org.apache.rocketmq.tools.command.MQAdminStartup', *args, '-n',
                              self.place.namesrv)
        began = time.monotonic()
        r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=600, env=dict(os.environ, ROCKETMQ_HOME=self.home))
        with open(self.home + '.log', 'a') as f:
            f.write('$ mqadmin %s  # %.1f s\n%s\n' % (' '.join(args), time.monotonic() - began, r.stdout))
        return r.stdout

    def run(self, *args):
        """The output of a command that works. The tool gives up after 3 s; that is tried again."""
        for _ in range(3):
            out = self.raw(*args)
            if not re.search(r'Remoting(Timeout|Connect|SendRequest)Exception', out):
                break
        need('Exception' not in out and '\n\tat ' not in out, args[0] + ' failed', out)
        return out

    def table(self, *args, header):
        """Rows of cells below the line that begins with #; the columns in header must be there in order."""
        out = self.run(*args)
        lines = out.split('\n')
        at = next((i for i, line in enumerate(lines) if line.startswith('#')), None)
        need(at is not None, 'no table', out)
        columns = [c.strip() for c in re.findall(r'#[^#]+', lines[at])]
        need(columns[:len(header)] == header, 'columns are %s, expected %s' % (columns, header))
        return [line.split() for line in lines[at + 1:] if line.strip()]

    def route_numbers(self, topic):
        out = self.run('topicRoute', '-t', topic)
        need('"%s"' % self.broker in out and '"%s"' % self.place.broker in out, 'no broker in the route', out)
        return tuple(int(re.search(r'"%s":\s*(\d+)' % k, out).group(1))
                     for k in ('readQueueNums', 'writeQueueNums', 'perm'))


def cluster_list(a):
    rows = a.table('clusterList', header=['#Cluster Name', '#Broker Name', '#BID', '#Addr', '#Version'])
    row = [r for r in rows if r[:4] == [a.cluster, a.broker, '0', a.place.broker]]
    need(len(row) == 1, 'no row of the broker in %s' % rows)
    need(re.fullmatch(r'V\d+_\d+_\d+.*', row[0][4]), 'version ' + row[0][4])
    need('null' not in row[0][:6], 'a null in %s' % row[0])


def topic_list(a):
    names = a.run('topicList').split()
    for want in ('TBW102', a.cluster, a.broker):
        need(want in names, '%s is not in the list' % want, ' '.join(names))


def update_topic(a):
    out = a.run('updateTopic', '-c', a.cluster, '-t', a.topic, '-r', '4', '-w', '4')
    need('create topic to %s success.' % a.place.broker in out, 'answer', out)
    need('topicName=%s, readQueueNums=4, writeQueueNums=4, perm=RW-' % a.topic in out, 'settings', out)
    got = a.route_numbers(a.topic)
    need(got == (4, 4, 6), 'route has read, write, perm %s' % (got,))
    need(a.topic in a.run('topicList').split(), 'the new topic is not in the list')


def update_topic_again(a):
    out = a.run('updateTopic', '-b', a.place.broker, '-t', a.topic, '-r', '6', '-w', '6', '-p', '4')
    need('create topic to %s success.' % a.place.broker in out, 'answer', out)
    got = a.route_numbers(a.topic)
    need(got == (6, 6, 4), 'route has read, write, perm %s' % (got,))
    a.run('updateTopic', '-b', a.place.broker, '-t', a.topic, '-r', '6', '-w', '6', '-p', '6')


def topic_route_list(a):
    rows = a.table('topicRoute', '-l', '-t', a.topic, header=['#ClusterName', '#BrokerName', '#BrokerAddrs',
                                                             '#ReadQueue', '#WriteQueue', '#Perm'])
    need(rows[0] == [a.cluster, a.broker, '{0=%s}' % a.place.broker, '6', '6', '6'], 'row is %s' % rows[0])


def topic_status(a):
    def offsets():
        header = ['#Broker Name', '#QID', '#Min Offset', '#Max Offset', '#Last Updated']
        rows = a.table('topicStatus', '-t', a.topic, header=header)
        rows = [r for r in rows if r[0] == a.broker]
        need([r[1] for r in rows] == [str(i) for i in range(6)], 'queues are %s' % rows)
        return [(int(r[2]), int(r[3]), r[4:]) for r in rows]
    for minimum, maximum, updated in offsets():
        need((minimum, maximum, updated) == (0, 0, []), 'empty topic has %s' % ((minimum, maximum, updated),))
    for q in (2, 2, 5):
        send_one(a.place.broker, a.topic, q)
    got = offsets()
    need([m for _, m, _ in got] == [0, 0, 2, 0, 0, 1], 'offsets after three sends are %s' % got)
    need(got[2][2] and not got[0][2], 'last updated %s' % got)


def consumer_progress(a):
    """With a consumer that is there and has consumed the three messages."""
    log = os.path.join(a.place.directory, 'consumer.log')
    argv = java_client('5.5.0', os.path.join(a.place.directory, 'consumer'))
    p = a.place.procs.start(argv + ['--consume', a.place.namesrv, a.topic, a.group, '3'], log,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        need(p.stdout.readline() == 'received 3\n', 'the consumer did not get the three messages, log ' + log)
        header = ['#Topic', '#Broker Name', '#QID', '#Broker Offset', '#Consumer Offset', '#Diff',
                  '#Inflight', '#LastTime']
        for _ in range(5):              # offsets are committed in turns
            out = a.run('consumerProgress', '-g', a.group)
            if 'Consume Diff Total: 0' in out:
                break
        need('Consume Diff Total: 0' in out and 'Consume TPS:' in out, 'totals', out)
        rows = [r for r in a.table('consumerProgress', '-g', a.group, header=header) if r[0] == a.topic]
        need(len(rows) == 6, 'rows of the topic: %s' % rows)
        for r, want in zip(sorted(rows, key=lambda r: int(r[2])), (0, 0, 2, 0, 0, 1)):
            need(r[1] == a.broker and r[3:6] == [str(want), str(want), '0'], 'row %s' % r)
        rows = a.table('consumerProgress', header=['#Group', '#Count', '#Version', '#Type', '#Model', '#TPS',
                                                   '#Diff Total'])
        mine = [r for r in rows if r[0] == a.group]
        need(len(mine) == 1, 'the group is not in the list: %s' % rows)
        need(mine[0][1] == '1' and mine[0][2] == 'V5_5_0' and mine[0][3:5] == ['PUSH', 'CLUSTERING'] and
             mine[0][-1] == '0', 'row of the group: %s' % mine[0])
    finally:
        p.stdin.close()
        a.place.procs.stop(p)


def broker_consume_stats(a):
    """All groups of a broker: the consumer's row of each queue is among them."""
    header = ['#Topic', '#Group', '#Broker Name', '#QID', '#Broker Offset', '#Consumer Offset', '#Diff',
              '#LastTime']
    rows = a.table('brokerConsumeStats', '-b', a.place.broker, header=header)
    rows = [r for r in rows if r[:2] == [a.topic, a.group]]
    need(len(rows) == 6, 'rows of the topic: %s' % rows)
    for r, want in zip(sorted(rows, key=lambda r: int(r[3])), (0, 0, 2, 0, 0, 1)):
        need(r[2] == a.broker and r[4:7] == [str(want), str(want), '0'], 'row %s' % r)


def broker_status(a):
    out = a.run('brokerStatus', '-b', a.place.broker)
    lines = dict(m.groups() for m in re.finditer(r'^(\S+)\s*: (.*)$', out, re.M))
    for key in ('bootTimestamp', 'brokerVersionDesc', 'commitLogMaxOffset', 'commitLogMinOffset', 'putTps',
                'commitLogDiskRatio', 'getTransferredTps', 'msgPutTotalTodayNow', 'msgGetTotalTodayNow',
                'runtime', 'putMessageTimesTotal', 'earliestMessageTimeStamp', 'dispatchBehindBytes'):
        need(lines.get(key, ''), 'no %s among %s' % (key, sorted(lines)))
    need(int(lines['commitLogMaxOffset']) > 0, 'commitLogMaxOffset is ' + lines['commitLogMaxOffset'])


def broker_config(a):
    out = a.run('getBrokerConfig', '-b', a.place.broker)
    need('=%s=' % a.place.broker in out, 'heading', out)
    got = dict(m.groups() for m in re.finditer(r'^(\S+)\s+=  ?(.*)$', out, re.M))
    for key, want in (('brokerName', a.broker), ('brokerClusterName', a.cluster), ('brokerId', '0'),
                      ('listenPort', a.place.broker.rsplit(':', 1)[1])):
        need(got.get(key, '').strip() == want, '%s is %r, expected %r' % (key, got.get(key), want))
    for key in ('flushDiskType', 'storePathRootDir', 'namesrvAddr', 'maxMessageSize', 
                'brokerPermission', 'autoCreateTopicEnable'):
        need(key in got, 'no key ' + key)


def delete_topic(a):
    out = a.run('deleteTopic', '-c', a.cluster, '-t', a.topic)
    for where in ('cluster [%s]' % a.cluster, 'NameServer'):
        need('delete topic [%s] from %s success.' % (a.topic, where) in out, 'answer', out)
    out = a.raw('topicRoute', '-t', a.topic)
    need('CODE: 17' in out, 'route of the deleted topic', out)
    # The broker's next registration, which another topic causes, must not bring it back.
    a.run('updateTopic', '-b', a.place.broker, '-t', a.topic + '_other', '-r', '1', '-w', '1')
    names = a.run('topicList').split()
    need(a.topic + '_other' in names and a.topic not in names, 'topics after a deletion', ' '.join(names))
    a.run('deleteTopic', '-c', a.cluster, '-t', a.topic + '_other')


def unknown(a):
    """What is not there is told with the code that the tool's users know."""
    need('CODE: 17' in a.raw('topicRoute', '-t', 'nosuch_' + a.topic), 'topicRoute of an unknown topic')
    need('CODE: 17' in a.raw('consumerProgress', '-g', 'nosuch_' + a.topic),
         'consumerProgress of an unknown group')


CHECKS = [('clusterList', cluster_list), ('topicList', topic_list), ('updateTopic', update_topic),
          ('updateTopic_again', update_topic_again), ('topicRoute_list', topic_route_list),
          ('topicStatus', topic_status), ('consumerProgress', consumer_progress),
          ('brokerConsumeStats', broker_consume_stats),
          ('brokerStatus', broker_status), ('getBrokerConfig', broker_config), ('deleteTopic', delete_topic),
          ('unknown', unknown)]


def mqadmin(place):
    admin = Admin(place)
    for name, check in CHECKS:
        try:
            check(admin)
            reason = None
        except (Wrong, Unusable) as e:
            reason = str(e)
        except (OSError, ValueError, IndexError, AttributeError, subprocess.TimeoutExpired) as e:
            reason = 'output that could not be read: %s: %s' % (type(e).__name__, e)
        place.say('ok ' + name if reason is None else 'FAILED %s: %s' % (name, reason))
        yield name, reason
