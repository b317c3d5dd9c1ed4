#!/usr/bin/env python3
"""Feeds the soak's checker a trace that is right, and traces with one thing wrong: each must be found."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checker import KINDS, Checker  # noqa: E402

S = 1_000_000
# A little of everything, as it should be; with redelivery, failed sends and a recall.
RIGHT = [
    ('S', 'plain', 'p1', 0, 0, ''),
    ('A', 'plain', 'p1', 1, '0:0'),
    ('R', 'plain', 'p1', 2, '0:0', 0, 'c'),
    ('R', 'plain', 'p1', 3, '0:0', 0, 'c'),
    ('S', 'plain', 'p2', 0, 0, ''),
    ('F', 'plain', 'p2', 1, 'broken'),
    ('R', 'plain', 'p2', 9, '0:1', 0, 'c'),
    ('S', 'plain', 'p3', 0, 0, ''),
    ('F', 'plain', 'p3', 1, 'broken'),
    ('S', 'go', 'g1', 0, 0, ''),
    ('A', 'go', 'g1', 1, '0:0'),
    ('R', 'go', 'g1', 2, '0:0', 0, 'c'),
    ('S', 'delay', 'd1', 0, 5 * S, ''),
    ('A', 'delay', 'd1', 1, '0:0'),
    ('R', 'delay', 'd1', 5 * S, '0:0', 0, 'c'),
    ('S', 'godelay', 'e1', 0, S, ''),
    ('A', 'godelay', 'e1', 1, '0:0'),
    ('R', 'godelay', 'e1', S, '0:0', 0, 'c'),
    ('S', 'timer', 't1', 0, 7 * S, ''),
    ('A', 'timer', 't1', 1, '0:0'),
    ('R', 'timer', 't1', 7 * S + 9, '1:0', 0, 'c'),
    ('S', 'timer', 't2', 0, 7 * S, ''),
    ('A', 'timer', 't2', 1, '0:1'),
    ('V', 'timer', 't2', 2),
    ('X', 'timer', 't2', 3),
    ('S', 'timer', 't3', 0, 7 * S, ''),
    ('A', 'timer', 't3', 1, '0:1'),
    ('V', 'timer', 't3', 2),
    ('S', 'tran', 'x1', 0, 0, 'commit'),
    ('A', 'tran', 'x1', 1, 'half'),
    ('C', 'tran', 'x1', 2),
    ('R', 'tran', 'x1', 3, '0:0', 0, 'c'),
    ('R', 'tran', 'x1', 4, '0:0', 0, 'c'),
    ('S', 'tran', 'x2', 0, 0, 'rollback'),
    ('A', 'tran', 'x2', 1, 'half'),
    ('S', 'retry', 'r1', 0, 0, 'fail1'),
    ('A', 'retry', 'r1', 1, '0:0'),
    ('R', 'retry', 'r1', 2, '0:0', 0, 'c'),
    ('R', 'retry', 'r1', S + 2, '0:1', 1, 'c'),
    ('S', 'retry', 'r2', 0, 0, 'dead'),
    ('A', 'retry', 'r2', 1, '0:0'),
    ('R', 'retry', 'r2', 2, '0:0', 0, 'c'),
    ('R', 'dlq', 'r2', 9 * S, '0:0', 4, 'c'),
    ('S', 'pop', 'o1', 0, 0, 'fail1'),
    ('A', 'pop', 'o1', 1, '0:0'),
    ('R', 'pop', 'o1', 2, '0:0', 0, 'c'),
    ('R', 'pop', 'o1', 10 * S, '0:7', 1, 'c'),
    ('S', 'order', '1/0', 0, 0, ''),
    ('A', 'order', '1/0', 1, '0:0'),
    ('S', 'order', '1/1', 2, 0, ''),
    ('A', 'order', '1/1', 3, '0:1'),
    ('S', 'order', '1/2', 4, 0, ''),
    ('A', 'order', '1/2', 5, '0:2'),
    ('R', 'order', '1/0', 10, '0:0', 0, 'a'),
    ('R', 'order', '1/1', 11, '0:1', 0, 'a'),
    ('R', 'order', '1/0', 20, '0:0', 0, 'b'),
    ('R', 'order', '1/1', 21, '0:1', 0, 'b'),
    ('R', 'order', '1/2', 22, '0:2', 0, 'b'),
    ('S', 'dedup', 'k1', 0, 0, ''),
    ('A', 'dedup', 'k1', 1, '0:0'),
    ('A', 'dedup', 'k1', 2, '0:0'),
    ('R', 'dedup', 'k1', 3, '0:0', 0, 'c'),
]


def lines(trace):
    return ['@\t' + '\t'.join(str(x) for x in e) + '\n' for e in trace]


def without(*what):
    out = [e for e in RIGHT if e[:len(what)] != what]
    assert len(out) < len(RIGHT), what
    return out


# Name: (the trace, kind and words of the one violation there is to be)
WRONG = {
    'lost': (without('R', 'plain', 'p1'), 'plain', 'lost'),
    'lost in Go': (without('R', 'go', 'g1'), 'go', 'lost'),
    'early level': (without('R', 'delay') + [('R', 'delay', 'd1', 5 * S - 1, '0:0', 0, 'c')],
                    'delay', 'early'),
    'early timer': (without('R', 'timer') + [('R', 'timer', 't1', S, '0:0', 0, 'c')], 'timer', 'early'),
    'lost timer': (without('R', 'timer'), 'timer', 'lost'),
    'timer twice': (RIGHT + [('R', 'timer', 't1', 8 * S, '1:9', 0, 'c')], 'timer', '2 times'),
    'level twice': (RIGHT + [('R', 'delay', 'd1', 8 * S, '1:9', 0, 'c')], 'delay', '2 times'),
    'recalled came': (RIGHT + [('R', 'timer', 't2', 8 * S, '1:9', 0, 'c')], 'timer', 'recalled'),
    'committed twice': (RIGHT + [('R', 'tran', 'x1', 8 * S, '3:9', 0, 'c')], 'tran', '2 times'),
    'rolled back came': (RIGHT + [('R', 'tran', 'x2', 8 * S, '3:9', 0, 'c')], 'tran', 'rolled back'),
    'commit lost': (without('R', 'tran'), 'tran', 'lost'),
    'retry lost': ([e for e in RIGHT if e[:3] != ('R', 'retry', 'r1') or e[5] == 0], 'retry', 'lost'),
    'retry early': ([e for e in RIGHT if e[:3] != ('R', 'retry', 'r1') or e[5] == 0] +
                    [('R', 'retry', 'r1', 9, '0:1', 1, 'c')], 'retry', 'after the one before'),
    'popped lost': (without('R', 'pop', 'o1', 10 * S), 'pop', 'lost'),
    'popped early': (without('R', 'pop', 'o1', 10 * S) + [('R', 'pop', 'o1', 9, '0:1', 1, 'c')], 'pop',
                     'after the one before'),
    'dead letter lost': (without('R', 'dlq'), 'retry', 'lost'),
    'dead too early': (RIGHT + [('R', 'dlq', 'r1', 9 * S, '0:1', 2, 'c')], 'retry', 'dead letter'),
    'out of order': ([e if e[2:4] != ('1/1', 11) else ('R', 'order', '1/1', 30, '0:1', 0, 'a')
                      for e in without('R', 'order', '1/0', 20) if e[2:4] != ('1/1', 21)],
                     'order', 'came after'),
    'two owners at once': (RIGHT + [('R', 'order', '1/0', 30, '0:0', 0, 'a'),
                                    ('R', 'order', '1/2', 31, '0:2', 0, 'b')], 'order', 'came after'),
    'order lost': (without('R', 'order', '1/2'), 'order', 'lost'),
    'stored twice': (RIGHT + [('R', 'dedup', 'k1', 9, '0:7', 0, 'c')], 'dedup', '2 times'),
    'two places': (RIGHT + [('A', 'dedup', 'k1', 9, '0:7')], 'dedup', 'acknowledged at 2'),
    'from nowhere': (RIGHT + [('R', 'plain', 'ghost', 9, '0:7', 0, 'c')], 'plain', 'nowhere'),
}


def check(trace):
    c = Checker()
    for line in lines(trace):
        c.feed(line)
    c.feed('something else on the same output\n')
    return c


def main():
    failed = 0
    c = check(RIGHT)
    text, wrong = c.report()
    # Programs are read side by side: what came may be read before the send.
    mixed = check(sorted(RIGHT, key=lambda e: e[0] != 'R')).violations()
    if wrong or c.owed()[0] or mixed:
        failed += 1
        print('FAILED: what is right was judged wrong:\n' + text)
    counted = ('sent', 'acknowledged', 'failed', 'came', 'redelivered')
    if [c.counts('plain')[x] for x in counted] != [3, 1, 2, 2, 1]:
        failed += 1
        print('FAILED: wrong counts: %s' % c.counts('plain'))
    for kind in KINDS:
        if not c.counts(kind)['came']:
            failed += 1
            print('FAILED: the trace has nothing of ' + kind)
    for name, (trace, kind, words) in WRONG.items():
        found = check(trace).violations()
        if not any(v[0] == kind and words in v[2] for v in found):
            failed += 1
            print('FAILED: %s: not found, but %s' % (name, found))
        if not check(trace).report()[1]:
            failed += 1
            print('FAILED: %s: the report says that nothing is wrong' % name)
    print('%d passed, %d failed' % (1 + len(WRONG) - min(failed, len(WRONG)), failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
