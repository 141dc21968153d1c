"""./run on machines that lack something: what it installs, asks, prints and calls. Every machine is a folder of stubs, which is the
PATH; no compiler runs, and nothing is installed. first_run.py SOURCE_DIR"""
import os, pty, shutil, subprocess, sys, tempfile

import terminals
from checks import check, finish

SOURCE = sys.argv[1]
try:
    for end in pty.openpty():
        os.close(end)
except OSError as e:
    print("skipped: this machine has no terminals to try it on:", e)
    sys.exit(77)
TOOLS = "awk cat dirname env grep mkdir rm sed sort tail tee tr wc sleep".split()

# Commands of these machines. $HERE is the machine's folder; each call is a line in $HERE/calls.
STUBS = {
    "cc": """case $(cat "$1") in *microhttpd*) [ -e "$HERE/microhttpd" ] ;; esac""",
    "make": "",
    "ninja": "",
    "nproc": "echo 2",
    "sudo": """exec "$@" """,
    "cmake": r"""
case $1 in
--version) echo "cmake version 3.25.1" ;;
--preset)
    mkdir -p build/release
    : >build/release/Makefile
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
    case $* in *-DGGL_CPU_NATIVE=ON*)
        echo "GGL_CPU_NATIVE:BOOL=ON" >>build/release/CMakeCache.txt
        [ ! -e "$HERE/processor" ] || echo "GGL_CPU_BUILT_FOR:INTERNAL=$(cat "$HERE/processor")" >>build/release/CMakeCache.txt
    esac
    [ ! -e "$HERE/microhttpd" ] || echo "MICROHTTPD_LIBRARY:FILEPATH=/usr/lib/libmicrohttpd.so" >>build/release/CMakeCache.txt
    ;;
--build)
    [ ! -e "$HERE/broken" ] || { echo "main.c:1: error: broken"; exit 1; }
    echo "[  0%] Built target something"
    if [ -e "$HERE/changed" ] || [ ! -x "build/release/bin/$4" ]; then
        for percent in 3 7 12 18 55 57 100; do echo "[$(printf %3d $percent)%] Building C object a.o"; done
    fi
    mkdir -p build/release/bin
    printf '#!/bin/sh\necho "%s: $*, in $(basename "$PWD")"\n' "$4" >"build/release/bin/$4"
    chmod +x "build/release/bin/$4"
    ;;
esac""",
    # installs the commands of a package; without network it prints what apt-get does
    "apt-get": r"""
[ ! -e "$HERE/offline" ] || { echo "W: Failed to fetch http://deb.debian.org/ Temporary failure resolving 'deb.debian.org'"; }
case " $* " in
*" install "*)
    [ ! -e "$HERE/offline" ] || { echo "E: Unable to locate package make"; exit 100; }
    echo "Setting up a thousand packages .."
    for package; do
        case $package in
        gcc) cp "$HERE/all/cc" "$HERE/bin/" ;;
        make | cmake) cp "$HERE/all/$package" "$HERE/bin/" ;;
        libmicrohttpd-dev) : >"$HERE/microhttpd" ;;
        esac
    done
    ;;
esac""",
    "dnf": "", "apk": "", "brew": "",
}


