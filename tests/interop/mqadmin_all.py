"""Every command of mqadmin 5.5.0 against the reference and against rmqd, after the same preparation.

A command's output is compared by its structure: times, addresses, ids and measured numbers are masked. What
differs has to be in VERDICTS, with the reason; docs/mqadmin.md says the same for each command, and a command
that mqadmin has and this table lacks is a failure.

As a program: mqadmin_all.py DIR prints what both say where they differ, from the outputs of a kept run.
"""
import json
import os
import re
import subprocess
import sys
import threading

from harness import HERE, ROOT, Cluster, Unusable, call, reference_java, wait_until

PRODUCERS, CONSUMERS, TOPIC = 'pg_all', 'cg_all', 'all'
MESSAGES = 8
DEFAULT_SECONDS = 40

# (command, words). Braces are filled in by Subject.words(). In this order; some prepare for later ones.
STEPS = [
    # topics
    ('updateTopic', '-c {cluster} -t made -r 4 -w 4'),
    ('updateTopic', '-b {broker} -t made -r 6 -w 6 -a +message.type=FIFO'),
    ('updateTopic', '-b {broker} -t made -r 6 -w 6 -a +no.such=1'),
    ('updateTopicList', '-b {broker} -f {dir}/topics.json'),
    ('updateTopicPerm', '-b {broker} -t made -p 4'),
    ('topicRoute', '-t made'),
    ('topicRoute', '-t made -l'),
    ('topicRoute', '-t nowhere'),
    ('topicStatus', '-t all'),
    ('topicClusterList', '-t all'),
    ('topicList', ''),
    ('topicList', '-c'),
    ('allocateMQ', '-t all -i 10.0.0.1,10.0.0.2'),
    ('updateOrderConf', '-t made -m put -v {name}:4'),
    ('updateOrderConf', '-t made -m get'),
    ('updateOrderConf', '-t made -m delete'),
    ('updateStaticTopic', '-b {name} -t static -qn 4'),
    ('remappingStaticTopic', '-b {name} -t static'),
    ('setConsumeMode', '-b {broker} -t made -g cg_all -m POP -q 2'),
    # groups
    ('updateSubGroup', '-b {broker} -g made_g -r 3'),
    ('updateSubGroup', '-c {cluster} -g made_g -r 5 -d false'),
    ('updateSubGroupList', '-b {broker} -f {dir}/groups.json'),
    ('getConsumerConfig', '-g made_g'),
    ('consumerConnection', '-g cg_all'),
    ('consumerConnection', '-g nobody'),
    ('producerConnection', '-g pg_all -t all'),
    ('producerConnection', '-g nobody -t all'),
    ('producer', '-b {broker}'),
    ('consumerProgress', '-g cg_all'),
    ('consumerProgress', '-g cg_all -t all -s true'),
    ('consumerProgress', ''),
    ('consumerStatus', '-g cg_all'),
    ('consumerStatus', '-g cg_all -i {client} -s'),
    ('updateSubGroup', '-b {broker} -g cloned'),
    ('cloneGroupOffset', '-s cg_all -d cloned -t all -o true'),
    ('consumerProgress', '-g cloned -t all'),
    ('resetOffsetByTime', '-g cloned -t all -s -1'),
    ('resetOffsetByTime', '-g cg_all -t all -s now'),
    ('resetOffsetByTime', '-g cloned -t all -s now -b {broker} -q 0 -o 1'),
    ('skipAccumulatedMessage', '-g cloned -t all'),
    # messages
    ('queryMsgById', '-t all -i {offsetid}'),
    ('queryMsgById', '-t all -i {offsetid} -g cg_all -d {client}'),
    ('queryMsgById', '-t all -i {uniqid}'),
    ('queryMsgByKey', '-t all -k key1'),
    ('queryMsgByKey', '-t all -k nokey'),
    ('queryMsgByKey', '-t all -k odd -p T'),
    ('queryMsgByUniqueKey', '-t all -i {uniqid}'),
    ('queryMsgByUniqueKey', '-t all -i {uniqid} -g cg_all -d {client}'),
    ('queryMsgByOffset', '-t all -b {name} -i 0 -o 0'),
    ('queryMsgTraceById', '-i {uniqid}'),
    ('printMsg', '-t all -d true'),
    ('printMsg', '-t all -s even -d true'),
    ('printMsgByQueue', '-t all -a {name} -i 1 -p true -d true'),
    ('sendMessage', '-t all -p hello -k sentkey -c even -b {name} -i 0'),
    ('sendMessage', '-t all -p traced -m true -b {name} -i 1'),
    ('consumeMessage', '-t all -b {name} -i 0 -o 0 -c 2'),
    ('checkMsgSendRT', '-t all -a 3 -s 64'),
    ('sendMsgStatus', '-b {cluster}_{name} -s 64 -c 3'),
    ('queryCq', '-t all -q 0 -i 0 -c 2 -b {broker}'),
    ('queryCq', '-t all -q 0 -i 0 -c 1 -b {broker} -g cg_all'),
    ('queryCq', '-t all -q 99 -i 0 -b {broker}'),
    # broker and cluster
    ('clusterList', ''),
    ('clusterList', '-m'),
    ('clusterRT', '-a 5 -i 60'),
    ('brokerStatus', '-b {broker}'),
    ('brokerStatus', '-c {cluster}'),
    ('brokerConsumeStats', '-b {broker}'),
    ('statsAll', ''),
    ('statsAll', '-a -t all'),
    ('getBrokerConfig', '-b {broker}'),
    ('updateBrokerConfig', '-b {broker} -k transactionCheckMax -v 9'),
    ('updateBrokerConfig', '-c {cluster} -k traceOn -v false'),
    ('updateBrokerConfig', '-b {broker} -k flushDiskType -v ASYNC_FLUSH'),
    ('updateBrokerConfig', '-b {broker} -k brokerConfigPath -v /tmp/x'),
    ('updateBrokerConfig', '-b {broker} -k noSuchKey -v 1'),
    ('updateBrokerConfig', '-b {broker} -k transactionCheckMax -v many'),
    ('cleanExpiredCQ', '-b {broker}'),
    ('deleteExpiredCommitLog', '-b {broker}'),
    ('cleanUnusedTopic', '-b {broker}'),
    ('resetMasterFlushOffset', '-b {broker} -o 0'),
    ('haStatus', '-b {broker}'),
    ('haStatus', '-c {cluster}'),
    ('getBrokerEpoch', '-b {name}'),
    ('getColdDataFlowCtrInfo', '-b {broker}'),
    ('updateColdDataFlowCtrGroupConfig', '-b {broker} -g cg_all -v 100000'),
    ('removeColdDataFlowCtrGroupConfig', '-b {broker} -g cg_all'),
    ('setCommitLogReadAheadMode', '-b {broker} -m 0'),
    ('switchTimerEngine', '-b {broker} -e F'),
    ('addBroker', '-c {broker} -b /tmp/none.conf'),
    ('removeBroker', '-c {broker} -b {cluster}:{name}:0'),
    # name server
    ('getNamesrvConfig', ''),
    ('updateNamesrvConfig', '-k waitSecondsForService -v 44'),
    ('updateNamesrvConfig', '-k configBlackList -v x'),
    ('updateKvConfig', '-s ns -k k -v v'),
    ('deleteKvConfig', '-s ns -k k'),
    ('wipeWritePerm', '-b {name}'),
    ('addWritePerm', '-b {name}'),
    # controller
    ('getSyncStateSet', '-a {namesrv} -b {name}'),
    ('getControllerMetaData', '-a {namesrv}'),
    ('getControllerConfig', '-a {namesrv}'),
    ('updateControllerConfig', '-a {namesrv} -k a -v b'),
    ('electMaster', '-a {namesrv} -b 1 -bn {name} -c {cluster}'),
    ('cleanBrokerMetadata', '-a {namesrv} -bn {name} -c {cluster}'),
    # export
    ('exportMetadata', '-b {broker} -f {dir}/export -t'),
    ('exportMetadata', '-b {broker} -f {dir}/export -g'),
    ('exportMetadata', '-c {cluster} -f {dir}/export'),
    ('exportConfigs', '-c {cluster} -f {dir}/export'),
    ('exportMetrics', '-c {cluster} -f {dir}/export'),
    ('exportMetadataInRocksDB', '-p {dir}/none -t topics'),
    ('exportPopRecord', '-b {broker} -d true'),
    ('rocksDBConfigToJson', '-c {cluster} -t topics'),
    ('checkRocksdbCqWriteProgress', '-c {cluster} -n {namesrv} -t all'),
    ('dumpCompactionLog', '-f {dir}/none'),
    # users and ACLs
    ('createUser', '-b {broker} -u alice -p secret'),
    ('updateUser', '-b {broker} -u alice -p other'),
    ('getUser', '-b {broker} -u alice'),
    ('listUser', '-b {broker}'),
    ('copyUser', '-f {broker} -t {broker} -u alice'),
    ('createAcl', '-b {broker} -s User:alice -r Topic:all -a Pub -d Allow'),
    ('updateAcl', '-b {broker} -s User:alice -r Topic:all -a Sub -d Allow'),
    ('getAcl', '-b {broker} -s User:alice'),
    ('listAcl', '-b {broker}'),
    ('copyAcl', '-f {broker} -t {broker} -s User:alice'),
    ('deleteAcl', '-b {broker} -s User:alice'),
    ('deleteUser', '-b {broker} -u alice'),
    # lite topics
    ('getBrokerLiteInfo', '-b {broker}'),
    ('getParentTopicInfo', '-p all'),
    ('getLiteTopicInfo', '-p all -l x'),
    ('getLiteClientInfo', '-p all -g cg_all -c {client}'),
    ('getLiteGroupInfo', '-p all -g cg_all'),
    ('triggerLiteDispatch', '-p all -g cg_all'),
    # the end
    ('deleteSubGroup', '-c {cluster} -g made_g -r true'),
    ('deleteTopic', '-c {cluster} -t made'),
    ('deleteTopic', '-c {cluster} -t TBW102'),
    ('startMonitoring', ''),
]
# These go on until they are stopped.
SECONDS = {'clusterRT': 15, 'startMonitoring': 15}

