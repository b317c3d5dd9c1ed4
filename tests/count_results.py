"""Counts a meson test run as "N passed, N failed[, N skipped]"; fails unless some passed and none failed.

usage: count_results.py build/meson-logs/testlog.json
"""
import collections
import json
import pathlib
import sys

PASSED = {'OK', 'EXPECTEDFAIL'}
SKIPPED = {'SKIP', 'IGNORED'}


def main(path):
    log = pathlib.Path(path)
    lines = log.read_text().splitlines() if log.exists() else []
    results = collections.Counter()
    for line in lines:
        test = json.loads(line)
        kind = 'passed' if test['result'] in PASSED else 'skipped' if test['result'] in SKIPPED else 'failed'
        results[kind] += 1
        if kind == 'failed':
            print(f'failed: {test["name"]} ({test["result"]})')
    skipped = f', {results["skipped"]} skipped' if results['skipped'] else ''
    print(f'{results["passed"]} passed, {results["failed"]} failed{skipped}')
    return 0 if results['passed'] and not results['failed'] else 1


sys.exit(main(sys.argv[1]))
