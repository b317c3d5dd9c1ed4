#!/usr/bin/env python3
"""The checks of the documents find what they are for: each is given a mistake.

usage: selftest.py --build DIR ROOT
"""
import argparse
import importlib.machinery
import importlib.util
import pathlib
import shutil
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
sys.dont_write_bytecode = True
import documents  # noqa: E402
import names  # noqa: E402
import tables  # noqa: E402

loader = importlib.machinery.SourceFileLoader('run', str(here / 'run'))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
loader.exec_module(run)

failures = []


def expect(condition, *what):
    if not condition:
        failures.append(' '.join(str(w) for w in what))


# File, what is added to it, what must be found. Each is a mistake of another kind.
PLANTED = [
    ('README.md', '\n    rmqctl topic invent Orders\n', 'rmqctl has no verb "topic invent"'),
    ('README.md', '\n    rmqctl topic create Orders --red\n', '"rmqctl topic create" has no option --red'),
    ('README.md', '\nSee `rmqctl dlq shred`.\n', 'rmqctl has no verb "dlq shred"'),
    ('README.md', '\nSee [more](docs/more.md).\n', 'there is no file docs/more.md'),
    ('README.md', '\n    ./dev dance\n', './dev has no verb dance'),
    ('docs/operations.md', '\nSet `diskSpareBytes`.\n', 'diskSpareBytes is no key'),
    ('docs/operations.md', '\nLook at `rmqd_speed_total`.\n', 'there is no metric rmqd_speed_total'),
    ('docs/operations.md', '\nThe event `disk-is-lazy`.\n', 'there is no event disk-is-lazy'),
    ('docs/operations.md', '\n    systemctl restart rmqx\n', 'there is no unit rmqx'),
    ('docs/operations.md', '\n    rmqd --check-config -o damagedLogs=NO\n', 'rmqd has no key damagedLogs'),
    ('docs/operations.md', '\nSee rmqd-mysteries(7).\n', 'there is no manual page rmqd-mysteries(7)'),
    ('docs/migration.md', '\n    frobnicate now\n', 'a block of which it is not clear what it is'),
    ('docs/migration.md', '\n- item\n\n    rmqctl top\n', 'is in no block'),
    ('docs/migration.md', '\nIt has `brokerRoles`.\n', 'brokerRoles is no key'),
    ('man/rmqctl.1.in', '.nf\nrmqctl sing\n.fi\n', 'rmqctl has no verb "sing"'),
    ('man/mqadmin.1.in', '.nf\nmqadmin singTopic\n.fi\n', 'mqadmin has no command singTopic'),
    ('packaging/systemd/rmqd.catalog',
    '\nRun "rmqctl broker polish" and set maxPolish.\n',
     'rmqctl has no verb "broker polish"'),
    ('packaging/systemd/rmqd.catalog', '', 'maxPolish is no key'),
    ('packaging/examples/rmqd-rules.yml',
    '# rmqctl dlq list {{ $labels.group }}\n',
     '"dlq list" takes no argument'),
    ('src/ctl/verb_store.cc',
    '// x\nconst char* y = "run \\"rmqctl store mend\\"";\n',
     'rmqctl has no verb "store mend"'),
    ('src/base/mystery.cc', '// Nobody knows.\n', 'the code map lacks src/base/mystery.cc'),
]


def copied(root, to):
    for folder in ('docs', 'man', 'packaging', 'src'):
        shutil.copytree(root / folder, to / folder)
    for file in ('README.md', 'NEWS.md', 'dev'):
        shutil.copy(root / file, to / file)


def names_are_looked_at(root, build):
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory)
        copied(root, tree)
        for file, text, _ in PLANTED:
            path = tree / file
            path.write_text((path.read_text() if path.exists() else '') + text)
        facts = names.Facts(tree, build)
        found = [f'{path}: {what}' for check in names.CHECKS for path, _, what in check(facts)]
    for file, _, wanted in PLANTED:
        expect(any(f.startswith(file.replace('src/base/mystery.cc', '')) and wanted in f for f in found),
               f'"{wanted}" is not found in {file}')