# What rmqd says otherwise: the word that docs/mqadmin.md has, and what rmqd's output of one of its steps must
# match. Commands that are not here are the same.
NO_USERS = ('not yet', 'no users and ACLs')
BOUNDED = ('not applicable', 'bounds reads of old messages')
VERDICTS = {
    'topicList': ('differs', 'rmq_sys_delivered'),
    'updateStaticTopic': ('not applicable', 'no static topics'),
    'remappingStaticTopic': ('not applicable', 'No topic route to do the remapping'),
    'queryCq': ('better', 'eval=true'),
    'statsAll': ('differs', 'rmq_sys_delivered'),
    'brokerStatus': ('differs', 'transactionsOpen'),
    'getBrokerConfig': ('differs', 'damagedLog'),
    'updateBrokerConfig': ('better', 'needs a restart to take effect'),
    'resetMasterFlushOffset': ('not yet', 'no replicas'),
    'getBrokerEpoch': ('not yet', 'no replicas'),
    'getColdDataFlowCtrInfo': BOUNDED,
    'updateColdDataFlowCtrGroupConfig': BOUNDED,
    'removeColdDataFlowCtrGroupConfig': BOUNDED,
    'setCommitLogReadAheadMode': ('not applicable', 'past the page cache'),
    'switchTimerEngine': ('not applicable', 'one timer engine'),
    'addBroker': ('not applicable', 'no broker container'),
    'removeBroker': ('not applicable', 'no broker container'),
    'getNamesrvConfig': ('differs', 'kvConfigPath'),
    'exportMetadata': ('better', r'metadata\.json success'),
    'exportMetrics': ('better', r'metrics\.json success'),
    'rocksDBConfigToJson': ('not applicable', 'nothing in RocksDB'),
    'checkRocksdbCqWriteProgress': ('not applicable', 'nothing in RocksDB'),
    'createUser': NO_USERS, 'updateUser': NO_USERS, 'deleteUser': NO_USERS, 'getUser': NO_USERS,
    'listUser': NO_USERS, 'copyUser': NO_USERS, 'createAcl': NO_USERS, 'updateAcl': NO_USERS,
    'deleteAcl': NO_USERS, 'getAcl': NO_USERS, 'listAcl': NO_USERS, 'copyAcl': NO_USERS,
    'getBrokerLiteInfo': ('not yet', 'no lite topics'),
}

