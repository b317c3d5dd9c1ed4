"""Makes a manual page: the template with @VERSION@ filled in, and the line @TABLE@ replaced by what the
program prints, so that the page says what the program's own table says.

usage: fill.py TEMPLATE OUTPUT VERSION [COMMAND...]
"""
import pathlib
import subprocess
import sys

template, output, version, *command = sys.argv[1:]
text = pathlib.Path(template).read_text().replace('@VERSION@', version)
if command:
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if not table.strip():
        sys.exit(f'{" ".join(command)} printed nothing')
    if '@TABLE@\n' not in text:
        sys.exit(f'{template} has no line @TABLE@')
    text = text.replace('@TABLE@\n', table.rstrip('\n') + '\n')
pathlib.Path(output).write_text(text)
