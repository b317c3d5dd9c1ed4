"""What is written about a program is what the program does: the packaged configuration file is valid, each
default it shows is the default, and the manual page has the options of the program, no more and no less.

usage: documents.py PROGRAM MANUAL-PAGE [CONFIGURATION-FILE]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Printed for the build, not for people.
HIDDEN = re.compile('--dump-')


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def options(text):
    return {o for o in re.findall(r'(?<![\w-])--[a-z][a-z-]+', text) if not HIDDEN.match(o)}


def check_manual(program, page):
    _, text = run(program, '--help')
    offered = options(text)
    section = pathlib.Path(page).read_text().partition('.SH OPTIONS\n')[2].partition('\n.SH ')[0]
    told = options(section.replace('\\-', '-'))
    if not offered:
        yield f'{program} --help shows no options'
    for option in sorted(offered - told):
        yield f'{page}: does not tell of {option}'
    for option in sorted(told - offered):
        yield f'{page}: tells of {option}, which {program} does not have'


def check_configuration(program, path):
    text = pathlib.Path(path).read_text()
    shown = dict(re.findall(r'^#(\w+) = (.*)$', text, flags=re.MULTILINE))
    uncommented = re.sub(r'^#(?=\w+ = )', '', text, flags=re.MULTILINE)
    if not shown or not re.search(r'^\w+ = ', text, flags=re.MULTILINE):
        yield f'{path}: holds no keys'
    for what, content in (('as it is', text), ('with every key set', uncommented)):
        with tempfile.NamedTemporaryFile('w', suffix='.toml') as file:
            file.write(content)
            file.flush()
            status, output = run(program, '--check-config', '-c', file.name)
        if status != 0:
            yield f'{path}, {what}: {output.strip()}'
    _, usage = run(program, '--help')
    defaults = dict(re.findall(r'^\s*(\w+) = (.*)$', usage, flags=re.MULTILINE))
    for key, value in shown.items():
        default = defaults.get(key, '')
        # An empty default stands for something found out at start: the file shows an example.
        if default not in ('""', '') and default.strip('"') != value.strip('"'):
            yield f'{path}: {key} = {value}, but the default is {default}'


def main(program, page, configuration=None):
    found = list(check_manual(program, page))
    if configuration:
        found += check_configuration(program, configuration)
    for violation in found:
        print(violation)
    return 1 if found else 0


sys.exit(main(*sys.argv[1:]))