JAVA_NOISE = re.compile(r'^\s*(at |\.\.\. \d+ more|For more information|See https?:)|^SLF4J|RocketMQLog|'
                        r'^\s*$|^WARNING:|sun\.misc|Picked up')
MASKS = [
    (re.compile(r'\d{4}-\d\d-\d\d[ #T]\d\d:\d\d:\d\d(?:[.:,]\d+)?'), 'TIME'),
    (re.compile(r'\b\d{13}(?=/)'), 'NUMBER '),
    (re.compile(r'/?\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:@[\w-]+(?:#\d+)?)?'), 'ADDRESS'),
    (re.compile(r'/[\w.-]+:\d+\b'), 'ADDRESS'),
    (re.compile(r'\b[0-9A-Fa-f]{24,}(?:-[0-9a-f-]+)?\b'), 'ID'),
    (re.compile(r'\b\d+\.\d+(?:E-?\d+)?\b'), 'REAL'),
    (re.compile(r'(?<![\w.])-?\d{4,}\b'), 'NUMBER'),
    (re.compile(r'\b\d+ ?ms\b'), 'DURATION'),
    (re.compile(r'spentTimeMills=\d+'), 'spentTimeMills=NUMBER'),
    (re.compile(r'(@|0x)[0-9a-f]{5,}\b'), '@OBJECT'),
    (re.compile(r'\b(?:rt|RT)=\d+'), 'rt=NUMBER'),
]


