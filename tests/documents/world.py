"""Where commands of documents run: a directory that stands for the root of a machine, free loopback ports
that stand for RocketMQ's, programs of the build, and stand-ins for what a test may not do. Paths and ports of
commands are those of the documents; they are replaced on the way in, and again on the way out.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
source = here.parents[1]
sys.path.insert(0, str(source / 'tests' / 'interop'))
import remoting  # noqa: E402

# What is done by a stand-in, and where it is done for real.
STAND_INS = {
    'systemctl': 'tests/system/run, in a booted container',
    'journalctl': 'tests/system/run, in a booted container',
    'apt': 'tests/system/run, in a container without network',
    'chown': 'needs root; the units run as user rmqd in tests/system/run',
    'mount': 'needs root',
    'sleep': 'only time',
    'curl': 'not in every system; the same request is made',
    'promtool': 'not in every system; tests/observe uses it where it is there',
    'man': 'not in every system; the page must be built',
    'mqshutdown': "Apache RocketMQ's; tests/interop gives directories from one to the other",
    'mqbroker': "Apache RocketMQ's; tests/interop gives directories from one to the other",
}
MOVED = ('/etc/rmqd', '/etc/systemd', '/var/lib/rmqd', '/var/lib/rmq-namesrvd', '/opt/rocketmq',
         '/data/rocketmq', '/backup', '/mnt/new', '/usr/share/doc/rmqd', '/path/to', '/tmp/store',
         '/var/backups')
# Commands that would not end, or not soon, with what is done to them.
SHORTENED = ((r'(rmqctl (?:consume .* --follow|.* --watch))$',
              r'timeout --signal=INT 0.7 \1 || test $? = 124'),
             (r'--duration 5s', '--duration 300ms'),
             (r'(rmqctl broker drain \S+)', r'\1 --settle 700ms'))


def free_port():
    """A broker's: the one two below it is served as well. Below those that the kernel gives to clients, which
    may take any of theirs before a daemon does."""
    while True:
        port = random.randrange(12_000, 32_000)
        try:
            for number in (port, port - 2):
                with socket.socket() as s:
                    s.bind(('127.0.0.1', number))
            return port
        except OSError:
            continue


class World:
    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='rmqd-documents-'))
        self.ports = {9876: free_port(), 10911: free_port(), 5557: free_port(), 5558: free_port()}
        self.more = []  # daemons besides the units
        self.used = {}
        self.home, self.bin = self.root / 'home', self.root / 'bin'
        for directory in ('bin', 'run', 'home', 'backup', 'etc/rmqd', 'var/lib/rmqd', 'var/lib/rmq-namesrvd',
                          'path/to', 'opt/rocketmq/bin', 'opt/rocketmq/conf', 'data/rocketmq', 'mnt/new',
                          'usr/share/doc/rmqd'):
            (self.root / directory).mkdir(parents=True)
        shutil.copytree(source / 'packaging/examples', self.root / 'usr/share/doc/rmqd/examples')
        for name in STAND_INS:
            folder = 'run' if name.startswith('mq') else 'bin'
            (self.root / folder / name).symlink_to(here / 'stand_in.py')
            if name.startswith('mq'):
                self.script(f'opt/rocketmq/bin/{name}', f'exec {self.root}/run/{name} "$@"')
        self.state = self.root / 'run/world.json'
        self.state.write_text(json.dumps({
            'root': str(self.root), 'build': str(self.build), 'source': str(source),
            'metrics': {'rmqd': self.ports[5557], 'rmq-namesrvd': self.ports[5558]}}))
        self.programs()
        self.install()
        self.environment = {'PATH': f'{self.root}/bin:/usr/bin:/bin', 'HOME': str(self.root / 'home'),
                            'LC_ALL': 'C.UTF-8', 'RMQ_WORLD': str(self.state),
                            'NAMESRV_ADDR': f'127.0.0.1:{self.ports[9876]}'}

    def script(self, path, line):
        file = self.root / path
        file.write_text(f'#!/bin/bash\n{line}\n')
        file.chmod(0o755)

    def programs(self):
        """The daemons get the ports of this world; their files are read with its paths."""
        for name, program in (('rmqctl', 'src/ctl/rmqctl'), ('mqadmin', 'src/ctl/rmqctl')):
            (self.root / 'bin' / name).symlink_to(self.build / program)
        inside = '|'.join(re.escape(p) for p in MOVED)
        for name, ports in (('rmqd', {'listenPort': 10911, 'metricsPromExporterPort': 5557}),
                            ('rmq-namesrvd', {'listenPort': 9876, 'metricsPromExporterPort': 5558})):
            set_ports = ' '.join(f'-o {key}={self.ports[port]}' for key, port in ports.items())
            if name == 'rmqd':
                set_ports += f' -o namesrvListenPort={self.ports[9876]} -o brokerIP1=127.0.0.1' \
                             f' -o mappedFileSizeCommitLog={16 << 20}'
            self.script('bin/' + name, f'''
program={self.build}/src/daemon/{name} arguments=() check=
while (($#)); do
  if [[ $1 == -c || $1 == --config ]]; then
    copy=$(mktemp {self.root}/run/config.XXXXXX.toml)
    sed -E 's#"({inside})#"{self.root}\\1#g; s#[0-9.]+:9876#127.0.0.1:{self.ports[9876]}#g' "$2" \\
      >"$copy" || exit
    arguments+=("$1" "$copy")
    shift
  else
    arguments+=("$1")
  fi
  [[ $1 == --check-config ]] && check=1
  shift
done
[[ $check ]] && exec "$program" "${{arguments[@]}}"
exec "$program" "${{arguments[@]}}" -o bindAddress=127.0.0.1 {set_ports}''')

    def install(self):
        for name in ('rmqd.toml', 'namesrv.toml'):
            shutil.copy(source / 'packaging/conf' / name, self.root / 'etc/rmqd' / name)

    # ---- what the text of a command becomes, and what its output was ------------------------------------

    def inward(self, text):
        for pattern, replacement in SHORTENED:
            text = re.sub(pattern, replacement, text)
        text = re.sub(r'(?<![\w/.])(' + '|'.join(re.escape(p) for p in MOVED) + r')(?![\w])',
                      lambda m: str(self.root) + m[1], text)
        text = re.sub(r'\b(?:192\.0\.2\.\d+|127\.0\.0\.1):(9876|10911|5557|5558)\b',
                      lambda m: f'127.0.0.1:{self.ports[int(m[1])]}', text)
        return text

    def outward(self, text):
        return text.replace(str(self.root), '')

    def run(self, text, timeout=30):
        """Exit status and output of a command of a document. An "export" holds for those that follow."""
        if exported := re.fullmatch(r'export (\w+)=(\S+)', text):
            self.environment[exported[1]] = self.inward(exported[2])
            return 0, ''
        if text.endswith('&'):
            return self.in_background(text)
        for name in STAND_INS:
            there = (self.bin / name).is_symlink() or (self.bin.parent / "run" / name).is_symlink()
            if there and re.search(rf'(^|[\s|;/]){name}(\s|$)', text):
                self.used[name] = self.used.get(name, 0) + 1
        done = subprocess.run(['bash', '-c', 'set -o pipefail\n' + self.inward(text)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, env=self.environment,
                              cwd=self.home, stdin=subprocess.DEVNULL)
        return done.returncode, self.outward(done.stdout)

    def in_background(self, text):
        """Until the end of the world."""
        with open(self.root / 'run/background.log', 'a') as log:
            process = subprocess.Popen(['bash', '-c', 'exec ' + self.inward(text).rstrip('& ')],
                                       stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       env=self.environment, cwd=self.home, start_new_session=True)
        self.more.append(process)
        return 0, ''

    def must(self, text):
        status, out = self.run(text)
        if status != 0:
            raise RuntimeError(f'{text}\n{out}')
        return out

    # ---- daemons and clients ----------------------------------------------------------------------------

    def start(self, *units):
        self.must('systemctl start ' + ' '.join(units))

    def old_name_server(self):
        """In the place of RocketMQ's, at its port."""
        log = open(self.root / 'run/old-namesrv.log', 'w')
        process = subprocess.Popen(
            [self.build / 'src/daemon/rmq-namesrvd', '-o', f'listenPort={self.ports[9876]}',
             '-o', 'bindAddress=127.0.0.1', '-o', f'metricsPromExporterPort={free_port()}',
             '-o', f'kvConfigPath={self.root}/run/kv.json'],
            stdout=log, stderr=log, start_new_session=True)
        self.more.append(process)
        (self.root / 'run/old-namesrv.pid').write_text(str(process.pid))
        self.wait_for(lambda: self.run('rmqctl cluster')[0] == 0)

    def stopped_store(self, path):
        """A store of a broker that has stopped, with a few messages."""
        self.broker('stopped', self.root / path.lstrip('/'), 'stopped')
        self.must('rmqctl topic create Orders --queues 4 -b stopped')
        self.must('rmqctl send Orders hello --count 20 -b stopped')
        os.kill(self.more[-1].pid, signal.SIGTERM)
        self.more.pop().wait()
        (self.root / 'run/stopped.pid').unlink()

    def broker(self, name, store, unit=None):
        """One more broker, beside the unit's."""
        port, metrics = free_port(), free_port()
        log = open(self.root / 'run' / f'{unit or name}.log', 'w')
        process = subprocess.Popen(
            [self.build / 'src/daemon/rmqd', '-o', f'storePathRootDir={store}', '-o', f'listenPort={port}',
             '-o', f'metricsPromExporterPort={metrics}', '-o', 'brokerIP1=127.0.0.1',
             '-o', f'brokerName={name}',
             '-o', f'mappedFileSizeCommitLog={16 << 20}', '-o', 'bindAddress=127.0.0.1',
              '-o', f'namesrvAddr=127.0.0.1:{self.ports[9876]}'],
            stdout=log, stderr=log, start_new_session=True)
        self.more.append(process)
        if unit:
            (self.root / 'run' / f'{unit}.pid').write_text(str(process.pid))
        self.wait_for_a_broker(name)
        return f'127.0.0.1:{port}'

    def wait_for_a_broker(self, name=''):
        def is_there():
            _, out = self.run('rmqctl cluster')
            return 'rmqctl:' not in out and any(name in line for line in out.splitlines()[1:])
        self.wait_for(is_there)

    def wait_for(self, condition, seconds=15):
        end = time.time() + seconds
        while not condition():
            if time.time() > end:
                raise RuntimeError('it never came')
            time.sleep(0.05)

    def close(self):
        for pid in [int(f.read_text()) for f in (self.root / 'run').glob('*.pid')]:
            try:
                os.killpg(pid, signal.SIGKILL)
            except OSError:
                pass
        for process in self.more:
            if process.poll() is None:
                process.kill()
            process.wait()
        for link in list(self.root.rglob('*')):
            if link.is_symlink():
                link.unlink()
        shutil.rmtree(self.root)


