"""The suites of tests/interop: each runs an unmodified client and yields (check, reason or None)."""
import hashlib
import os
import re
import subprocess
import threading
import time

from harness import (CONNECT_TIMEOUT, HERE, OUT, Cluster, Unusable, reference_java, rmqctl, run_tool,
                     send_one, wait_until)

JAVA_VERSIONS = {'java55': '5.5.0', 'java49': '4.9.8'}
_build = threading.Lock()


class Place:
    """Where a suite runs: addresses of a broker, a folder for its files, the processes it may start."""

    def __init__(self, namesrv, broker, directory, procs, say, bench, target='', restart=None):
        self.namesrv, self.broker, self.directory, self.procs = namesrv, broker, directory, procs
        self.say, self.bench = say, bench
        self.target = target            # 'rmqd', 'reference', or another word
        self.restart = restart          # kills the broker and starts it again, where a check may
        os.makedirs(directory, exist_ok=True)


def sources_hash(folder, *more):
    h = hashlib.sha256(repr(more).encode())
    for d, _, files in sorted(os.walk(folder)):
        for f in sorted(files):
            with open(os.path.join(d, f), 'rb') as s:
                h.update(f.encode() + b'\0' + s.read())
    return h.hexdigest()


def built(name, source, build):
    """Calls build(out) unless out/interop/NAME was built from the same sources; returns out."""
    out = os.path.join(OUT, name)
    stamp, want = os.path.join(out, 'stamp'), sources_hash(source)
    with _build:
        if os.path.exists(stamp) and open(stamp).read() == want:
            return out
        os.makedirs(out, exist_ok=True)
        build(out)
        with open(stamp, 'w') as f:
            f.write(want)
    return out


def java_client(version, home):
    """The command line that runs the Java checks with one version of the client, without arguments."""
    source = os.path.join(HERE, 'java')

    def build(out):
        run_tool(['mvn', '-q', '-B', '-f', os.path.join(source, 'pom.xml'), '-Drocketmq.version=' + version,
                  '-Dout=' + out, 'compile', 'dependency:copy-dependencies',
                  '-DoutputDirectory=' + out + '/lib'])
    out = built('java-' + version, source, build)
    return ['java', '-Xmx512m', '-XX:TieredStopAtLevel=1', '-Duser.home=' + home,
            '-Drocketmq.client.logRoot=' + home + '/logs', '-Drocketmq.client.logLevel=WARN',
            '-Drocketmq.client.localOffsetStoreDir=' + home + '/offsets', CONNECT_TIMEOUT,
            '-cp', out + '/classes:' + out + '/lib/*', 'rmqd.interop.Main']


def go_client(home):
    """The command line that runs the Go checks, without arguments; offsets of broadcast groups go to home."""
    source = os.path.join(HERE, 'go')

    def build(out):
        run_tool(['go', 'build', '-o', os.path.join(out, 'interop'), '.'], cwd=source)
    return ['env', 'rocketmq.client.localOffsetStoreDir=' + home + '/offsets',
            os.path.join(built('go', source, build), 'interop')]


# Checks that the reference does not pass, and what it does instead (seen on 5.5.0). rmqd has to.
REFERENCE_DIFFERS = {
    'send_repeated': 'it has no de-duplication and refuses the attribute',
    'delay_overflow': 'a delay of Long.MAX overflows and is delivered at once',
    'retry_long_properties': 'it refuses to take back a message whose properties have no room for a retry: '
                             'the message stays with its consumer for ever',
    'delay_over_restart': 'pending timer messages come twice after a kill',
    'transaction_over_restart': 'each look at an open transaction uses up one of its checks, also when '
                                'nobody is asked: it is set aside',
    'order_owners_over_restart': 'it forgets its locks: two consumers work on one queue after a restart',
}


