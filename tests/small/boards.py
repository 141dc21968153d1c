"""Boards that qemu emulates, for compare.py."""
import shutil
import subprocess

ARM = ["-mthumb", "-DBOARD", "-nostartfiles"]
# name: compiler, emulator with machine, flags, script of the linker
BOARDS = {
    "cortex-m4f": ("arm-none-eabi-gcc", ["qemu-system-arm", "-machine", "mps2-an386"],
                   ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", *ARM], "mps2-an386.ld"),
    "cortex-m3": ("arm-none-eabi-gcc", ["qemu-system-arm", "-machine", "mps2-an385"],
                  ["-mcpu=cortex-m3", "-mfloat-abi=soft", *ARM], "mps2-an386.ld"),
    "riscv32": ("riscv64-unknown-elf-gcc", ["qemu-system-riscv32", "-machine", "virt", "-bios", "none"],
                ["-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs", "-DBOARD", "-nostartfiles"], "riscv-virt.ld"),
}


def find(name, root):
    """Returns what compare.py needs, or why the board cannot be emulated."""
    cc, emulator, flags, script = BOARDS[name]
    for tool in (cc, emulator[0]):
        if not shutil.which(tool):
            return f"{name}: there is no {tool}"
    flags = [*flags, f"-I{root}/examples/board"]
    probe = subprocess.run([cc, *flags, "-x", "c", "-c", "-o", "/dev/null", "-"], input="#include <math.h>\n#include <string.h>\n", capture_output=True, text=True)
    if probe.returncode != 0:
        return f"{name}: {cc} has no C library"

    def run(program):
        done = subprocess.run([*emulator, "-nographic", "-icount", "shift=0", "-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native", "-kernel", program],
                              capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr
    return cc, flags, [f"{root}/examples/board/board.c"], ["-T", f"{root}/examples/board/{script}"], run