class ThisMachine(World):
    """No world of its own, but the machine that this runs on, with systemd and packages: a container that may
    be spoilt. What it lacks, and time, is stood in for. Packages lie in the directory where it starts."""

    def __init__(self):
        self.root, self.home, self.more, self.used = pathlib.Path('/'), pathlib.Path.cwd(), [], {}
        self.bin = pathlib.Path(tempfile.mkdtemp(prefix='rmqd-documents-'))
        for name in ('sleep', 'curl', 'promtool'):
            if name == 'sleep' or not shutil.which(name):
                (self.bin / name).symlink_to(here / 'stand_in.py')
        (self.bin / 'world.json').write_text(json.dumps({'root': '/'}))
        self.environment = dict(os.environ, PATH=f'{self.bin}:{os.environ["PATH"]}', LC_ALL='C.UTF-8',
                                RMQ_WORLD=str(self.bin / 'world.json'), NAMESRV_ADDR='127.0.0.1:9876')
        pathlib.Path('/mnt/new').mkdir(exist_ok=True)
        for topic in ('Orders', 'Invoices', 'Payments', 'LoadTest'):
            self.run(f'rmqctl topic delete {topic} --yes')
        for group in ('billing', 'shipping', 'old-report'):
            self.run(f'rmqctl group delete {group} --yes')

    def inward(self, text):
        for pattern, replacement in (*SHORTENED, (r'^apt install', 'apt --yes install')):
            text = re.sub(pattern, replacement, text)
        return text

    def outward(self, text):
        return text

    def start(self, *units):
        """Anew, with the configuration as it is now."""
        self.must('systemctl restart ' + ' '.join(units))
        self.wait_for_a_broker()

    def stopped_store(self, path):
        self.must(f'systemctl stop rmqd && mkdir -p {path} && cp -a /var/lib/rmqd/store/. {path}/ && '
                  'systemctl start rmqd')

    def close(self):
        shutil.rmtree(self.bin)