def masked(text, directory):
    lines = []
    for line in text.replace(directory, 'DIR').replace('\1', '').split('\n'):
        if JAVA_NOISE.search(line):
            continue
        for pattern, word in MASKS:
            line = pattern.sub(word, line)
        lines.append(re.sub(r'\s+', ' ', re.sub(r'-{2,}', '--', line)).strip())
    return lines


def keys_only(text, directory):
    """Of 'key : value', 'key = value': the key and what sort of value it has."""
    lines = []
    for line in masked(text, directory):
        m = re.match(r'^(?:ADDRESS )?([\w./%$@-]+) ?[:=]( .*)?$', line)
        if not m:
            lines.append(line)
            continue
        value = (m.group(2) or '').strip()
        words = {re.sub(r'\d+', 'N', w) if re.fullmatch(r'[-\d]+', w) else w for w in value.split()}
        sort = 'numbers' if words and all(w in ('REAL', 'NUMBER', 'N', '-N') for w in words) else 'text'
        lines.append('%s: %s' % (re.sub(r'DIR\S*', 'DIR', m.group(1)), sort))
    return lines


def no_numbers(text, directory):
    return [re.sub(r'(?<!\w)-?\d+%?(?!\w)', 'NUMBER', line).replace('REAL', 'NUMBER')
            for line in masked(text, directory)]


def without_stacks(text, directory):
    """Which threads a client has at that moment is nobody's matter, that there are stacks is."""
    head, stacks, _ = text.partition('#Consumer jstack#')
    return no_numbers(head, directory) + (['stacks'] if stacks and 'STATE: RUNNABLE' in text else [])


