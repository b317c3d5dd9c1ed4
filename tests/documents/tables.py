#!/usr/bin/env python3
"""The parts of docs/operations.md that come from the code: the remarks of refusals, and the journal's events.

usage: tables.py [--write] ROOT    without --write: fails when the guide has something else

A part stands between "<!-- generated: NAME -->" and "<!-- end -->".
"""
import pathlib
import re
import sys
import textwrap

GUIDE = 'docs/operations.md'
WIDTH = 119
# Answers that say no more than that there is nothing now.
NO_REFUSALS = {'SUCCESS', 'FLUSH_DISK_TIMEOUT', 'PULL_NOT_FOUND', 'PULL_RETRY_IMMEDIATELY',
               'PULL_OFFSET_MOVED', 'QUERY_NOT_FOUND', 'POLLING_TIMEOUT'}
LITERALS = r'(?:"(?:\\.|[^"\\])*"\s*)+'
# A code, and the remark behind it where that is written there.
REFUSAL = re.compile(r'ResponseCode::([A-Z_]+)\b(?:\s*,\s*(?:\{\}|header|out|p)\b)?(?:\s*,\s*\{\})?\s*'
                     r'(?:,\s*(?:\w+ \+ )?(?:fmt::format\(|std::string\()?\s*(' + LITERALS + '))?')


def sources(root):
    for path in sorted((root / 'src' / 'daemon').rglob('*.cc')):
        yield path.relative_to(root), path.read_text()


def code_numbers(root):
    listing = (root / 'src/proto/codes.h').read_text().partition('#define RMQ_RESPONSE_CODES')[2]
    listing = listing.partition('#define')[0]
    return {name: int(number) for name, number in re.findall(r'X\((\w+), (\d+)\)', listing)}


def refusals(root):
    """Code -> the remarks that stand beside it in the code of the daemons."""
    out = {}
    for _, text in sources(root):
        for match in REFUSAL.finditer(text):
            code, literals = match.groups()
            if code in NO_REFUSALS:
                continue
            found = out.setdefault(code, set())
            if literals:
                remark = ''.join(re.findall(r'"((?:\\.|[^"\\])*)"', literals))
                remark = remark.split('\\n')[0].replace('\\"', '"')
                remark = re.sub(r'\{[^}]*\}', '…', remark).replace('`', "'").strip()
                if len(remark) > 8:
                    found.add(remark + ' …' if remark.endswith(':') else remark)
    return out


def remarks(root):
    numbers = code_numbers(root)
    out = []
    for code, texts in sorted(refusals(root).items(), key=lambda item: numbers[item[0]]):
        if texts:
            out.append(f'- **{code} ({numbers[code]})**')
            out += [f'  - `{text}`' for text in sorted(texts, key=str.lower)]
    return '\n'.join(out)


def events(root):
    names = dict(
    re.findall(
        r'X\(\s*\w+\s*,\s*"([0-9a-f]+)"\s*,\s*"([^"]+)"',
         (root / 'src/base/message_id.h').read_text()))
    catalog = (root / 'packaging/systemd/rmqd.catalog').read_text()
    out = {}
    for entry in re.split(r'^-- ', catalog, flags=re.MULTILINE)[1:]:
        head, _, body = entry.partition('\n\n')
        subject = re.search(r'^Subject: (.*)', head, flags=re.MULTILINE)[1]
        subject, body = (re.sub(r'@(\w+)@', r'\1', ' '.join(x.split())) for x in (subject, body))
        body = body.replace('<', '&lt;').replace('*', '\\*').replace('_', '\\_')
        name = names[head.split()[0]]
        out[name] = textwrap.fill(f'- **{name}**: {subject}. {body}', WIDTH, subsequent_indent='  ',
                                  break_long_words=False, break_on_hyphens=False)
    return '\n'.join(text for _, text in sorted(out.items()))


PARTS = {'remarks': remarks, 'events': events}


def filled(root):
    text = (root / GUIDE).read_text()
    for name, make in PARTS.items():
        begin = f'<!-- generated: {name} -->\n'
        if text.count(begin) != 1:
            sys.exit(f'{GUIDE} has no place for "{name}"')
        head, _, rest = text.partition(begin)
        text = head + begin + '\n' + make(root) + '\n\n<!-- end -->' + rest.partition('<!-- end -->')[2]
    return text


def table_of_codes(text):
    """The codes that the guide's table explains, with their numbers."""
    section = text.partition('## When a request is refused')[2].partition('<!-- generated')[0]
    return {name: int(number) for name, number in re.findall(
        r'^\| ([A-Z_]+) \((\d+)\) \|', section, re.MULTILINE)}


def violations(root):
    text = (root / GUIDE).read_text()
    told, numbers, made = table_of_codes(text), code_numbers(root), refusals(root)
    for code in sorted(set(made) - set(told)):
        yield f'{GUIDE}: the table of refusals lacks {code}'
    for code in sorted(set(told) - set(made)):
        yield f'{GUIDE}: the table of refusals has {code}, which nothing answers with'
    for code in sorted(set(told) & set(numbers)):
        if told[code] != numbers[code]:
            yield f'{GUIDE}: {code} is {numbers[code]}, not {told[code]}'
    if text != filled(root):
        yield f'{GUIDE}: generated parts are not those of the code; "./dev documents" writes them'


def main(arguments):
    write = '--write' in arguments
    root = pathlib.Path(next(a for a in arguments if a != '--write'))
    if write:
        (root / GUIDE).write_text(filled(root))
    found = list(violations(root))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
