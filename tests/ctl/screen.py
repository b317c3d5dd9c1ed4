"""A terminal for a test: keys go in, what is drawn comes out frame by frame."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class Screen:
    """A program on a terminal of its own, which draws it anew from the top left corner each time."""

    def __init__(self, command, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ['TERM'] = 'xterm'
            os.execv(command[0], command)
        self.resize(rows, columns)
        self.text = ''

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def wait(self, want, seconds=10):
        """Reads until a whole frame holds what is wanted."""
        until = time.time() + seconds
        while time.time() < until:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    # The terminal's driver makes a line feed of each line's end itself.
                    self.text += os.read(self.fd, 65536).decode().replace('\r\r\n', '\r\n')
                except OSError:  # it has ended
                    return False
            frames = self.text.split('\x1b[H')
            whole = [f for f in frames[:-1] if '\x1b[J' in f] + [f for f in frames[-1:] if '\x1b[J' in f]
            for frame in whole:
                plain = re.sub('\x1b\\[[0-9;?]*[a-zA-Z]', '', frame)
                if want(plain):
                    self.text = ''
                    return plain
        raise TimeoutError(f'not seen in {self.text[-2000:]!r}')

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """Exit code and the last it wrote."""
        last = ''
        until = time.time() + 10
        while time.time() < until:
            try:
                part = os.read(self.fd, 65536).decode()
            except OSError:
                break
            if not part:
                break
            last += part
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), last
