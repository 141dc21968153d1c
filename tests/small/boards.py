"""Boards that qemu emulates, for compare.py: those of examples/board."""
import re
import shlex
import shutil
import subprocess


def find(name, root):
    """Returns what compare.py needs, or why the board cannot be emulated."""
    board = dict(re.findall(r"^(\w+) := *(.*)$", open(f"{root}/examples/board/{name}.mk").read(), re.M))
    emulator = shlex.split(board["BOARD_RUN"])
    for tool in (board["CC"], emulator[0]):
        if not shutil.which(tool):
            return f"{name}: there is no {tool}"
    flags = [*shlex.split(board["BOARD_FLAGS"]), "-DBOARD", f"-I{root}/examples/board"]
    probe = subprocess.run([board["CC"], *flags, "-x", "c", "-c", "-o", "/dev/null", "-"], input="#include <math.h>\n#include <string.h>\n",
                           capture_output=True, text=True)
    if probe.returncode != 0:
        return f"{name}: {board['CC']} has no C library"

    def run(program):
        done = subprocess.run([*emulator, "-nographic", "-icount", "shift=0", "-monitor", "none", "-serial", "none",
                               "-semihosting-config", "enable=on,target=native", "-kernel", program], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr
    return board["CC"], flags, [f"{root}/examples/board/{board['BOARD_SOURCE']}"], [f"-L{root}/examples/board", *shlex.split(board["BOARD_LDFLAGS"])], run
