"""Makes a manual page of a guide in Markdown, so that both say the same. Knows what the guides use: headings,
paragraphs, lists, tables, code in fences and indented, **bold**, `code`, links.

usage: from_markdown.py GUIDE OUTPUT VERSION WHAT    OUTPUT is named like the page: rmqd-migration.7
"""
import pathlib
import re
import sys


def escaped(text):
    return text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq').replace('…', '...')


def inline(text):
    """Text with fonts. A line of output never begins with a dot or a quote."""
    out = []
    for part in re.split(r'(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))', text):
        if re.fullmatch(r'`[^`]+`|\*\*[^*]+\*\*', part):
            out.append('\\fB' + escaped(part.strip('`*')) + '\\fR')
        elif link := re.fullmatch(r'\[([^\]]+)\]\(([^)]+)\)', part):
            out.append(escaped(link[1]))
        else:
            out.append(escaped(part))
    line = ''.join(out)
    return '\\&' + line if line[:1] in ".'" else line


class Page:
    def __init__(self):
        self.lines, self.depth = [], 0  # depth: of lists, each an .RS

    def add(self, *lines):
        self.lines += lines

    def to_depth(self, depth):
        while self.depth > depth:
            self.add('.RE')
            self.depth -= 1

    def code(self, lines):
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        self.add('.PP', '.RS 4', '.nf')
        for line in lines:
            text = escaped(line)
            self.add('\\&' + text if text[:1] in ".'" else text)
        self.add('.fi', '.RE')

    def table(self, rows):
        """The first column as tags; more than two are joined, each with its heading."""
        head, *body = rows
        for row in body:
            self.add('.TP', inline(row[0]))
            rest = [cell if len(row) == 2 else f'{head[i]}: {cell}' for i, cell in enumerate(row) if i]
            self.add(inline('. '.join(rest) + '.'))

    def paragraph(self, text):
        self.add('.PP', inline(text))

    def item(self, mark, text):
        self.add(f'.IP {mark} 4', inline(text))


def cells(line):
    return [cell.strip() for cell in line.strip().strip('|').split('|')]


def convert(text):
    page, lines, at = Page(), text.splitlines(), 0
    indents = []  # of the lists that are open
    while at < len(lines):
        line = lines[at]
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            at += 1
            continue
        while indents and depth < indents[-1]:
            indents.pop()
            page.to_depth(len(indents))
        indent = indents[-1] if indents else 0
        if heading := re.match(r'(#+) (.*)', line):
            indents.clear()
            page.to_depth(0)
            if len(heading[1]) > 1:
                name = heading[2] if len(heading[1]) > 2 else heading[2].upper()
                page.add(f'.S{"H" if len(heading[1]) == 2 else "S"} "{escaped(name)}"')
            else:
                page.add('.SH DESCRIPTION')
            at += 1
        elif re.match(r' *```', line):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == '```')
            page.code([code[depth:] for code in lines[at + 1:end]])
            at = end + 1
        elif depth >= indent + 4:
            end = at
            while end < len(lines) and (not lines[end].strip() or
                                        len(lines[end]) - len(lines[end].lstrip()) >= indent + 4):
                end += 1
            page.code([code[indent + 4:] for code in lines[at:end]])
            at = end
        elif line.lstrip().startswith('|'):
            end = at
            while end < len(lines) and lines[end].lstrip().startswith('|'):
                end += 1
            rows = [cells(row) for row in lines[at:end]]
            page.table([row for row in rows if not set(''.join(row)) <= set('-:')])
            at = end
        elif line.lstrip().startswith('<!--'):
            at += 1
        else:
            item = re.match(r' *([-*]|\d+\.) +', line)
            words, at = [line[len(item[0]):] if item else line.strip()], at + 1
            while at < len(lines) and lines[at].strip() and not re.match(
                r' *([-*]|\d+\.) |#| *```| *\|', lines[at]):
                words.append(lines[at].strip())
                at += 1
            if item:
                page.item('\\(bu' if item[1] in '-*' else item[1], ' '.join(words))
                page.add('.RS 4')
                indents.append(len(item[0]))
                page.depth += 1
            else:
                page.paragraph(' '.join(words))
    page.to_depth(0)
    return '\n'.join(page.lines) + '\n'


def main(guide, output, version, what):
    title, section = pathlib.Path(output).name.rsplit('.', 1)
    head = f'.TH {escaped(title.upper())} {section} "" "rmqd {version}" "Miscellanea"\n' \
           f'.SH NAME\n{escaped(title)} \\- {what}\n'
    see_also = '.SH "SEE ALSO"\n.BR rmqctl (1),\n.BR rmqd.toml (5),\n.BR rmqd (8),\n.BR rmq\\-namesrvd (8)\n'
    pathlib.Path(output).write_text(head + convert(pathlib.Path(guide).read_text()) + see_also)


main(*sys.argv[1:])
