#!/usr/bin/env python3
"""What documents name is there: verbs and options of the programs, keys of the configuration, metrics,
events, manual pages, units, files. And the other way round: manual pages have every verb, key and metric, and
the code map every file of src.

usage: names.py --build DIR ROOT    DIR has the programs and the manual pages; prints one line a violation

Looked at are README.md, NEWS.md, docs/, man/, the journal catalog, the packaged configuration and examples,
and what the programs themselves advise in their messages.
"""
import argparse
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

import documents

# Where configuration keys of RocketMQ are named that rmqd does not have:
# about its broker, or told to be left out.
OF_ROCKETMQ = ('docs/migration.md', 'docs/formats.md', 'docs/mqadmin.md', 'NEWS.md', 'man/rmqd.toml.5.in',
               'man/rmqd-metrics.7.in', 'docs/architecture.md')
# Documents about the inside: their words in code type are fields and functions, besides keys.
ABOUT_THE_INSIDE = ('docs/formats.md', 'docs/architecture.md', 'docs/mqadmin.md', 'NEWS.md')
# Options of other programs that stand in code type.
FOREIGN_OPTIONS = {'--sparse', '--sparse=always', '--now', '--since', '--bind', '--only'}
# rmqd-metrics(7) says of these that they are not there.
METRICS_NOT_THERE = {
    'rocketmq_pop_buffer_scan_time_consume_milliseconds', 'rocketmq_pop_revive_in_message_total',
    'rocketmq_pop_revive_out_message_total', 'rocketmq_timer_message_snapshot', 'rocketmq_rocksdb_'}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Facts:
    """What there is."""

    def __init__(self, root, build):
        self.root, self.build = root, build
        self.program = {'rmqctl': build / 'src/ctl/rmqctl', 'rmqd': build / 'src/daemon/rmqd',
                        'rmq-namesrvd': build / 'src/daemon/rmq-namesrvd'}
        self.verbs = self.verbs_and_options()
        option = r'(?<![\w-])--?[a-z][\w-]*'
        self.daemon_options = {p: set(re.findall(option, output(self.program[p], '--help')))
                               for p in ('rmqd', 'rmq-namesrvd')}
        self.keys = {p: set(re.findall(r'^  (\w+) = ', output(self.program[p], '--help'), re.MULTILINE))
                     for p in ('rmqd', 'rmq-namesrvd')}
        listing = (root / 'src/daemon/rocketmq_keys.cc').read_text().partition('keys =')[2].partition(';')[0]
        self.rocketmq_keys = set(re.findall(r'\w+', re.sub(r'"\s*"', '', listing)))
        admin = (root / 'src/daemon/broker/broker_admin.cc').read_text()
        self.status_keys = set(re.findall(r'"(\w+)"', admin)) | {'unconsumedDeleted_'}
        metrics = output(self.program['rmqd'], '--dump-metrics-man')
        self.metrics = dict(re.findall(r'^\.BR (\w+) " \((\w+)\)"', metrics, re.MULTILINE))
        ids = (root / 'src/base/message_id.h').read_text()
        self.events = set(re.findall(r'X\(\s*\w+\s*,\s*"[0-9a-f]+"\s*,\s*"([^"]+)"', ids))
        self.pages = set(
    re.findall(
        r"(?:\[|custom_target\()'([\w-]+(?:\.toml)?\.\d)'",
         (root / 'man/meson.build').read_text()))
        self.units = {p.name.removesuffix('.service.in')
                                          for p in (root / 'packaging/systemd').glob('*.service.in')}
        dev = (root / 'dev').read_text().partition('case $verb in')[2]
        self.dev_verbs = set(re.findall(r'^    ([a-z-]+)\)', dev, re.MULTILINE)) | {'help'}
        git = 'git', '-c', 'safe.directory=*', '-C', str(root)
        self.files = set(output(*git, 'ls-files', '-co', '--exclude-standard')
                         .splitlines()) if (root / '.git').exists() and shutil.which('git') else \
            {str(p.relative_to(root)) for p in root.rglob('*') if p.is_file()}
        mqadmin = output(self.program['rmqctl'], '--dump-verbs-man')
        self.mqadmin = set(re.findall(r'mqadmin calls it \\fB(\w+)', mqadmin))
        self.mqadmin |= set(
    re.findall(
        r'^\| `(\w+)` \|',
        (root / 'docs/mqadmin.md').read_text(),
         re.MULTILINE))

    def verbs_and_options(self):
        out, verb, everywhere = {}, None, set()
        for line in output(self.program['rmqctl'], '--dump-verbs-man').replace('\\-', '-').splitlines():
            if line.startswith('.SS'):
                words = line[4:].strip('"').split()
                verb = ' '.join(w for w in words if re.fullmatch('[a-z-]+', w))
                options = everywhere if line == '.SS "Options of every verb"' else out.setdefault(verb, set())
            elif found := re.match(r'\\fB(-[^\\]*)\\fR( ?)', line):
                options.update((name, bool(found[2])) for name in found[1].split(', '))
        return {verb: dict(own | everywhere) for verb, own in out.items()}

    def verb_of(self, words):
        """The verb that the words begin with, or None."""
        for count in (3, 2, 1):
            if ' '.join(words[:count]) in self.verbs:
                return ' '.join(words[:count])
        return None


