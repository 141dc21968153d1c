"""Programs on terminals of their own."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios


class Terminal:
    """A program on a terminal; `seen` is what it has printed so far."""

    def __init__(self, *command, env=None, columns=80, cwd=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(cwd or ".")
            os.execve(command[0], command, env or os.environ)
        self.seen = b""

    def more(self, seconds=60):
        """Reads; False at the end, and if nothing comes."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:  # the other end is closed
            data = b""
        self.seen += data
        return data != b""

    def read_until(self, pattern):
        while not re.search(pattern, self.seen):
            if not self.more():
                return False
        return True

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def end(self):
        """Reads to the end; returns the exit code."""
        while self.more(600):
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


def unbroken(text):
    """A text in which errors that were broken at the terminal's width have one line again."""
    return re.sub(r"\n {4}(?=\S)", " ", text)


def run(*command, typed="", stop=None, **how):
    """Runs a program to its end, or until it has printed `stop`, when it gets SIGINT. `typed` is typed at once. Returns its exit code and what it printed."""
    t = Terminal(*command, **how)
    t.type(typed)
    if stop and t.read_until(re.escape(stop)):
        os.kill(t.pid, signal.SIGINT)
    return t.end(), t.seen.decode(errors="replace")