SHAPES = {'brokerStatus': keys_only, 'getBrokerConfig': keys_only, 'getNamesrvConfig': keys_only,
          'clusterList': no_numbers, 'clusterRT': no_numbers, 'checkMsgSendRT': no_numbers,
          'statsAll': no_numbers, 'consumerStatus': without_stacks,
          'wipeWritePerm': no_numbers, 'addWritePerm': no_numbers,
          'sendMessage': no_numbers, 'sendMsgStatus': no_numbers, 'queryMsgTraceById': no_numbers}


def shape(command, text, directory):
    return SHAPES.get(command, masked)(text, directory)


def multiset_minus(a, b):
    rest, out = list(b), []
    for line in a:
        if line in rest:
            rest.remove(line)
        else:
            out.append(line)
    return out


def differences(command, reference, rmqd, directories):
    """(lines that only the reference prints, lines that only rmqd prints)."""
    a, b = shape(command, reference, directories[0]), shape(command, rmqd, directories[1])
    return multiset_minus(a, b), multiset_minus(b, a)


class Driver:
    """One Java process that runs many commands."""

    def __init__(self, procs, home, log):
        self.home = home
        argv = reference_java(home, os.path.join(HERE, 'java-mqadmin', 'MqadminDriver.java'))
        argv.insert(1, '-Drmq.logback.configurationFile=none')
        # Some commands write files where they are.
        self.process = procs.start(argv, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   cwd=os.path.dirname(home))

    def run(self, words, seconds=None):
        seconds = seconds or DEFAULT_SECONDS
        lines, done = [], threading.Event()

        def read():
            for line in self.process.stdout:
                if line.startswith('\1END'):
                    done.set()
                    return
                lines.append(line)
        try:
            self.process.stdin.write('\t'.join([str(seconds)] + words) + '\n')
            self.process.stdin.flush()
        except OSError:
            raise Unusable('the driver of mqadmin has ended')
        t = threading.Thread(target=read, daemon=True)
        t.start()
        t.join(seconds + 30)
        if not done.is_set():
            raise Unusable('no end of the output of ' + ' '.join(words))
        return ''.join(lines)


class Subject:
    """The reference or rmqd, prepared; outputs are those of STEPS, in order."""

    def __init__(self, place, target):
        self.target, self.place = target, place
        self.directory = os.path.join(place.directory, target)
        self.outputs = []
        extra = ['traceTopicEnable=true']
        self.cluster = Cluster(place.procs, os.path.join(self.directory, 'broker'), broker=target,
                               namesrv=target, extra=extra)
        with open(os.path.join(self.directory, 'topics.json'), 'w') as f:
            json.dump([dict(topicName=t, readQueueNums=2, writeQueueNums=2, perm=6) for t in ('l1', 'l2')], f)
        with open(os.path.join(self.directory, 'groups.json'), 'w') as f:
            json.dump([dict(groupName=g) for g in ('lg1', 'lg2')], f)
        self.driver = Driver(place.procs, os.path.join(self.directory, 'home'),
                             os.path.join(self.directory, 'driver.log'))
        self.prepare()

    def prepare(self):
        ns = self.cluster.namesrv
        self.filled = dict(cluster='DefaultCluster', name='broker-a', broker=self.cluster.broker, namesrv=ns,
                           dir=self.directory)
        self.run('updateTopic', '-c {cluster} -t %s -r 4 -w 4' % TOPIC)
        wait_until(lambda: call(ns, 105, dict(topic=TOPIC))[0]['code'] == 0, 20, 'a route of ' + TOPIC)
        sent = self.driver.run(['@produce', ns, PRODUCERS, TOPIC, str(MESSAGES)])
        ids = re.findall(r'^([0-9A-F]{24,}) ([0-9A-F]{32})$', sent, re.M)
        if len(ids) != MESSAGES:
            raise Unusable('the preparation failed at the producer: ' + sent[-2000:])
        self.filled.update(uniqid=ids[1][0], offsetid=ids[1][1])
        client = self.driver.run(['@consume', ns, CONSUMERS, TOPIC, str(MESSAGES)], 90).strip()
        if '@driver' not in client:
            raise Unusable('the preparation failed at the consumer: ' + client[-2000:])
        self.filled['client'] = client.split('\n')[-1]

    def run(self, command, words):
        words = [w.format(**self.filled) for w in words.split()]
        if '-n' not in words:
            words += ['-n', self.cluster.namesrv]
        return self.driver.run([command] + words, SECONDS.get(command, DEFAULT_SECONDS))

    def everything(self):
        for i, (command, words) in enumerate(STEPS):
            out = self.run(command, words)
            self.outputs.append(out)
            with open(os.path.join(self.directory, '%03d-%s.txt' % (i, command)), 'w') as f:
                f.write(out)
        self.help = self.driver.run([''])
        return self

    def stop(self):
        self.driver.process.stdin.close()
        self.place.procs.stop(self.driver.process)
        self.cluster.stop()