class Machine:
    def __init__(self, *commands, user=0, system="Linux"):
        self.here = tempfile.mkdtemp(prefix="first run ")
        self.clone = os.path.join(self.here, "the clone")
        self.env = {"PATH": os.path.join(self.here, "bin"), "TERM": "xterm", "HOME": self.here}
        for folder in ("bin", "all", "elsewhere", "the clone/cmake"):
            os.makedirs(os.path.join(self.here, folder))
        shutil.copy(os.path.join(SOURCE, "run"), self.clone)
        self.write("the clone/run", open(os.path.join(SOURCE, "run")).read().replace("/usr/share", f"'{self.here}'/share"))
        shutil.copy(os.path.join(SOURCE, "cmake/setup.sh"), os.path.join(self.clone, "cmake"))
        stubs = dict(STUBS, id=f"echo {user}", uname=f"echo {system}")
        for name, text in stubs.items():
            self.write("all/" + name, f'#!/bin/sh\nHERE="{self.here}"\necho "{name} $*" >>"$HERE/calls"\n{text}\n')
        for name in ("id", "uname", "nproc", *commands):
            shutil.copy(os.path.join(self.here, "all", name), os.path.join(self.here, "bin"))
        for name in TOOLS + ["chmod", "cp", "basename", "printf"]:
            os.symlink(shutil.which(name), os.path.join(self.here, "bin", name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.here)

    def write(self, name, text=""):
        path = os.path.join(self.here, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def calls(self):
        try:
            with open(os.path.join(self.here, "calls")) as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def run(self, *args):
        """Without a terminal; returns the exit code, what the program printed, and the messages."""
        p = subprocess.run([os.path.join(self.clone, "run"), *args], cwd=os.path.join(self.here, "elsewhere"), env=self.env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        return p.returncode, p.stdout, p.stderr

    def run_on_terminal(self, *args, answer=""):
        """Returns the exit code and what the terminal shows; `answer` is typed at once."""
        return terminals.run(os.path.join(self.clone, "run"), *args, typed=answer, cwd=os.path.join(self.here, "elsewhere"), env=self.env)


# Nothing but apt-get: it installs without asking, names each package and why, and dpkg's output is only in the log.
with Machine("apt-get") as m:
    code, out, err = m.run("-p", "a b", "-n", "3")
    check(code == 0 and out == "llm-cli: -p a b -n 3, in elsewhere\n", "a bare machine", out + err)
    for words in ("needed: gcc (the C compiler)", "needed: libc6-dev (the C library's headers)", "needed: make (", "needed: cmake (",
                  "installing: gcc libc6-dev make cmake (output: {}/build/packages.log) .."):
        words = words.format(m.clone)
        check(words in err, "a bare machine: " + words, err)
    check("Setting up" not in err, "dpkg's output is on the screen", err)
    with open(os.path.join(m.clone, "build/packages.log")) as f:
        check("Setting up" in f.read(), "dpkg's output is not in the log")
    check("install -y --no-install-recommends gcc libc6-dev make cmake" in m.calls(), "apt-get install", m.calls())
    # progress in a pipe: a line for every 10 %
    shown = [line.split(": ")[1].split(" ")[0] for line in err.splitlines() if line.startswith("building llm-cli")]
    check(shown == ["0", "12", "55", "100"], "progress in a pipe", err)
    check("building llm-cli (some minutes): 0 %\nbuilding llm-cli: 12 %\n" in err, "how long it takes, in a pipe", err)
    # The second time, nothing is printed but by the program.
    code, out, err = m.run("-n", "1")
    check((code, out, err) == (0, "llm-cli: -n 1, in elsewhere\n", ""), "a second run", out + err)
    # A source has changed: progress is shown.
    m.write("changed")
    code, out, err = m.run()
    check(code == 0 and "building llm-cli: 3 %\n" in err, "a changed source", err)
    # The build fails.
    m.write("broken")
    code, out, err = m.run()
    check(code == 1 and "main.c:1: error: broken" in err and f"the build failed; its output is in {m.clone}/build/release/build.log" in err and
          out == "", "a build that fails", out + err)

# A person is asked; --yes answers, as the first argument only.
with Machine("apt-get", "cc", "make") as m:
    code, seen = m.run_on_terminal(answer="n\n")
    check(code == 1 and 'Install by "apt-get install cmake"? [Y/n]' in seen and "nothing was installed" in seen, "the answer no", seen)
    check("install" not in m.calls(), "the answer no installs", m.calls())
    code, seen = m.run_on_terminal("-n", "1", "--yes", answer="n\n")
    check(code == 1 and "[Y/n]" in seen, "--yes as a later argument", seen)
    code, seen = m.run_on_terminal("--yes", "-n", "1")
    check(code == 0 and "[Y/n]" not in seen and "llm-cli: -n 1, in elsewhere" in seen, "--yes", seen)
    check("What to try next" not in seen, "what to try next, after a run with arguments", seen)

# The first chat on a terminal ends with what to try next; the second does not.
with Machine("apt-get", "cc", "make") as m:
    code, seen = m.run_on_terminal(answer="\n")
    check(code == 0 and "llm-cli: , in elsewhere" in seen, "the answer Enter", seen)
    for words in ("What to try next", "-m model.gguf", "./run server", "docs/getting-started.md", "--help"):
        check(words in seen, "what to try next: " + words, seen)
    told = seen[seen.index("What to try next"):]
    check(all(len(line) < 80 for line in told.splitlines()), "lines of 80 columns", told)
    check("\rbuilding llm-cli (some minutes): 55 %" in seen, "progress on a terminal", seen)
    code, seen = m.run_on_terminal()
    check(code == 0 and "What to try next" not in seen, "a second chat", seen)

# An ordinary user: by sudo, or a command for root.
with Machine("apt-get", "cc", "make", "sudo", user=1000) as m:
    code, out, err = m.run()
    check(code == 0 and "sudo env DEBIAN_FRONTEND=noninteractive" in m.calls(), "sudo", err + m.calls())
with Machine("apt-get", "cc", "make", user=1000) as m:
    code, out, err = m.run()
    check(code == 1 and "please run as root: apt-get install cmake" in err, "no sudo", err)

# No network.
with Machine("apt-get", "cc") as m:
    m.write("offline")
    code, out, err = m.run()
    check(code == 1 and "is this machine connected to the network?" in err and "build/packages.log" in err and
          "E: Unable to locate package make" in err, "no network", err)

# No apt-get: one line with the usual command, in the names of that system.
for commands, user, system, wanted in (
    (["dnf"], 0, "Linux", "please run: dnf install cmake gcc glibc-devel make\n"),
    (["dnf", "sudo"], 1000, "Linux", "please run: sudo dnf install cmake gcc glibc-devel make\n"),
    (["apk"], 0, "Linux", "please run: apk add cmake gcc make musl-dev\n"),
    (["brew"], 501, "Darwin", "please run: xcode-select --install\nplease run: brew install cmake\n"),
    (["brew", "cc", "make"], 501, "Darwin", "please run: brew install cmake\n"),
    ([], 0, "Linux", "please install what these packages of Debian hold: gcc libc6-dev make cmake\n"),
):
    with Machine(*commands, user=user, system=system) as m:
        code, out, err = m.run()
        check(code == 1 and err.endswith(wanted), "no apt-get: " + " ".join(commands), err)

# clang and ninja do as well as cc and make; warnings are no errors.
with Machine("ninja", "cmake") as m:
    os.rename(os.path.join(m.here, "all/cc"), os.path.join(m.here, "bin/clang"))
    code, out, err = m.run()
    check(code == 0 and "cmake --preset release -G Ninja -DGGL_TESTS=OFF -DGGL_WERROR=OFF" in m.calls(), "clang and ninja", err + m.calls())

# An old cmake, and a CC that does not work.
with Machine("cc", "make") as m:
    m.write("bin/cmake", "#!/bin/sh\necho cmake version 3.18.4\n")
    code, out, err = m.run()
    check(code == 1 and "this machine has cmake 3.18.4, and 3.22 or later is needed" in err, "an old cmake", err)

# llm-transcribe is built as llm-cli is.
with Machine("cc", "make", "cmake") as m:
    code, out, err = m.run("transcribe", "a.wav")
    check(code == 0 and out == "llm-transcribe: a.wav, in elsewhere\n" and "building llm-transcribe" in err and "needed" not in err, "transcribe", out + err)

# The server needs its library, also after a build without it, and runs on Linux only.
with Machine("apt-get", "cc", "make", "cmake") as m:
    code, out, err = m.run()
    check(code == 0 and "needed:" not in err, "nothing is missing", err)
    code, out, err = m.run("server", "--port", "1")
    check(code == 0 and "needed: libmicrohttpd-dev (speaks HTTP)" in err and out == "llm-server: --port 1, in elsewhere\n",
          "the server", out + err)
    check("wanted: node-markdown-it (shows Markdown on the page of llm-server)\n" in err and
          "install -y --no-install-recommends node-markdown-it node-highlight.js libjs-katex" in m.calls(), "its page", err + m.calls())
    code, out, err = m.run("--yes", "server")
    check((code, out, err) == (0, "llm-server: , in elsewhere\n", ""), "the server again", out + err)
with Machine("cc", "make", "cmake", system="Darwin") as m:
    code, out, err = m.run("server")
    check(code == 1 and "llm-server runs on Linux only" in err, "the server elsewhere", err)

# A clone in which nothing can be written runs what is built, or says why nothing is. (A file stands for a folder of another
# user, which root could write to.)
with Machine("cc", "make", "cmake") as m:
    m.write("the clone/build")
    code, out, err = m.run()
    check(code == 1 and "build cannot be written, so nothing can be built here" in err, "a read-only clone", err)

# A build of a clone that was moved is made again.
with Machine("cc", "make", "cmake") as m:
    m.run()
    moved = os.path.join(m.here, "moved")
    os.rename(m.clone, moved)
    m.clone = moved
    code, out, err = m.run()
    check(code == 0 and "building llm-cli (some minutes): 0 %" in err, "a moved clone", err)

# On another processor than that of the build, all kernels are built; on the same one, nothing is.
FLAGS = {"amx_int8", "avx512_bf16", "avx512bw", "avx512_vnni", "avx_vnni"}
with Machine("cc", "make", "cmake") as m:
    with open("/proc/cpuinfo") as f:
        has = next((line.split() for line in f if line.startswith("flags")), [])
    m.write("processor", " ".join(sorted(FLAGS & set(has))))
    m.run()
    check("-DGGL_CPU_NATIVE=ON -DGGL_QUICK=ON" in m.calls(), "kernels of this processor", m.calls())
    code, out, err = m.run()
    check((code, err) == (0, "") and m.calls().count("--preset") == 1, "the same processor", err + m.calls())
    cache = os.path.join(m.clone, "build/release/CMakeCache.txt")
    with open(cache) as f:
        text = f.read()
    with open(cache, "w") as f:
        f.write(text.replace("GGL_CPU_BUILT_FOR:INTERNAL=", "GGL_CPU_BUILT_FOR:INTERNAL=another "))
    code, out, err = m.run()
    check(code == 0 and m.calls().count("--preset") == 2 and "-DGGL_CPU_NATIVE=OFF" in m.calls(), "another processor", err + m.calls())
    code, out, err = m.run()
    check(code == 0 and m.calls().count("--preset") == 2, "another processor, again", err + m.calls())

sys.exit(finish())