def wrong_rmqctl(facts, words):
    plain = [w for w in words if not w.startswith('-')]
    while words and words[0].startswith('-'):  # options in front of the verb
        takes = words[0] in ('-n', '--namesrv', '--timeout')
        words = words[2 if takes else 1:]
        plain = [w for w in words if not w.startswith('-')]
    if not words or words[0] == 'help':
        return
    if words[0] in ('--json', '--help'):
        return
    families = {v.split()[0] for v in facts.verbs}
    verb = facts.verb_of(plain)
    if verb is None and plain and plain[0] in facts.mqadmin:
        return
    if verb is None:
        if not (plain and plain[0] in families and len(plain) == 1) and plain:
            yield f'rmqctl has no verb "{" ".join(plain[:2])}"'
        return
    arguments, value = 0, False
    for word in words:
        option = word.partition('=')[0]
        if value:
            value = False
        elif re.fullmatch(r'--?[a-z][a-z-]*', option):
            if option not in facts.verbs[verb]:
                yield f'"rmqctl {verb}" has no option {option}'
            value = '=' not in word and facts.verbs[verb].get(option, False)
        else:
            arguments += 1
    if arguments > len(verb.split()) and takes_nothing(facts, verb):
        yield f'rmqctl has no verb "{verb} {plain[len(verb.split())]}", and "{verb}" takes no argument'


def takes_nothing(facts, verb):
    """Whether the verb has no arguments, so that a word behind it must be another verb's."""
    text = output(facts.program['rmqctl'], 'help', verb)
    return text.splitlines()[0].strip() == f'rmqctl {verb}'


def wrong_daemon(facts, program, words):
    for i, word in enumerate(words):
        option = word.partition('=')[0]
        if option.startswith('-') and option not in facts.daemon_options[program]:
            yield f'{program} has no option {option}'
        if i and words[i - 1] in ('-o',
                                  '--set') and word.partition('=')[0] not in facts.keys[program] | {'KEY'}:
            yield f'{program} has no key {word.partition("=")[0]}'


def wrong_command(facts, text):
    """What a command line names and is not there."""
    text = re.sub(r'^export \w+=\S+$', '', text)
    for part in re.split(r'[|;&]+(?=\s|$)(?![^\']*\')', text):
        words = re.findall(r"'[^']*'|\"[^\"]*\"|[^\s'\"]+(?:'[^']*'|\"[^\"]*\")?", part.partition(' #')[0])
        while words and re.fullmatch(r'[A-Z_]+=.*', words[0]):
            words = words[1:]
        if not words:
            continue
        name = words[0]
        if name == 'rmqctl':
            yield from wrong_rmqctl(facts, words[1:])
        elif name in facts.daemon_options:
            yield from wrong_daemon(facts, name, words[1:])
        elif name == 'mqadmin' and len(words) > 1 and words[1] not in facts.mqadmin | {'help', 'COMMAND'}:
            yield f'mqadmin has no command {words[1]}'
        elif name == 'systemctl':
            for place, unit in enumerate(words[2:]):
                if unit.startswith('-') or unit.removesuffix('.service') in facts.units:
                    continue
                if place and not unit.startswith('rmq'):
                    break  # a sentence goes on
                yield f'there is no unit {unit}'
        elif name == 'journalctl':
            for option, unit in zip(words, words[1:]):
                if option in ('-u', '--unit') and unit not in facts.units:
                    yield f'there is no unit {unit}'
            for event in re.findall(r'EVENT=([\w-]+)', part):
                if event not in facts.events:
                    yield f'there is no event {event}'
        elif name == 'man' and words[1:] and words[-1] not in {p.rpartition('.')[0] for p in facts.pages}:
            yield f'there is no manual page {words[-1]}'
        elif name == './dev' and len(words) > 1 and words[1] not in facts.dev_verbs:
            yield f'./dev has no verb {words[1]}'


