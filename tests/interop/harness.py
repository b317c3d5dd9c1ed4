#!/usr/bin/env python3
"""Starts brokers and name servers, ours and the reference's, for tests, and stops them.

What differs between the two is in command() alone: a target is a word, 'rmqd', 'reference' or
'reference49' (RocketMQ 4.9, for its store directories), and a role is 'broker', 'namesrv' or 'all' (both,
in one process for rmqd). Everything listens on 127.0.0.1 on ports that were free a moment ago, and keeps
its files in a folder of its own. A process is only ever stopped by the pid that was started here.

As a program, for scripts that restart a broker themselves:
  harness.py start TARGET ROLE DIR NAMESRV_PORT BROKER_PORT
                                        returns when the process runs; its pid is in DIR/ROLE.pid
  harness.py wait NAMESRV_PORT BROKER_PORT
                                        returns when the broker serves and is registered
  harness.py stop|kill DIR ROLE         returns when the process is gone
  harness.py mqadmin ARG...             runs the reference's mqadmin
  harness.py ports                      prints a free name server port and a free broker port
start appends the key=value lines of the file $EXTRA_CONF, when set, to the broker's configuration.
Environment: RMQD, RMQ_NAMESRVD (our binaries), RMQ_PEER (a script that fetches the reference's jars,
optional), PEER_DIR (where those jars are), RMQ_TEST_PORTS (LOW-HIGH).
"""
import ctypes
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, 'out', 'interop')
VERSIONS = {'reference': '5.5.0', 'reference49': '4.9.7'}
CLUSTER, BROKER_NAME = 'DefaultCluster', 'broker-a'
JAVA_OPENS = ['--add-opens=java.base/java.lang=ALL-UNNAMED', '--add-opens=java.base/java.nio=ALL-UNNAMED',
              '--add-opens=java.base/sun.nio.ch=ALL-UNNAMED',
              '--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED']
# The default of 3 s is short on a busy machine.
CONNECT_TIMEOUT = '-Dcom.rocketmq.remoting.client.connect.timeout=20000'


class Unusable(Exception):
    """What the tests stand on cannot be had: a build, a download, a process that does not come up."""


def run_tool(argv, **kw):
    """Runs a build or download step; its output is shown only when it fails."""
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, **kw)
    if r.returncode != 0:
        raise Unusable('%s failed:\n%s' % (' '.join(argv), r.stdout[-4000:]))


def fetch_jars(version, lib, pom='pom.xml'):
    run_tool(['mvn', '-q', '-B', '-f', os.path.join(HERE, 'peer', pom), '-Drocketmq.version=' + version,
              'dependency:copy-dependencies', '-DoutputDirectory=' + lib + '.tmp'])
    os.rename(lib + '.tmp', lib)


def reference_jars(version=VERSIONS['reference']):
    """The folder with the reference's jars, fetched once."""
    if version != VERSIONS['reference']:
        lib = os.path.join(OUT, 'reference-' + version, 'lib')
        if not os.path.isdir(lib):
            fetch_jars(version, lib, 'broker.pom.xml')
        return lib
    peer = os.environ.get('RMQ_PEER') or os.path.join(ROOT, '..', 'shared', 'peer', 'peer')
    base = os.environ.get('PEER_DIR') or os.path.join(OUT, 'reference')
    lib = os.path.join(base, 'lib')
    if os.path.isdir(lib):
        return lib
    os.makedirs(base, exist_ok=True)
    if os.path.exists(peer):
        run_tool([peer, 'get'], env=dict(os.environ, PEER_DIR=base))
    else:
        fetch_jars(VERSIONS['reference'], lib)
    return lib


def reference_java(home, main, *args, heap='256m', quick=True, version=VERSIONS['reference']):
    """The command line that runs a class of the reference; its logs and state go under home."""
    os.makedirs(os.path.join(home, 'conf'), exist_ok=True)
    with open(os.path.join(home, 'conf', 'logback_broker.xml'), 'w') as f:      # 4.9 does not start without
        f.write('<configuration><root level="OFF"/></configuration>\n')
    return (['java', '-Xmx' + heap] + (['-XX:TieredStopAtLevel=1'] if quick else []) + JAVA_OPENS +
            ['-Duser.home=' + home, '-Drocketmq.home.dir=' + home, 
             '-Drocketmq.client.logRoot=' + home + '/logs', CONNECT_TIMEOUT,
             '-cp', reference_jars(version) + '/*', main] + list(args))