def documented():
    """command -> word of the table in docs/mqadmin.md."""
    with open(os.path.join(ROOT, 'docs', 'mqadmin.md')) as f:
        return dict(re.findall(r'^\| `(\w+)` \| ([\w ]+) \|', f.read(), re.M))


def judge(command, steps):
    """What is wrong with a command's steps, [(words, only reference, only rmqd, rmqd's output)], or None."""
    word, must_match = VERDICTS.get(command, ('same', None))
    differing = [s for s in steps if s[1] or s[2]]
    if word == 'same':
        if not differing:
            return None
        words, a, b, _ = differing[0]
        return '"%s" differs: reference %s, rmqd %s' % (words, a[:6], b[:6])
    if must_match and not any(re.search(must_match, s[3]) for s in steps):
        return 'no output matches %r: %s' % (must_match, steps[0][3][:300])
    return None if differing else 'is "%s" in the table, but does not differ any more' % word


def show(steps):
    for command, words, a, b in steps:
        if a or b:
            print('%s %s' % (command, words))
            for sign, lines in (('-', a), ('+', b)):
                for line in lines:
                    print('  %s %s' % (sign, line))


def mqadmin_all(place):
    subjects = {}
    for target in ('reference', 'rmqd'):
        place.say('# mqadmin against ' + target)
        subjects[target] = Subject(place, target).everything()
        subjects[target].stop()
    theirs, ours = subjects['reference'], subjects['rmqd']
    steps, table = {}, []
    for (command, words), a, b in zip(STEPS, theirs.outputs, ours.outputs):
        only = differences(command, a, b, (theirs.directory, ours.directory))
        steps.setdefault(command, []).append((words,) + only + (b,))
        table.append((command, words) + only)
    show(table)
    told = documented()
    known = set(re.findall(r'^   (\w+) ', theirs.help, re.M))
    if len(known) < 80:
        yield 'commands', 'mqadmin lists only %d commands: %s' % (len(known), theirs.help[:300])
    for command in sorted(known | set(steps)):
        word = VERDICTS.get(command, ('same', None))[0]
        if command not in steps:
            reason = 'no step runs it'
        elif told.get(command) != word:
            reason = 'docs/mqadmin.md says "%s", the table here "%s"' % (told.get(command), word)
        else:
            reason = judge(command, steps[command])
        place.say('ok ' + command if reason is None else 'FAILED %s: %s' % (command, reason))
        yield command, reason


def main(directory):
    table = []
    where = [os.path.realpath(os.path.join(directory, t)) for t in ('reference', 'rmqd')]
    for i, (command, words) in enumerate(STEPS):
        texts = []
        for w in where:
            with open(os.path.join(w, '%03d-%s.txt' % (i, command))) as f:
                texts.append(f.read())
        table.append((command, words) + differences(command, texts[0], texts[1], where))
    show(table)


if __name__ == '__main__':
    main(sys.argv[1])
