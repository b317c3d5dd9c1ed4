#!/usr/bin/env python3
"""Apache's own end-to-end suite, java/e2e-v4 of the public repository apache/rocketmq-e2e, against a broker.

  e2e.py run --namesrv H:P --report FILE [--source URL|PATH] [--only REGEX]   runs it, writes what came out
  e2e.py compare REFERENCE_REPORT REPORT     what passed in the first must pass in the second

The suite is none of ours: it is cloned from --source (environment E2E_SOURCE, default GitHub) into
out/interop/e2e and changed there so that it builds with JDK 17. It runs by JUnit's own launcher, each test
once.
Its tests end with status 0 when no broker is there; so what counts is the report: how many ran.
Last line: N passed, N failed.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import CONNECT_TIMEOUT, OUT, Cluster, Processes, Unusable, run_tool    # noqa: E402

SOURCE = 'https://github.com/apache/rocketmq-e2e'
CLUSTER_SECONDS = 5400
# (file, what stands there, what has to): each must be found, else the suite is another one by now.
EDITS = [
    ('pom.xml', r' -XX:MaxPermSize=\w+', ''),
    ('pom.xml', r'(<artifactId>lombok</artifactId>\s*<version>)[^<]+', r'\g<1>1.18.34'),
    ('e2e-v4/pom.xml', r'\s*<rerunFailingTestsCount>\d+</rerunFailingTestsCount>', ''),
    ('e2e-v4/pom.xml', r'(<artifactId>)junit-platform-launcher(</artifactId>\s*<version>)([^<]+)',
     r'\g<1>junit-platform-console\g<2>\g<3>'),
]


def edited(java):
    """Changes the build files of a checkout's java/ folder."""
    for name, pattern, text in EDITS:
        path = os.path.join(java, name)
        with open(path) as f:
            before = f.read()
        after, n = re.subn(pattern, text, before)
        if n == 0:
            raise Unusable('%s has nothing like %s: the suite is another one by now' % (path, pattern))
        with open(path, 'w') as f:
            f.write(after)


def suite(source=None):
    """The suite's folder, cloned, changed and built once."""
    source = source or os.environ.get('E2E_SOURCE') or SOURCE
    base = os.path.join(OUT, 'e2e')
    stamp, module = os.path.join(base, 'stamp'), os.path.join(base, 'suite', 'java', 'e2e-v4')
    want = repr((source, EDITS))
    if os.path.exists(stamp) and open(stamp).read() == want:
        return module
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    run_tool(['git', 'clone', '-q', source, os.path.join(base, 'suite')])
    edited(os.path.join(base, 'suite', 'java'))
    run_tool(['mvn', '-q', '-B', '-f', os.path.join(module, 'pom.xml'), 'test-compile',
              'dependency:copy-dependencies', '-DoutputDirectory=' + os.path.join(base, 'lib')])
    with open(stamp, 'w') as f:
        f.write(want)
    return module


def results(directory):
    """{test: [what came out, why, seconds]} of the launcher's reports."""
    found = {}
    for name in sorted(os.listdir(directory)):
        if not (name.startswith('TEST-') and name.endswith('.xml')):
            continue
        for case in xml.parse(os.path.join(directory, name)).getroot().iter('testcase'):
            out, why = 'passed', ''
            for tag in ('failure', 'error', 'skipped'):
                e = case.find(tag)
                if e is not None:
                    out = 'skipped' if tag == 'skipped' else 'failed'
                    why = ' '.join((e.get('message') or e.text or '').split())[:300]
            test = case.get('classname').split('.')[-1] + '.' + case.get('name')
            found[test] = [out, why, float(case.get('time', '0').replace(',', ''))]
    return found