def binary(name, variable, folder='daemon'):
    path = os.environ.get(variable) or os.path.join(ROOT, 'build', 'src', folder, name)
    if not os.path.exists(path):
        raise Unusable('%s is not there: build it, or set %s' % (path, variable))
    return path


def rmqctl():
    return binary('rmqctl', 'RMQCTL', 'ctl')


def command(target, role, directory, ns_port, broker_port, extra=()):
    """The command line of a process. extra: 'key=value' lines for the broker, later ones win."""
    broker = ['brokerClusterName=' + CLUSTER, 'brokerName=' + BROKER_NAME, 'brokerIP1=127.0.0.1',
              'bindAddress=127.0.0.1', 'listenPort=%d' % broker_port,
              'storePathRootDir=' + directory + '/store', 'autoCreateTopicEnable=true']
    if target == 'rmqd':
        if role == 'namesrv':
            return [binary('rmq-namesrvd', 'RMQ_NAMESRVD'), '-o', 'listenPort=%d' % ns_port,
                    '-o', 'orderMessageEnable=true',
                    '-o', 'bindAddress=127.0.0.1', '-o', 'kvConfigPath=' + directory + '/kvConfig.json']
        if role == 'all':
            head, where = ['--standalone'], ['namesrvListenPort=%d' % ns_port]
        else:
            head, where = [], ['namesrvAddr=127.0.0.1:%d' % ns_port]
        options = [w for line in broker + where + list(extra) for w in ('-o', line)]
        return [binary('rmqd', 'RMQD')] + head + options
    conf = os.path.join(directory, role + '.conf')
    if role == 'namesrv':
        lines = ['listenPort=%d' % ns_port, 'bindAddress=127.0.0.1', 'orderMessageEnable=true']
        main, heap = 'namesrv.NamesrvStartup', '256m'
    else:
        # On a busy machine the reference refuses sends that waited 200 ms; that is not the matter here.
        # Recalls are on by default in rmqd alone.
        lines = broker + ['brokerId=0', 'namesrvAddr=127.0.0.1:%d' % ns_port, 'enablePropertyFilter=true',
                          'recallMessageEnable=true', 'waitTimeMillsInSendQueue=5000'] + list(extra)
        main, heap = 'broker.BrokerStartup', os.environ.get('PEER_HEAP', '1g')
    with open(conf, 'w') as f:
        f.write('\n'.join(lines) + '\n')
    return reference_java(directory + '/home', 'org.apache.rocketmq.' + main, '-c', conf, heap=heap,
                          quick=False, version=VERSIONS[target])


def free_ports():
    """Free ports of a name server and a broker, who also wants port-2 (clients) and port+1 (replicas)."""
    low, high = map(int, os.environ.get('RMQ_TEST_PORTS', '20000-30000').split('-'))

    def free(port):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(('127.0.0.1', port))
                return True
            except OSError:
                return False
    for _ in range(1000):
        p = random.randrange(low, high - 12)
        if all(free(p + d) for d in (0, 8, 10, 11)):
            return p, p + 10
    raise Unusable('no free ports in %d-%d' % (low, high))


def call(address, code, fields=None, body=b'', timeout=3):
    """One remoting request; returns (header, body)."""
    host, port = address.rsplit(':', 1)
    header = json.dumps(dict(code=code, flag=0, language='JAVA', opaque=1, serializeTypeCurrentRPC='JSON',
                             version=493, extFields=fields or {})).encode()
    with socket.create_connection((host, int(port)), timeout) as s:
        s.sendall(struct.pack('>II', 4 + len(header) + len(body), len(header)) + header + body)
        f = s.makefile('rb')
        size, head = struct.unpack('>II', f.read(8))
        head &= 0xffffff
        return json.loads(f.read(head)), f.read(size - 4 - head)


def send_one(broker, topic, queue):
    """Sends one message; a topic that is not there is created with 4 queues."""
    fields = dict(producerGroup='p', topic=topic, defaultTopic='TBW102', defaultTopicQueueNums='4',
                  queueId=str(queue), sysFlag='0', bornTimestamp=str(int(time.time() * 1000)), flag='0',
                  properties='')
    header, _ = call(broker, 10, fields, b'hello', 30)
    if header['code'] != 0:
        raise Unusable('a send to %s was answered by %s' % (topic, header))


def registered(ns, broker=None):
    """Whether the name server answers, and knows the broker, and the broker answers itself."""
    try:
        header, body = call(ns, 106)
        if broker is None:
            return header['code'] == 0
        return ('"%s"' % broker).encode() in body and call(broker, 28)[0]['code'] == 0
    except (OSError, ValueError, KeyError, struct.error):
        return False