def wish(place, text):
    """Does what a program asks for, and returns the line that tells it so."""
    if text == 'restart' and place.restart:
        place.restart()
        return 'restarted'
    if text.startswith('rmqctl '):
        done = subprocess.run([rmqctl(), '-n', place.namesrv] + text.split()[1:], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return '%d %s' % (done.returncode, ' / '.join(done.stdout.splitlines()))
    return 'not here'


def run_checks(place, argv, seconds):
    """Runs a program that prints 'ok NAME' and 'FAILED NAME: reason' and counts at the end. It may say
    '! restart' to have the broker killed and started again, and then reads 'restarted'; '! rmqctl ARG...' to
    have that done at its name server, and then reads the exit code and the output, in a line."""
    log = os.path.join(place.directory, 'stderr.log')
    p = place.procs.start(argv, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(seconds, p.kill)
    timer.daemon = True                 # an interrupted run does not wait for it
    timer.start()
    last, ran = '', 0
    for line in p.stdout:
        last = line.rstrip('\n')
        if last.startswith('! '):
            p.stdin.write(wish(place, last[2:]) + '\n')
            p.stdin.flush()
        place.say(last)
        m = re.match(r'(?:ok (\S+)|FAILED (\S+): (.*))', last)
        if m:
            ran += 1
            name, reason = m.group(1) or m.group(2), m.group(3)
            if reason and place.target == 'reference' and name in REFERENCE_DIFFERS:
                place.say('# %s: the reference differs: %s' % (name, REFERENCE_DIFFERS[name]))
                reason = None
            yield name, reason
    timer.cancel()
    place.procs.stop(p)
    m = re.fullmatch(r'(\d+) passed, (\d+) failed', last)
    if not m or int(m.group(1)) + int(m.group(2)) != ran or ran == 0:
        yield 'program', 'did not run to its end (exit code %s, log %s)' % (p.returncode, log)


def java(version, *checks):
    def suite(place):
        return run_checks(place, java_client(version, place.directory) + [place.namesrv] + list(checks), 1800)
    return suite


def go(place):
    return run_checks(place, go_client(place.directory) + [place.namesrv, place.broker], 1200)


ALONE_JAVA = ['order_global', 'order_over_restart', 'order_owners_over_restart', 'delay_over_restart',
              'transaction_set_aside', 'transaction_over_restart', 'lmq', 'compaction',
              'batch_topic_over_restart']
ALONE_POP = ['pop_over_restart', 'pop_init_modes']          # clients of 5.x only
ALONE_GO = ['go_order_over_restart']


def brokers(place):
    """Checks that kill the broker, or need it configured: light queues, questions about transactions
    soon, compaction of small files."""
    options = ['transactionTimeOut=1000', 'transactionCheckInterval=2000', 'transactionCheckMax=3',
               'enableLmq=true', 'enableMultiDispatch=true', 'compactionCqMappedFileSize=4600',
               'compactionMappedFileSize=23000', 'compactionScheduleInternal=3000',
               'initPopOffsetByCheckMsgInMem=false']
    cluster = Cluster(place.procs, os.path.join(place.directory, 'servers'), broker=place.target,
                      namesrv=place.target, extra=options)
    for name in list(JAVA_VERSIONS) + ['go']:
        there = Place(cluster.namesrv, cluster.broker, os.path.join(place.directory, name), place.procs,
                      place.say, place.bench, place.target, cluster.restart)
        if name == 'go':
            argv = go_client(there.directory) + [there.namesrv, there.broker] + ALONE_GO
        else:
            argv = java_client(JAVA_VERSIONS[name], there.directory) + [there.namesrv] + ALONE_JAVA
            argv += ALONE_POP if name == 'java55' else []
        for check, reason in run_checks(there, argv, 1200):
            yield '%s/%s' % (name, check), reason
    cluster.stop()


RATE_OF = {'Producer': 'Send TPS', 'Consumer': 'Consume TPS'}
FAILURES_OF = {'Producer': ['Send Failed', 'Response Failed'], 'Consumer': ['Consume Fail']}


def numbers(name, text):
    return [int(x) for x in re.findall(name + r': (\d+)', text)]


def judge(text, rate, failures, want):
    """What is wrong with the reports of a benchmark program, or None; they count from the first message."""
    rates = numbers(rate, text)
    moving = rates[next((i for i, r in enumerate(rates) if r > 0), len(rates)):]
    if len(moving) < want:
        return '%d reports with messages, expected %d' % (len(moving), want)
    for name in failures:
        counts = numbers(name, text)
        if len(counts) != len(rates) or any(counts):
            return '%s: %s' % (name, counts)
    return None if all(moving) else 'nothing moved at times: %s %s' % (rate, rates)


def bench(place):
    """The reference's benchmark producer and consumer for a while: no failure, and messages all the time."""
    seconds, threads = place.bench
    topic = 'bench_%d_%d' % (os.getpid(), int(time.time()))
    package = 'org.apache.rocketmq.example.benchmark.'
    send_one(place.broker, topic, 0)            # makes the topic: 64 threads at once would each try to
    running = {}
    for what, args in (('Consumer', ['-g', 'g_' + topic]), ('Producer', ['-w', str(threads)])):
        log = os.path.join(place.directory, what + '.log')
        argv = reference_java(os.path.join(place.directory, what), package + what, '-n', place.namesrv,
                              '-t', topic, *args, heap='1g')
        running[what] = place.procs.start(argv, log), log
        wait_until(lambda: numbers(RATE_OF[what], open(log, errors='replace').read()), 120,
                   'a report of %s in %s' % (what, log), running[what][0])
    time.sleep(seconds)
    alive = {what: p.poll() is None for what, (p, _) in running.items()}
    for what, (p, log) in running.items():
        place.procs.stop(p)
        with open(log, errors='replace') as f:
            text = f.read()
        rates = numbers(RATE_OF[what], text)
        reason = judge(text, RATE_OF[what], FAILURES_OF[what], max(seconds // 10 - 1, 2))
        if not alive[what]:
            reason = 'ended by itself, log ' + log
        name = 'bench_' + what.lower()
        place.say('%s %s: %s %s' % ('FAILED' if reason else 'ok', name, RATE_OF[what], rates))
        yield name, reason


def mixed(place):
    """A name server of the one with a broker of the other, both ways."""
    for broker, namesrv, name in (('reference', 'rmqd', 'apache_at_rmq_namesrvd'),
                                  ('rmqd', 'reference', 'rmqd_at_apache')):
        place.say('# broker of %s, name server of %s' % (broker, namesrv))
        try:
            directory = os.path.join(place.directory, name)
            cluster = Cluster(place.procs, directory, broker=broker, namesrv=namesrv)
        except Unusable as e:
            place.say('FAILED %s: %s' % (name, e))
            yield name, str(e)
            continue
        for version in JAVA_VERSIONS.values():
            there = Place(cluster.namesrv, cluster.broker, directory + '-' + version, place.procs, place.say,
                          place.bench)
            for check, reason in java(version, 'create_topic', 'send_sync', 'send_auto_topic', 'push_shared',
                                      'retry')(there):
                yield '%s/%s/%s' % (name, version, check), reason
        cluster.stop()