def run(procs, namesrv, directory, source=None, only='.*'):
    """Runs the suite against the broker of that name server; returns results()."""
    module = suite(source)
    reports, home = os.path.join(directory, 'reports'), os.path.join(directory, 'home')
    shutil.rmtree(reports, ignore_errors=True)
    os.makedirs(reports)
    os.makedirs(home, exist_ok=True)
    log = os.path.join(directory, 'suite.log')
    lib = os.path.join(OUT, 'e2e', 'lib', '*')
    p = procs.start(['java', '-Xmx1g', '-Duser.home=' + home, '-Drocketmq.client.logRoot=' + home + '/logs',
                     '-DnamesrvAddr=' + namesrv, CONNECT_TIMEOUT,
                     '-cp', module + '/target/test-classes:' + module + '/target/classes:' + lib,
                     'org.junit.platform.console.ConsoleLauncher', '--scan-classpath',
                     module + '/target/test-classes', '--include-classname', only, '--reports-dir', reports,
                     '--disable-banner', '--details', 'none'], log, cwd=module)
    try:
        p.wait(CLUSTER_SECONDS)
    except subprocess.TimeoutExpired:
        procs.stop(p)
        raise Unusable('the suite did not end within %d s, log %s' % (CLUSTER_SECONDS, log))
    found = results(reports)
    if not any(r[0] != 'skipped' for r in found.values()):
        raise Unusable('no test ran (exit code %s), log %s' % (p.returncode, log))
    return found


def count(found):
    n = {out: sum(1 for r in found.values() if r[0] == out) for out in ('passed', 'failed', 'skipped')}
    return '%d tests: %d passed, %d failed, %d skipped by themselves' % (
        len(found), n['passed'], n['failed'], n['skipped'])


def compare(reference, ours):
    """Yields (test, reason or None) for each test that passes against the reference."""
    for test, (out, _, _) in sorted(reference.items()):
        if out != 'passed':
            continue
        if test not in ours:
            yield test, 'it did not run'
        else:
            yield test, None if ours[test][0] == 'passed' else '%s: %s' % tuple(ours[test][:2])


def e2e(place):
    """The suite of `run`: against the reference first, then against rmqd."""
    found = {}
    for target in ('reference', 'rmqd'):
        directory = os.path.join(place.directory, target)
        cluster = Cluster(place.procs, directory, broker=target)
        found[target] = run(place.procs, cluster.namesrv, directory)
        cluster.stop()
        place.say('# %s: %s' % (target, count(found[target])))
    for test, reason in compare(found['reference'], found['rmqd']):
        place.say('ok ' + test if reason is None else 'FAILED %s: %s' % (test, reason))
        yield test, reason


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = p.add_subparsers(dest='verb', required=True)
    r = verbs.add_parser('run')
    r.add_argument('--namesrv', required=True)
    r.add_argument('--report', required=True)
    r.add_argument('--source', help='URL or path of a git repository with the suite')
    r.add_argument('--only', default='.*', help='regular expression for names of test classes')
    c = verbs.add_parser('compare')
    c.add_argument('reference')
    c.add_argument('ours')
    o = p.parse_args()
    if o.verb == 'run':
        procs = Processes()
        try:
            found = run(procs, o.namesrv, o.report + '.files', o.source, o.only)
        finally:
            procs.close()
        with open(o.report, 'w') as f:
            json.dump(found, f, indent=1, sort_keys=True)
        for test, (out, why, seconds) in sorted(found.items()):
            print('%-7s %7.1f s  %s%s' % (out, seconds, test, ': ' + why if out == 'failed' else ''))
        print('# ' + count(found))
        judged = [(t, None if r[0] == 'passed' else r[1]) for t, r in found.items() if r[0] != 'skipped']
    else:
        judged = list(compare(json.load(open(o.reference)), json.load(open(o.ours))))
        for test, reason in judged:
            if reason is not None:
                print('FAILED %s: %s' % (test, reason))
    failed = sum(1 for _, reason in judged if reason is not None)
    print('%d passed, %d failed' % (len(judged) - failed, failed))
    return 1 if failed or not judged else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except Unusable as e:
        print('%s\n0 passed, 1 failed' % e)
        sys.exit(1)