def wrong_key(facts, path, word):
    name = re.match(r'\w+', word)[0]
    known = facts.keys['rmqd'] | facts.keys['rmq-namesrvd'] | facts.status_keys | facts.mqadmin
    if path in OF_ROCKETMQ:
        known |= facts.rocketmq_keys
    if name not in known:
        yield f'{name} is no key of the configuration'


def alternatives(word):
    """"rmqctl group reset|skip" is two commands."""
    choice = re.search(r'\S*\w\|\w\S*', word)
    return [word.replace(choice[0], one, 1) for one in choice[0].split('|')] if choice else [word]


def wrong_word(facts, path, word):
    """What one word or phrase in code type names and is not there."""
    first = word.split()[0] if word else ''
    if first in ('rmqctl', 'rmqd', 'rmq-namesrvd', 'systemctl',
                 'journalctl', 'man', './dev', 'mqadmin') and ' ' in word:
        for one in alternatives(word):
            yield from wrong_command(facts, one)
    elif re.fullmatch(r'[a-z]+[A-Z]\w*( ?= ?\S+)?', word) and path not in ABOUT_THE_INSIDE:
        yield from wrong_key(facts, path, word)
    elif re.fullmatch(r'[a-z]+(-[a-z]+)+', word) and path == 'docs/operations.md' and \
            word not in facts.events | set(facts.program):
        yield f'there is no event {word}'
    elif re.match(r'--[a-z]', word):
        every = set().union(*facts.verbs.values(), *facts.daemon_options.values(), FOREIGN_OPTIONS)
        option = word.split()[0]
        if option not in every and option.partition('=')[0] not in every:
            yield f'no program has the option {option}'
    elif re.search(r'\w\.(cc|h|md|py)$', word) and ' ' not in word and '*' not in word and 'NAME' not in word:
        if not any(f == word or f.endswith('/' + word) for f in facts.files):
            yield f'there is no file {word}'


def wrong_references(facts, path, text):
    for page, section in re.findall(r'\b((?:rmq|namesrv)[\w.-]*|mqadmin)\((\d)\)', text.replace('\\-', '-')):
        if f'{page}.{section}' not in facts.pages:
            yield 0, f'there is no manual page {page}({section})'
    for number, line in enumerate(text.splitlines(), 1):
        for link in re.findall(r'\]\(([^)#]+)\)', line):
            there = (facts.root / path).parent / link
            if '://' not in link and not there.exists():
                yield number, f'there is no file {link}'
        for name in re.findall(r'(?<![\w./%-])(?:rocketmq|rmqd|process)_[a-z_]+\b', line):
            if not is_metric(facts, name):
                yield number, f'there is no metric {name}'
            elif name in METRICS_NOT_THERE and path != 'man/rmqd-metrics.7.in':
                yield number, f'{name} is not there'


def is_metric(facts, name):
    family = re.sub(r'_(bucket|sum|count)$', '', name)
    return name in facts.metrics or facts.metrics.get(family) == 'histogram' or name in METRICS_NOT_THERE or \
        name in ('process_', 'rocketmq_', 'rmqd_') or any(
            pathlib.PurePath(f).stem == name for f in facts.files)


def quoted_commands(text, quote='"'):
    """Commands that a text for people quotes: the catalog, messages of the programs."""
    for number, line in enumerate(text.splitlines(), 1):
        for command in re.findall(
            quote + r'((?:rmqctl|rmqd|rmq-namesrvd|systemctl|journalctl) [^"\\@{]+)' + quote, line):
            yield number, command
        for command in re.findall(r'\((rmqctl [a-z -]+|systemctl [a-z -]+)\)', line):
            yield number, command


def in_documents(facts):
    for document in documents.all_documents(facts.root):
        for command in document.commands():
            for wrong in wrong_command(facts, command.text):
                yield document.path, command.line, wrong
        for number, word in document.words():
            for wrong in wrong_word(facts, document.path, word.strip()):
                yield document.path, number, wrong
        for number, wrong in wrong_references(facts, document.path, document.text):
            yield document.path, number, wrong
        for number, line in documents.stray_commands(document):
            yield document.path, number, f'"{line}" is in no block: nobody runs it'
        for block in document.blocks:
            if not block.kind:
                yield document.path, block.line, 'a block of which it is not clear what it is'