def wait_until(condition, seconds, what, process=None):
    end = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            raise Unusable('%s: the process ended with code %d' % (what, process.returncode))
        if time.monotonic() > end:
            raise Unusable('%s: not within %d s' % (what, seconds))
        time.sleep(0.1)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)          # PR_SET_PDEATHSIG


class Processes:
    """Processes of one run; close() stops those that still run, last started first."""

    def __init__(self):
        self.all = []

    def start(self, argv, log, **kw):
        with open(log, 'ab') as f:
            p = subprocess.Popen(argv, stdin=kw.pop('stdin', subprocess.DEVNULL), stdout=kw.pop('stdout', f),
                                 stderr=f, start_new_session=True, preexec_fn=die_with_parent, **kw)
        self.all.append(p)
        return p

    def stop(self, p, seconds=20):
        if p.poll() is None:
            p.terminate()
            try:
                p.wait(seconds)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        if p in self.all:
            self.all.remove(p)

    def close(self):
        for p in list(reversed(self.all)):
            self.stop(p)


class Cluster:
    """A broker and a name server, each ours or the reference's; namesrv and broker are addresses.

    extra: 'key=value' lines for the broker. When namesrv is named, it is a process of its own."""

    def __init__(self, procs, directory, broker='rmqd', namesrv=None, extra=()):
        os.makedirs(directory, exist_ok=True)
        ns_port, broker_port = free_ports()
        self.procs, self.directory, self.started = procs, directory, []
        self.namesrv, self.broker = '127.0.0.1:%d' % ns_port, '127.0.0.1:%d' % broker_port
        roles = [(namesrv or broker, 'namesrv'), (broker, 'broker')]
        if broker == 'rmqd' and namesrv is None:
            roles = [('rmqd', 'all')]
        for target, role in roles:
            argv = command(target, role, directory, ns_port, broker_port, () if role == 'namesrv' else extra)
            self._start(argv, role, None if role == 'namesrv' else self.broker)

    def _start(self, argv, role, address):
        self.last = argv, role, address
        log = os.path.join(self.directory, role + '.log')
        p = self.procs.start(argv, log)
        self.started.append(p)
        wait_until(lambda: registered(self.namesrv, address), 120, '%s (log: %s)' % (role, log), p)

    def restart(self):
        """Kills the broker and starts it again; the name server stays, if it is a process of its own."""
        p = self.started.pop()
        p.kill()
        p.wait()
        self.procs.stop(p)
        self._start(*self.last)

    def stop(self):
        for p in reversed(self.started):
            self.procs.stop(p)


def gone(pid):
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[0] == 'Z'
    except FileNotFoundError:
        return True


def main(args):
    if args[:1] == ['ports']:
        print(*free_ports())
    elif args[:1] == ['mqadmin']:
        home = os.path.join(OUT, 'mqadmin')
        os.environ['ROCKETMQ_HOME'] = home
        argv = reference_java(home, 'org.apache.rocketmq.tools.command.MQAdminStartup', *args[1:])
        os.execvp(argv[0], argv)
    elif args[:1] == ['start'] and len(args) == 6:
        target, role, directory, ns_port, broker_port = args[1:]
        extra = []
        if os.environ.get('EXTRA_CONF'):
            with open(os.environ['EXTRA_CONF']) as f:
                extra = [line.strip() for line in f if line.strip()]
        argv = command(target, role, directory, int(ns_port), int(broker_port), extra)
        with open(os.path.join(directory, role + '.log'), 'ab') as log:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True)
        with open(os.path.join(directory, role + '.pid'), 'w') as f:
            f.write('%d\n' % p.pid)
    elif args[:1] == ['wait'] and len(args) == 3:
        ns, broker = ('127.0.0.1:' + a for a in args[1:])
        wait_until(lambda: registered(ns, broker), 120, 'broker %s registered at %s' % (broker, ns))
    elif args[:1] in (['stop'], ['kill']) and len(args) == 3:
        path = os.path.join(args[1], args[2] + '.pid')
        if os.path.exists(path):
            with open(path) as f:
                pid = int(f.read())
            if not gone(pid):
                os.kill(pid, signal.SIGTERM if args[0] == 'stop' else signal.SIGKILL)
            try:
                wait_until(lambda: gone(pid), 30, 'end of process %d' % pid)
            except Unusable:
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: gone(pid), 30, 'end of process %d' % pid)
            os.unlink(path)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))
    except Unusable as e:
        print(e, file=sys.stderr)
        sys.exit(1)
