"""rmqctl's verbs that look at a whole cluster: doctor, and top on a terminal and without one."""
import os
import signal

from screen import Screen


def cases(expect, nobody):
    """Functions of a ctl, as `run` has them."""
    def doctor(ctl):
        ran = ctl.run('doctor', '--json')
        found = {f['check']: f for f in ran.json()}
        for check in ('name-server', 'broker', 'clock', 'disk', 'consumers'):
            expect(check in found and found[check]['grade'] in ('ok', 'note'), check, 'in', ran)
        expect(all(f['cure'] for f in ran.json() if f['grade'] in ('warning', 'problem')), ran)
        worst = any(f['grade'] in ('warning', 'problem') for f in ran.json())
        expect(ran.code == (1 if worst else 0), ran)
        if ctl.is_rmqd:
            disk = found['dsync-latency']
            expect(disk['grade'] != 'note' and 'durable write' in disk['text'], ran)
        short, full = ctl.run('doctor').out, ctl.run('doctor', '--all').out
        expect(short.startswith('ok ') and 'its clock agrees' not in short, short)
        expect('its clock agrees' in full, full)
        nothing = ctl.fails(69, 'doctor', namesrv=nobody)
        expect('PROBLEM  name server ' + nobody in nothing.out, nothing)

    def top_when_piped(ctl):
        topic = ctl.topic(2)
        ctl.ok('send', topic, 'x')
        ran = ctl.ok('top', '--interval', '300ms')
        for word in ('BROKER', 'FLUSH 99%', 'TOPIC', 'GROUP', topic):
            expect(word in ran.out, word, 'in', ran)
        expect('\x1b' not in ran.out, ran)
        shown = ctl.ok('top', '--json', '--interval', '300ms').json()
        expect(shown['brokers'] and shown['brokers'][0]['trouble'] in ('', 'disk filling'), shown)
        row = [t for t in shown['topics'] if t['topic'] == topic]
        expect(row and row[0]['queues'] == 2 and row[0]['messages'] == 1, shown)
        ctl.fails(69, 'top', namesrv=nobody)
        ctl.fails(64, 'top', '--interval', 'soon')

    def top_on_a_terminal(ctl):
        topic = ctl.topic(2)
        ctl.ok('send', topic, 'x')
        screen = Screen([ctl.program, '-n', ctl.namesrv, 'top', '--interval', '300ms'])
        frame = screen.wait(lambda f: 'BROKER' in f and 'GROUP' in f and 'q quit' in f)
        lines = frame.split('\r\n')
        expect(len(lines) == 24 and all(len(line) <= 80 for line in lines), lines)
        screen.press('t')
        frame = screen.wait(lambda f: 'TOPIC' in f and 'BROKER' not in f)
        screen.press('?')
        screen.wait(lambda f: 'producers wait for them' in f)
        screen.press('a')
        screen.wait(lambda f: 'BROKER' in f and 'GROUP' in f)
        screen.press('p')
        screen.wait(lambda f: 'paused' in f)
        screen.press('p')
        screen.wait(lambda f: 'every 300ms' in f)
        ctl.ok('send', topic, 'x', '--count', '200')
        screen.wait(lambda f: any(line.startswith(topic) and line.split()[1] not in ('0', '-')
                                  for line in f.split('\r\n')))
        screen.resize(10, 40)
        frame = screen.wait(lambda f: len(f.split('\r\n')) == 10)
        expect(all(len(line) <= 40 for line in frame.split('\r\n')), frame)
        screen.press('q')
        code, last = screen.end()
        expect(code == 0, code, repr(last))
        expect(last.endswith('\x1b[?25h\x1b[?1049l'), 'the terminal is left as it was:', repr(last[-200:]))

    def top_ends_by_a_signal(ctl):
        screen = Screen([ctl.program, '-n', ctl.namesrv, 'top', '--interval', '300ms'])
        screen.wait(lambda f: 'BROKER' in f)
        os.kill(screen.pid, signal.SIGTERM)
        code, last = screen.end()
        expect(code == 0 and last.endswith('\x1b[?1049l'), code, repr(last[-200:]))

    return [doctor, top_when_piped, top_on_a_terminal, top_ends_by_a_signal]
