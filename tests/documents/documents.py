"""The documents as what they show: code blocks, commands with the output below them, words in code type.

Documents are Markdown (README.md, docs/*.md) and manual pages (man/*.in). What a block is follows from its
fence; an indented block, and one of a manual page, is told by its first line.
"""
import pathlib
import re
from dataclasses import dataclass, field

COMMANDS = ('./dev', 'apt', 'chown', 'cp', 'curl', 'df', 'du', 'echo', 'export', 'journalctl', 'man', 'mkdir',
            'mount', 'mqadmin', 'mv', 'printf', 'promtool', 'rm', 'rmq-namesrvd', 'rmqctl', 'rmqd', 'sh',
            'sleep', 'systemctl')


@dataclass
class Command:
    text: str
    line: int
    output: list = field(default_factory=list)  # lines that are shown below it; none: nothing is promised


@dataclass
class Block:
    kind: str  # commands, console, toml, yaml, java, bytes
    line: int
    lines: list
    section: str

    def text(self):
        return ''.join(line + '\n' for line in self.lines)


class Document:
    def __init__(self, root, path):
        self.path = path
        self.text = (pathlib.Path(root) / path).read_text()
        self.is_manual = path.endswith('.in')
        self.blocks = list(manual_blocks(self.text) if self.is_manual else markdown_blocks(self.text))

    def commands(self):
        for block in self.blocks:
            if block.kind == 'commands':
                yield from plain_commands(block)
            elif block.kind == 'console':
                yield from console_commands(block)

    def words(self):
        """(line, word) of each thing in code type outside of blocks."""
        if self.is_manual:
            yield from manual_words(self.text)
        else:
            yield from markdown_words(self.text, self.blocks)


def kind_of(lines, fence=None):
    """'' when it cannot be told."""
    by_fence = {'console': 'console', 'sh': 'commands', 'toml': 'toml', 'yaml': 'yaml', 'java': 'java',
                '': 'bytes'}
    if fence is not None:
        return by_fence.get(fence, '')
    first = next((line for line in lines if line.strip()), '')
    if first.split()[:1] and first.split()[0] in COMMANDS:
        return 'commands'
    if re.match(r'\w+ = ', first):
        return 'toml'
    if re.match(r'\w+:$', first):
        return 'yaml'
    return ''


def markdown_blocks(text):
    section, fence, previous_blank = '', None, True
    indents = [0]  # of the text of the lists that are open
    block, first = [], 0
    lines = text.splitlines() + ['']
    for number, line in enumerate(lines, 1):
        blank = not line.strip()
        if fence is not None:
            if line.strip() == '```':
                yield Block(kind_of(block, fence), first, block, section)
                fence, block = None, []
            else:
                block.append(line[indent_of_fence:])
            continue
        depth = len(line) - len(line.lstrip())
        while not blank and depth < indents[-1]:
            indents.pop()
        indent = indents[-1]
        if block and not blank and depth < indent + 4:
            yield Block(kind_of(block), first, [b for b in strip_end(block)], section)
            block = []
        opening = re.match(r'( *)```(\w*)$', line)
        if opening:
            fence, indent_of_fence, first = opening[2], len(opening[1]), number + 1
        elif not blank and depth >= indent + 4 and (block or previous_blank):
            first = first if block else number
            block.append(line[indent + 4:])
        elif blank and block:
            block.append('')
        else:
            if heading := re.match(r'#+ (.*)', line):
                section = heading[1]
            elif item := re.match(r' *([-*]|\d+\.) +', line):
                indents.append(len(item[0]))
        previous_blank = blank
    if block:
        yield Block(kind_of(block), first, strip_end(block), section)


def strip_end(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def manual_text(line):
    line = re.sub(r'\\f[BIRP]', '', line).replace('\\-', '-').replace('\\&', '').replace('\\(dq', '"')
    return line.replace('\\e', '\\')


def manual_blocks(text):
    section, block, first = '', None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith('.SH '):
            section = line[4:].strip('"')
        if line in ('.nf', '.EX'):
            block, first = [], number + 1
        elif line in ('.fi', '.EE'):
            yield Block(kind_of(block), first, block, section)
            block = None
        elif block is not None and not line.startswith('.'):
            block.append(manual_text(line))


def plain_commands(block):
    number = block.line
    whole = ''
    for line in block.lines:
        if not whole:
            number_of_first = number
        number += 1
        if line.endswith('\\'):
            whole += line[:-1]
            continue
        whole += line
        if whole.strip():
            yield Command(whole, number_of_first)
        whole = ''


def console_commands(block):
    command = None
    for number, line in enumerate(block.lines, block.line):
        if line.startswith('$ '):
            if command:
                yield command
            command = Command(line[2:], number)
        elif command:
            command.output.append(line)
    if command:
        yield command


def markdown_words(text, blocks):
    inside = {n for b in blocks for n in range(b.line, b.line + len(b.lines) + 1)}
    for number, line in joined_code(text):
        if number not in inside:
            for word in re.findall(r'`([^`]+)`', line):
                yield number, re.sub(r'\s+', ' ', word)


def joined_code(text):
    """Lines, with code that goes on in the next line brought into the first one."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line, first = lines[number], number + 1
        while line.replace('```', '').count('`') % 2 and number + \
                           1 < len(lines) and lines[number + 1].strip():
            number += 1
            line += ' ' + lines[number].strip()
        yield first, line
        number += 1


def manual_words(text):
    for number, line in enumerate(text.splitlines(), 1):
        if macro := re.match(r'\.(B|BR|IR|RB|I|BI) (.*)', line):
            for part in re.findall(r'"[^"]*"|\S+', manual_text(macro[2])) if macro[1] not in 'BI' else \
                    [manual_text(macro[2])]:
                yield number, part.strip('",')
        for word in re.findall(r'\\fB(.*?)\\f[RP]', line):
            yield number, manual_text(word)


def stray_commands(document):
    """Lines that look like commands and are in no block, so that nobody would run them."""
    inside = {n for b in document.blocks for n in range(b.line, b.line + len(b.lines) + 1)}
    for number, line in enumerate(document.text.splitlines(), 1):
        word = re.match(r'(?: {4,}|\$ )([\w./-]+) ', line)
        if word and number not in inside and word[1] in COMMANDS and word[1] not in ('rmqd', 'rmq-namesrvd'):
            yield number, line.strip()


def all_documents(root):
    root = pathlib.Path(root)
    paths = ['README.md', 'NEWS.md'] + sorted(f'docs/{p.name}' for p in (root / 'docs').glob('*.md'))
    paths += sorted(f'man/{p.name}' for p in (root / 'man').glob('*.in'))
    return [Document(root, path) for path in paths]
