"""A broker whose figures are taken, on an empty store, and what the programs here share."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / 'tests' / 'interop'))
import harness  # noqa: E402

# The reference's default is ASYNC_FLUSH; both have the same here.
OPTIONS = ['flushDiskType=SYNC_FLUSH']


class Broker:
    """rmqd or the reference, each with a name server of its own kind; close() removes everything."""

    def __init__(self, target):
        self.target, self.procs = target, harness.Processes()
        self.dir = tempfile.mkdtemp(prefix='rmqd-figures-')
        self.store = self.dir + '/store'
        self.ns_port, self.port = harness.free_ports()
        self.namesrv, self.address = '127.0.0.1:%d' % self.ns_port, '127.0.0.1:%d' % self.port
        names = self._process('namesrv')
        harness.wait_until(lambda: harness.registered(self.namesrv), 60, 'the name server', names)

    def _process(self, role):
        argv = harness.command(self.target, role, self.dir, self.ns_port, self.port, OPTIONS)
        return self.procs.start(argv, '%s/%s.log' % (self.dir, role))

    def start(self):
        """Seconds until it serves and is registered."""
        began = time.monotonic()
        self.process = self._process('broker')
        harness.wait_until(lambda: harness.registered(self.namesrv, self.address), 300,
                           'the broker (log: %s/broker.log)' % self.dir, self.process)
        return time.monotonic() - began

    def end(self, how):
        """how: 'stop' in order, or 'kill'. Seconds until it is gone."""
        began = time.monotonic()
        if how == 'kill':
            self.process.kill()
            self.process.wait()
        self.procs.stop(self.process, 120)
        return time.monotonic() - began

    def close(self):
        self.procs.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def rss(self):
        with open('/proc/%d/status' % self.process.pid) as f:
            for line in f:
                if line.startswith('VmRSS'):
                    return int(line.split()[1]) * 1024

    def ctl(self, *args):
        return subprocess.run([rmqctl(), '-n', self.namesrv, *args], check=True, capture_output=True,
                              text=True)

    def topics(self, *names):
        for name in names:
            self.ctl('topic', 'create', name, '--queues', '4')

    def load(self, topic, *args):
        """Sends of 100 bytes, 512 at a time; what rmqctl says of them."""
        argv = ['bench', 'send', topic, '--json', '--connections', '32', '--window', '16', '--size', '100']
        done = subprocess.run([rmqctl(), '-n', self.namesrv, *argv, *args], capture_output=True, text=True)
        result = json.loads(done.stdout)
        # The reference says that it is busy when it is; what it took is counted.
        if done.returncode and not result['messages']:
            raise harness.Unusable('bench send %s: %s' % (topic, done.stderr))
        return result

    def rate(self, topic, *args):
        return round(self.load(topic, *args)['messagesPerSecond'])

    def best_rate(self, topic, seconds):
        """Of two: other work of the machine makes a rate lower, never higher."""
        return max(self.rate(topic, '-d', '%ds' % seconds) for _ in range(2))


def rmqctl():
    path = os.environ.get('RMQCTL') or str(root / 'build/src/ctl/rmqctl')
    if not os.path.exists(path):
        raise harness.Unusable('%s is not there: build it, or set RMQCTL' % path)
    return path


class Figures:
    """Of one broker, told as they are found, with the seconds since it was begun; with goals for rmqd."""

    def __init__(self, target):
        self.target, self.all, self.missed = target, {}, []
        self.began = time.monotonic()

    def note(self, name, value, goal=None, reached=None):
        self.all[name] = value
        outcome = ''
        if goal and self.target == 'rmqd':
            outcome = '  (goal %s: %s)' % (goal, 'reached' if reached else 'MISSED')
            if not reached:
                self.missed.append(name)
        print('%-10s %4d s  %s: %s%s' % (self.target, time.monotonic() - self.began, name, value, outcome),
              flush=True)

    def compare(self, name, rate, idle):
        """A send rate beside that of the same broker when it had nothing else."""
        self.note('send rate ' + name, rate)
        self.note('of the idle one, ' + name, round(rate / idle, 2), '0.8', rate >= 0.8 * idle)


def run(measure, parser):
    """measure(broker, figures, options) for each kind that is wanted, then a line of JSON; ends the
    program."""
    parser.add_argument('--against', choices=['rmqd', 'reference', 'both'], default='both')
    o = parser.parse_args()
    out = {}
    missed = []
    for target in ['rmqd', 'reference'] if o.against == 'both' else [o.against]:
        figures, b = Figures(target), None
        try:
            b = Broker(target)
            b.start()
            measure(b, figures, o)
        except (harness.Unusable, OSError, subprocess.CalledProcessError) as e:
            print('%-10s FAILED: %s %s' % (target, e, getattr(e, 'stderr', '') or ''), flush=True)
            missed.append(target + ' did not come to its end')
        finally:
            if b is not None:
                b.close()
        out[target] = figures.all
        missed += figures.missed
    print(json.dumps(out))
    for m in missed:
        print('missed: ' + m)
    sys.exit(1 if missed else 0)
