#!/usr/bin/env python3
"""One place calls the operating system: the sources ggml-lite/base/os_*. No other object file of the product needs a symbol that a
header for all systems (ggl/internal) replaces. Calls that have no such header yet are not in the table below; it may only grow.

    os_calls.py ROOT BUILD   prints each file that does, and the header to use; exit code 0: there is none
    os_calls.py --test       shows that faults are found"""
import os
import re
import subprocess
import sys

FOLDERS = ["ggml-lite", "backends", "models", "library", "train", "tools", "python"]  # of the product
# library/glibc only passes on calls of these, to older versions of them.
ALLOWED = re.compile(r"ggml-lite/base/os_\w+\.c$|library/glibc/")
# A header in ggl/internal: the symbols that it replaces.
INSTEAD = {
    "os_thread.h": """pthread_create pthread_join pthread_detach pthread_exit pthread_cancel pthread_self pthread_equal pthread_once
        pthread_attr_init pthread_attr_destroy pthread_attr_setstacksize
        pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_timedlock pthread_mutex_unlock
        pthread_mutexattr_init pthread_mutexattr_destroy pthread_mutexattr_settype
        pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal
        pthread_cond_broadcast pthread_condattr_init pthread_condattr_destroy pthread_condattr_setclock
        pthread_rwlock_init pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock
        pthread_spin_init pthread_spin_destroy pthread_spin_lock pthread_spin_unlock pthread_barrier_init pthread_barrier_wait
        pthread_key_create pthread_getspecific pthread_setspecific sem_init sem_wait sem_post sched_yield
        thrd_create thrd_join thrd_yield mtx_init mtx_lock mtx_unlock cnd_init cnd_wait cnd_signal""",
    "os_clock.h": """clock_gettime clock_getres clock_nanosleep nanosleep usleep sleep gettimeofday ftime timespec_get
        gmtime localtime gmtime_r localtime_r timegm timelocal""",
    "text.h": "memmem memrchr strcasecmp strncasecmp strcasestr strdup strndup strnlen strtok_r strsep stpcpy stpncpy strchrnul mempcpy",
    "os_stream.h": "open_memstream open_wmemstream fmemopen fopencookie getline getdelim",
    "os_fs.h": """stat fstat lstat fstatat access faccessat opendir fdopendir readdir closedir scandir alphasort dirfd realpath mkdir mkdirat
        rmdir unlinkat openat utimensat utime flock fsync fdatasync ftruncate truncate fchmod fchown pread lseek
        fdopen fileno fseeko ftello getcwd statvfs readlink creat mkstemp getc_unlocked putc_unlocked""",
    "os_terminal.h": "isatty ioctl tcgetattr tcsetattr tcgetpgrp getpgrp",
    "os_process.h": """getpid sysconf getrusage getentropy getrandom getrlimit setrlimit pipe pipe2 mallinfo mallinfo2 pthread_sigmask sigaction sigfillset pause sched_setscheduler setpriority environ _exit
        program_invocation_short_name""",
    "os_cpus.h": "sched_getaffinity sched_setaffinity mbind",
    "os_socket.h": "socket socketpair bind listen accept accept4 connect shutdown send sendto sendmsg recv recvfrom recvmsg setsockopt",
    "os_watch.h": "epoll_create1 epoll_ctl epoll_wait eventfd kqueue kevent poll ppoll select pselect",
    "os_library.h": "dlopen dlsym dlclose dlerror dladdr",
    "os_child.h": """posix_spawn posix_spawnp posix_spawn_file_actions_init posix_spawn_file_actions_adddup2 posix_spawn_file_actions_destroy fork vfork
        execv execve execvp waitpid kill popen pclose sigpending sigwait""",
    "alloc.h": "aligned_alloc posix_memalign memalign valloc",
}


def table():
    return {name: header for header, names in INSTEAD.items() for name in names.split()}


def source_of(path, build):
    """The source of an object file, from the folder of the repository; None: it is no such file."""
    folder, found, inside = os.path.relpath(path, build).partition("/CMakeFiles/")
    inside = re.sub(r"(?<![^/])__(?=/)", "..", inside.partition(".dir/")[2])
    if not found or not inside.endswith((".c.o", ".c.obj")):
        return None
    return os.path.normpath(os.path.join(folder, inside.rpartition(".")[0]))


def read_objects(root, build):
    """{object file: its source}, for sources that still are there."""
    found = {}
    for folder in FOLDERS:
        for place, _, names in os.walk(os.path.join(build, folder)):
            for name in names:
                path = os.path.join(place, name)
                source = source_of(path, build)
                if source and os.path.exists(os.path.join(root, source)):
                    found[path] = source
    return found


def faults(lines, source):
    """lines: what `nm -A -u` prints; source: {object file: its source}."""
    instead, wrong = table(), set()
    for line in lines:
        path, rest = line.rsplit(":", 1)
        name = rest.split()[-1].split("@")[0]
        name = name if name in instead else name.removeprefix("_")  # macOS puts one before each
        if name in instead and not ALLOWED.match(source[path]):
            wrong.add(f"{source[path]} calls {name}: use ggl/internal/{instead[name]} instead")
    return sorted(wrong)


def self_test():
    assert source_of("/b/ggml-lite/CMakeFiles/ggl-core.dir/base/os_x_posix.c.o", "/b") == "ggml-lite/base/os_x_posix.c"
    assert source_of("/b/tools/llm-x/CMakeFiles/x.dir/__/common/y.c.o", "/b") == "tools/common/y.c"
    assert source_of("/b/tools/CMakeFiles/x.dir/y.c.d", "/b") is None and source_of("/b/tools/y.c.o", "/b") is None
    source = {"a.o": "ggml-lite/base/os_x_posix.c", "b.o": "tools/common/y.c", "c:d.o": "models/common/os_z.c"}
    call = "                 U clock_gettime@GLIBC_2.17"
    assert not faults(["a.o:" + call, "b.o:                 U fopen"], source)
    assert faults(["a.o:" + call, "b.o:" + call, "b.o:  U _memmem", "c:d.o:" + call], source) == [
        "models/common/os_z.c calls clock_gettime: use ggl/internal/os_clock.h instead",
        "tools/common/y.c calls clock_gettime: use ggl/internal/os_clock.h instead",
        "tools/common/y.c calls memmem: use ggl/internal/text.h instead"]
    names = " ".join(INSTEAD.values()).split()
    assert len(names) == len(set(names))


def main():
    if sys.argv[1:] == ["--test"]:
        self_test()
        return 0
    root, build = sys.argv[1:]
    source = read_objects(root, build)
    if len(source) < 300:
        print(f"only {len(source)} object files are in {build}")
        return 1
    lines = subprocess.run(["nm", "-A", "-u", *source], check=True, capture_output=True, text=True).stdout.splitlines()
    wrong = faults([line for line in lines if line.strip()], source)
    print("\n".join(wrong) or f"{len(source)} object files; of the system's functions in the table, only ggml-lite/base/os_* calls any")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