def in_packaging(facts):
    for pattern in ('packaging/systemd/*.catalog', 'packaging/conf/*.toml', 'packaging/examples/*.yml',
                    'packaging/examples/*.json'):
        for file in sorted(facts.root.glob(pattern)):
            path, text = str(file.relative_to(facts.root)), file.read_text()
            for number, command in quoted_commands(text) if file.suffix in ('.catalog', '.toml') else ():
                for wrong in wrong_command(facts, command):
                    yield path, number, wrong
            for number, wrong in wrong_references(facts, path, text):
                yield path, number, wrong
            if file.suffix in ('.yml', '.catalog'):
                yield from in_plain_text(facts, path, text)


def in_plain_text(facts, path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r'(?<![\w$"{%.-])[a-z]+[A-Z]\w*', line):
            if line.startswith(('Subject', 'Defined-By', 'Documentation', '-- ')
                               ) or '$labels' in line and word == 'humanizeDuration':
                continue
            for wrong in wrong_key(facts, path, word):
                yield path, number, wrong
        for command in re.findall(
            r'rmqctl [a-z]+(?: (?:[a-z-]+|\{\{))*', line) if path.endswith('.yml') else ():
            for wrong in wrong_command(facts, command.replace('{{', 'x')):
                yield path, number, wrong


def in_messages(facts):
    for file in sorted((facts.root / 'src').rglob('*.cc')):
        path = str(file.relative_to(facts.root))
        literals = re.sub(r'"\s*\n\s*"', '', file.read_text())
        for number, command in quoted_commands(literals, r'\\"'):
            for wrong in wrong_command(facts, command.rstrip('.,;:')):
                yield path, number, wrong


def manual_pages(facts):
    """Every verb, key and metric has its place, with a text that says something."""
    built = {page: (facts.build / 'man' / page).read_text().replace('\\-', '-') for page in facts.pages}
    listed = output(facts.program['rmqctl'], 'help')
    for verb in facts.verbs:
        if not re.search(rf'^\.SS "{re.escape(verb)}[ "]', built['rmqctl.1'], re.MULTILINE):
            yield 'rmqctl.1', 0, f'lacks the verb {verb}'
        if not re.search(rf'^  {re.escape(verb)}\b', listed, re.MULTILINE):
            yield 'rmqctl help', 0, f'lacks the verb {verb}'
        text = output(facts.program['rmqctl'], 'help', verb).splitlines()
        if not text[0].startswith(f'rmqctl {verb}') or not (
            len(text[1].split()) > 1 or text[1] == 'the same'):
            yield f'rmqctl help {verb}', 2, f'does not say what it does: {text[1]}'
    for program, page in (('rmqd', 'rmqd.toml.5'), ('rmq-namesrvd', 'namesrv.toml.5')):
        told = dict(re.findall(r'^\.BR (\w+) " = .*\n(.*)', built[page], re.MULTILINE))
        for key in facts.keys[program]:
            if len(told.get(key, '').split()) < 1:
                yield page, 0, f'lacks the key {key}, or what it does'
    for metric in facts.metrics:
        if f'.BR {metric} ' not in built['rmqd-metrics.7']:
            yield 'rmqd-metrics.7', 0, f'lacks the metric {metric}'


def code_map(facts):
    path = 'docs/architecture.md'
    text = (facts.root / path).read_text().partition('## Code map')[2].partition('\n## ')[0]
    sources = sorted(f for f in facts.files if re.match(r'src/.*\.(cc|h)$', f))
    covered, folder = set(), ''
    for number, line in enumerate(text.splitlines()):
        if heading := re.match(r'### `(src[\w/]*)`', line):
            folder = heading[1]
        if not line.startswith('| `'):
            continue
        for pattern in re.findall(r'`([^`]+)`', line.split('|')[1]):
            hits = [f for f in sources if pathlib.PurePath(f).parent == pathlib.PurePath(folder)
                    and fnmatch.fnmatch(pathlib.PurePath(f).stem, pattern)]
            if not hits:
                yield path, 0, f'the code map has {folder}/{pattern}, which is nothing'
            covered.update(hits)
    for file in sources:
        if file not in covered:
            yield path, 0, f'the code map lacks {file}'


CHECKS = [in_documents, in_packaging, in_messages, manual_pages, code_map]


def violations(root, build, checks=CHECKS):
    facts = Facts(pathlib.Path(root), pathlib.Path(build))
    for check in checks:
        yield from (f'{path}:{line}: {what}' for path, line, what in check(facts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('root')
    a = parser.parse_args()
    found = list(violations(a.root, a.build))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
