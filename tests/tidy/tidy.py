"""Checks of the tree that compilers do not make: include arrows, sizes, leftovers, catalog and message ids.

usage: tidy.py ROOT    prints one line for each violation and fails if there is one

Each check is a function that takes the tree and yields violations. selftest.py feeds each one a tree that
breaks its rule.
"""
import pathlib
import re
import shutil
import subprocess
import sys

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 110

# folder -> what it may include: a folder of src, or one header.
ARROWS = {
    'base': [],
    'filter': ['base'],
    'proto': ['base'],
    'uring': ['base'],
    'store': ['base', 'uring', 'proto/record.h'],
    'daemon': ['base', 'filter', 'proto', 'uring', 'store'],
    'ctl': ['base', 'filter', 'proto', 'store/format.h', 'store/offline', 'daemon/import_config.h',
            'uring/probe.h'],
}
CODE = {'.cc', '.h'}
SCRIPTS = {'.py', '.sh'}
# Written so that this file does not hold what it looks for.
MACHINE_PATH = re.compile('/wo' + 'rk/|/tmp/' + r'peer|/home/[a-z]\w*/')
LEFTOVER = re.compile(r'\b(TO' + 'DO|FIX' + r'ME)\b')


class Tree:
    """The files under version control (or all, outside of git), as path -> text, binary files left out."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = {}
        for path in self._paths():
            full = self.root / path
            if not full.is_file() or full.is_symlink():
                continue
            data = full.read_bytes()
            if b'\0' not in data and 'corpus' not in pathlib.PurePath(path).parts:
                self.files[path] = data.decode('utf-8', 'replace')

    def _paths(self):
        if (self.root / '.git').exists() and shutil.which('git'):
            git = ['git', '-c', 'safe.directory=*', '-C', str(self.root)]
            listing = subprocess.run(git + ['ls-files', '-z', '-co', '--exclude-standard'], check=True,
                                     capture_output=True, text=True)
            return listing.stdout.strip('\0').split('\0')
        found = (p.relative_to(self.root) for p in self.root.rglob('*'))
        return sorted(str(p) for p in found if not re.match(r'build|out$|\.git$', p.parts[0]))

    def having(self, suffixes, under=('src', 'tests')):
        for path, text in self.files.items():
            p = pathlib.PurePath(path)
            if p.suffix in suffixes and p.parts[0] in under:
                yield path, text


def include_arrows(tree):
    for path, text in tree.having(CODE, under=('src',)):
        folder = pathlib.PurePath(path).parts[1]
        if folder not in ARROWS:
            yield f'{path}: folder src/{folder} has no row in the table of include arrows'
            continue
        allowed = [folder] + ARROWS[folder]
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match[1].split('/')[0]
            parent = match[1].rpartition('/')[0]
            if target not in ARROWS:
                yield f'{path}:{number}: include "{match[1]}" by its path below src'
            elif not {target, parent, match[1]} & set(allowed):
                yield f'{path}:{number}: src/{folder} must not include {match[1]}'


def sizes(tree):
    for path, text in tree.files.items():
        p = pathlib.PurePath(path)
        if p.suffix not in CODE | SCRIPTS and path != 'dev' and not text.startswith('#!'):
            continue
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            yield f'{path}: {len(lines)} lines, more than {FILE_LINES_MAX}'
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f'{path}:{number}: {len(line)} columns, more than {COLUMNS_MAX}'


def blank(text):
    """The text with comments, literals and preprocessor lines overwritten by blanks; line numbers stay."""
    token = re.compile(r'''//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"'''
                       r'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+\'''', re.DOTALL)

    def empty(match):
        # 1'000 is a number, not the start of a literal.
        if match[0][0] == "'" and match.start() and match.string[match.start() - 1].isalnum():
            return match[0].replace("'", ' ')
        return re.sub(r'[^\n]', ' ', match[0])

    text = token.sub(empty, text)
    return re.sub(r'^[ \t]*#(?:\\\n|[^\n])*', lambda m: re.sub(r'[^\n]', ' ', m[0]), text, flags=re.MULTILINE)


def functions(text):
    """Yields (first line, number of lines, name) of each function body that is not inside another one."""
    text = blank(text)
    depth, start, head, name = 0, None, 0, ''
    for match in re.finditer(r'[{};]', text):
        at = match.start()
        if match[0] == '{':
            signature = text[head:at].strip()
            scope = re.match(r'(inline\s+)?namespace\b|extern\b|(template\s*<.*>\s*)?'
                             r'(class|struct|union|enum)\b', signature, re.DOTALL)
            value = re.search(r'(?<![=!<>])=\s*(\[.*)?$', signature, re.DOTALL)
            if start is None and ')' in signature and not scope and not value:
                start, depth = at, 0
                called = re.search(r'([~\w:]+)\s*\(', signature)
                name = called[1] if called else '?'
            depth += 1
        elif match[0] == '}':
            depth -= 1
            if start is not None and depth == 0:
                first = text.count('\n', 0, start) + 1
                yield first, text.count('\n', start, at) + 1, name
                start = None
        if start is None:
            head = match.end()


def function_lengths(tree):
    for path, text in tree.having(CODE):
        for line, count, name in functions(text):
            if count > FUNCTION_LINES_MAX:
                yield f'{path}:{line}: function {name} has {count} lines, more than {FUNCTION_LINES_MAX}'


def headers_say_their_idea(tree):
    for path, text in tree.having({'.h'}, under=('src',)):
        if not text.startswith('//'):
            yield f'{path}: opens with no comment that tells its idea'


def leftovers(tree):
    for path, text in tree.files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                yield f'{path}:{number}: a path of one machine'
            if LEFTOVER.search(line):
                yield f'{path}:{number}: a mark of unfinished work'


def catalog(tree):
    ids = re.findall(r'X\(\s*(\w+)\s*,\s*"([^"]*)"\s*,\s*"([^"]*)"\s*\)',
                     tree.files.get('src/base/message_id.h', ''))
    text = re.sub(r'^#.*\n', '', tree.files.get('packaging/systemd/rmqd.catalog', ''), flags=re.MULTILINE)
    entries = re.split(r'^-- ', text, flags=re.MULTILINE)[1:]
    described = [entry.split(None, 1)[0] for entry in entries]
    if not ids:
        yield 'src/base/message_id.h: no message ids found'
    for name, value, _ in ids:
        if not re.fullmatch('[0-9a-f]{32}', value):
            yield f'src/base/message_id.h: {name} is not 32 lower case hex digits'
        if value not in described:
            yield f'packaging/systemd/rmqd.catalog: no entry for {name} ({value})'
        if not any(re.search(rf'\bids::{name}\b', code) for _, code in tree.having({'.cc'}, under=('src',))):
            yield f'src/base/message_id.h: no line has the id {name}'
    for column, what in ((1, 'id'), (2, 'name')):
        values = [row[column] for row in ids]
        for value in {v for v in values if values.count(v) > 1}:
            yield f'src/base/message_id.h: {what} {value} twice'
    for value in sorted(set(described) - {row[1] for row in ids}):
        yield f'packaging/systemd/rmqd.catalog: {value} is no message id'
    for value in {v for v in described if described.count(v) > 1}:
        yield f'packaging/systemd/rmqd.catalog: {value} twice'
    for entry in entries:
        head, _, body = entry.partition('\n\n')
        if 'Subject: ' not in head or not body.strip():
            yield f'packaging/systemd/rmqd.catalog: {head.split()[0]} lacks its Subject or its text'


CHECKS = [include_arrows, sizes, function_lengths, headers_say_their_idea, leftovers, catalog]


def violations(root):
    tree = Tree(root)
    return [violation for check in CHECKS for violation in check(tree)]


if __name__ == '__main__':
    found = violations(sys.argv[1])
    for violation in found:
        print(violation)
    sys.exit(1 if found else 0)