def dead_letter(address, group, topic):
    """A message of the topic that the group has given back for good."""
    client = remoting.Client(address)
    remoting.send(client, topic, 0, b'bad', remoting.properties(UNIQ_KEY=f'D{time.time_ns()}', WAIT='true'))
    _, end = remoting.offsets(client, topic, 0)
    _, body = client.call(remoting.PULL, {
        'consumerGroup': group, 'topic': topic, 'queueId': 0, 'queueOffset': end - 1, 'maxMsgNums': 1,
        'sysFlag': 4, 'commitOffset': 0, 'suspendTimeoutMillis': 0, 'subscription': '*', 'subVersion': 0,
        'expressionType': 'TAG'})
    client.call(36, {'offset': int.from_bytes(body[28:36], 'big'), 'group': group, 'delayLevel': -1,
                     'originMsgId': 'x', 'originTopic': topic, 'unitMode': 'false', 'maxReconsumeTimes': 16})
    client.close()


def member(address, group, topic):
    """A consumer that is online, and answers what it is asked about itself. Keep the socket open."""
    client = remoting.Client(address)
    client.post(34, {}, json.dumps({
        'clientID': f'{group}-1', 'producerDataSet': [{'groupName': 'shop'}],
        'consumerDataSet': [{'groupName': group, 'consumeType': 'CONSUME_PASSIVELY',
                             'messageModel': 'CLUSTERING',
                             'consumeFromWhere': 'CONSUME_FROM_LAST_OFFSET',
                             'subscriptionDataSet': [{'topic': topic, 'subString': '*', 'tagsSet': [],
                                                      'codeSet': [], 'subVersion': 1}]}]}).encode())

    def answers():
        import struct
        body = json.dumps({'properties': {'PROP_CONSUME_TYPE': 'CONSUME_PASSIVELY'}, 'subscriptionSet': [],
                           'mqTable': {}, 'statusTable': {}}).encode()
        try:
            while True:
                header, _ = client.frame()
                if header['code'] != 307:
                    continue
                answer = json.dumps({'code': 0, 'flag': 1, 'language': 'JAVA', 'opaque': header['opaque'],
                                     'version': 493, 'serializeTypeCurrentRPC': 'JSON'}).encode()
                client.socket.sendall(
    struct.pack(
        '>II',
        4 +
        len(answer) +
        len(body),
        len(answer)) +
        answer +
         body)
        except (OSError, ValueError, ConnectionError):
            pass
    import threading
    threading.Thread(target=answers, daemon=True).start()
    return client