def tables_are_looked_at(root):
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory)
        copied(root, tree)
        guide = tree / tables.GUIDE
        good = guide.read_text()

        def finds(text, wanted):
            guide.write_text(text)
            expect(any(wanted in v for v in tables.violations(tree)), f'tables.py does not find: {wanted}')
        finds(good.replace('- **store-disk-full**', '- **store-disk-empty**'), 'generated parts')
        finds(good.replace('| SYSTEM_BUSY (2) |', '| SYSTEM_BUSY (3) |'), 'SYSTEM_BUSY is 2')
        finds(good.replace('| SYSTEM_BUSY (2) |', '| SYSTEM_LAZY (2) |'), 'lacks SYSTEM_BUSY')
        finds(
    good.replace(
        '| SYSTEM_BUSY (2) |',
        '| SYSTEM_LAZY (2) |'),
         'SYSTEM_LAZY, which nothing answers')
        guide.write_text(good)
        expect(not list(tables.violations(tree)), 'tables.py finds something in what is good')
        code = tree / 'src/daemon/broker/clients.cc'
        code.write_text(code.read_text() + '// r.reply(ResponseCode::NO_BUYER_ID, "nobody buys this")\n')
        expect(any('lacks NO_BUYER_ID' in v for v in tables.violations(tree)), 'a new refusal is not found')


SAMPLE = '''# Title

    rmqctl cluster   # what there is
    rmqctl send Orders \\
      hello

1. Item

       rmqctl top

   ```console
   $ rmqctl topic list
   TOPIC  READ
   ...
   ```

2. Another

   - nested

   behind it

       rmqctl top --json

Text with `code that
goes on` in it.

```toml
logLevel = "info"
```

    mystery
'''


def blocks_are_found():
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / 'a.md').write_text(SAMPLE)
        document = documents.Document(directory, 'a.md')
    commands = [c.text for c in document.commands()]
    expect(commands == ['rmqctl cluster   # what there is', 'rmqctl send Orders   hello', 'rmqctl top',
                        'rmqctl topic list', 'rmqctl top --json'],
           commands)
    expect([c.output for c in document.commands()][3] == ['TOPIC  READ', '...'], 'output of a console')
    expect([b.kind for b in document.blocks] == ['commands', 'commands', 'console', 'commands', 'toml', ''],
           [b.kind for b in document.blocks])
    expect('code that goes on' in [word for _, word in document.words()], list(document.words()))


def output_is_compared():
    good = 'KEY   VALUE\na     17\nb     2026-11-30 20:41:34.491 (1s ago)\n'
    expect(run.same_structure(['KEY  VALUE',
    'a  3',
    'b  2026-01-01 00:00:00.000 (19h ago)'],
    good) is None,
     'numbers, times')
    expect(run.same_structure(['...', 'b  2026-01-01 00:00:00.000 (19h ago)'], good)
           is None, 'lines in front')
    expect(run.same_structure(['KEY  ...', '...'], good) is None, 'the rest of a line, and lines behind')
    for shown in (['KEY  VALUES', '...'], ['KEY  VALUE'],
                  ['KEY  VALUE', 'b  2026-01-01 00:00:00.000 (19h ago)'],
                  ['...', 'c  3'], ['KEY  VALUE', 'a  3', 'b  now']):
        expect(run.same_structure(shown, good) is not None, 'passes for', shown)


class World:
    """Says the same to everything."""

    def __init__(self, status, output=''):
        self.answer = status, output

    def run(self, text):
        return self.answer


def failures_are_told():
    def failed(text, world, scenario=None):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / 'a.md').write_text(text)
            document = documents.Document(directory, 'a.md')
        results = run.Results(False)
        results.bad = lambda what, why: results.failed.append(what)
        run.DocumentRun(document, scenario or run.scenarios.Scenario(None), world, results).run()
        return len(results.failed), results.passed
    expect(failed('\n    rmqctl cluster\n', World(0)) == (0, 1), 'a good command')
    expect(failed('\n    rmqctl cluster\n', World(1)) == (1, 0), 'a command that fails')
    expect(failed('\n    rmqctl doctor\n', World(1)) == (0, 1), 'a status that is allowed')
    expect(failed('\n    rmqctl doctor\n', World(69)) == (1, 0), 'one that is not')
    expect(failed('```console\n$ rmqctl cluster\nBROKER\n```\n', World(0, 'BROKER\n')) == (0, 1), 'output')
    expect(
    failed(
        '```console\n$ rmqctl cluster\nBROKER\n```\n',
        World(
            0,
            'BROKERS\n')) == (
                1,
                0),
                 'other output')
    expect(failed('```java\nint x;\n```\n', World(0)) == (1, 0), 'a block that nobody runs')
    expect(
    failed(
        '```toml\nx = 1\n```\n',
        World(
            78,
            'no such key')) == (
                1,
                0),
                 'a configuration that is wrong')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('root')
    a = parser.parse_args()
    root, build = pathlib.Path(a.root), pathlib.Path(a.build)
    blocks_are_found()
    output_is_compared()
    failures_are_told()
    tables_are_looked_at(root)
    names_are_looked_at(root, build)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
