#!/usr/bin/env python3
"""Takes the place of programs that a test may not run, or that are not there: called by the name of one, in
the world of tests/documents/run (world.py), whose state is in $RMQ_WORLD. Each checks its arguments, and does
what the next commands of the document depend on.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

world = json.loads(pathlib.Path(os.environ['RMQ_WORLD']).read_text())
root = pathlib.Path(world['root'])
UNITS = {'rmqd': 'rmqd', 'rmq-namesrvd': 'rmq-namesrvd'}


def fail(text):
    print(f'{name}: {text}', file=sys.stderr)
    sys.exit(1)


def pid_file(unit):
    return root / 'run' / f'{unit}.pid'


def running(unit):
    try:
        pid = int(pid_file(unit).read_text())
        os.kill(pid, 0)
        return pid
    except (OSError, ValueError):
        return None


def ready(unit):
    try:
        url = f'http://127.0.0.1:{world["metrics"][unit]}/health/ready'
        with urllib.request.urlopen(url, timeout=2) as r:
            return r.status == 200
    except (OSError, urllib.error.URLError):
        return False


def start(unit):
    if running(unit):
        return
    log = open(root / 'run' / f'{unit}.log', 'a')
    config = root / 'etc/rmqd' / ('rmqd.toml' if unit == 'rmqd' else 'namesrv.toml')
    process = subprocess.Popen([root / 'bin' / UNITS[unit], '-c', config], stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    pid_file(unit).write_text(str(process.pid))
    end = time.time() + 15
    while not ready(unit):
        if process.poll() is not None or time.time() > end:
            fail(f'{unit} did not start:\n' + (root / 'run' / f'{unit}.log').read_text()[-2000:])
        time.sleep(0.02)


def stop(unit):
    pid = running(unit)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    end = time.time() + 15
    while alive(pid):
        if time.time() > end:
            fail(f'{unit} does not stop')
        time.sleep(0.02)
    pid_file(unit).unlink()


def alive(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def systemctl(verb, *rest):
    units = [u for u in rest if not u.startswith('-')]
    for unit in units:
        if unit not in UNITS:
            fail(f'Unit {unit}.service could not be found.')
    now = '--now' in rest
    for unit in units:
        if verb in ('stop', 'restart') or verb == 'disable' and now:
            stop(unit)
        if verb in ('start', 'restart') or verb == 'enable' and now:
            start(unit)
        if verb == 'reload':
            os.kill(running(unit) or fail(f'{unit} does not run'), signal.SIGHUP)
        if verb == 'status' and not running(unit):
            sys.exit(3)
    if verb not in ('start', 'stop', 'restart', 'enable', 'disable', 'reload', 'status', 'daemon-reload'):
        fail(f'what does {verb} do?')


def journalctl(*arguments):
    if '-k' in arguments:
        return
    unit = arguments[arguments.index('-u') + 1]
    if unit not in UNITS:
        fail(f'no unit {unit}')
    text = (root / 'run' / f'{unit}.log').read_text()
    if not text.strip():
        fail('no entries')
    print(text, end='')


def apt(verb, *packages):
    control = pathlib.Path(world['source']) / 'packaging/deb/debian/control'
    known = {line.split()[1] for line in control.read_text().splitlines() if line.startswith('Package: ')}
    if verb != 'install' or not packages:
        fail(f'what does {verb} do?')
    for package in packages:
        if pathlib.Path(package).name.split('_')[0].removesuffix('*.deb') not in known | {''}:
            fail(f'there is no package {package}')


def chown(option, owner, *paths):
    owner = owner if not option.startswith('-') else owner
    for path in [p for p in (option, *paths) if p.startswith('/')]:
        if not pathlib.Path(path).exists():
            fail(f'{path}: there is none')


def mount(option, source, target):
    """A directory in the place of another one, which must be there, and is empty here."""
    if option != '--bind' or not pathlib.Path(source).is_dir():
        fail(f'cannot mount {source}')
    if not pathlib.Path(target).is_dir():
        fail(f'{target}: mount point does not exist.')
    pathlib.Path(target).rmdir()
    pathlib.Path(target).symlink_to(source)


def sleep(seconds):
    float(seconds)


def curl(*arguments):
    url = arguments[-1]
    with urllib.request.urlopen(url, timeout=5) as answer:
        print(answer.read().decode(), end='')


def promtool(what, kind, path):
    if what != 'check' or kind not in ('rules', 'config', 'metrics') or not pathlib.Path(path).is_file():
        fail(f'what is there to check in {path}?')


def man(page):
    if not list((pathlib.Path(world['build']) / 'man').glob(f'{page}.[0-9]')):
        fail(f'No manual entry for {page}')


def mqshutdown(what):
    """The scripts of Apache RocketMQ; an rmqd, or rmq-namesrvd, is in the place of its broker."""
    unit = {'broker': 'old-broker', 'namesrv': 'old-namesrv'}[what]
    stop(unit)


def mqbroker(option, path):
    if option != '-c' or not pathlib.Path(path).is_file():
        fail(f'no configuration {path}')


name = pathlib.Path(sys.argv[0]).name
globals()[name.replace('-', '_')](*sys.argv[1:])
