"""Programs as ranks of a job of mpirun on this machine: what happens when a rank ends, and what is said of wrong files, little memory,
a full disk and a missing plug-in; and llm-server with many clients.

    ranks.py FOLDER-OF-TOOLS SOURCE MPIRUN PLUG-IN CASE

Exit code 77: skipped. Ranks are killed at random moments, which the day decides (GGL_TEST_SEED); all 20 with GGL_TEST_LONG."""
import json, os, random, shutil, signal, subprocess, sys, time, uuid

BIN, SOURCE, MPIRUN, PLUGIN, CASE = sys.argv[1:6]
sys.path[:0] = [os.path.join(SOURCE, "tests", folder) for folder in ("e2e", "server")]
from checks import check, finish, path, put  # noqa: E402
from running import Server  # noqa: E402

SEED = int(os.environ.get("GGL_TEST_SEED", 0)) or int(time.time()) // 86400
MARK = f"GGL_TEST_MARK={uuid.uuid4()}"
os.environ.pop("GGL_RANK_PATIENCE", None)  # what the kills need is the default
ENV = dict(os.environ, GGL_MPI=PLUGIN, GGL_TEST_MARK=MARK.partition("=")[2], GGL_RANK_CACHE="off")
MODEL = os.path.join(SOURCE, "models/builtin/stories.gguf")
RECOVERY = ["--mca", "orte_enable_recovery", "1"]
LIMIT = 120  # seconds, after which a job hangs
IS_OPEN_MPI = b"Open MPI" in subprocess.run([MPIRUN, "--version"], capture_output=True, check=False).stdout
TOKENS = ["-p", "Once upon a time there was a little girl", "--temp", "0", "--ignore-eos", "-no-cnv", "-t", "1"]


def tool(name):
    return os.path.join(BIN, name)


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def processes():
    """The processes of this test's jobs: pid -> (rank, or None for mpirun and its helpers; command)."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                command = f.read().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if MARK.encode() not in env or int(pid) == os.getpid() or state == "Z":
            continue
        rank = [x.partition(b"=")[2] for x in env if x.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK="))]
        found[int(pid)] = (int(rank[0]) if rank else None, command)
    return found


def none_left(what):
    """The daemon of MPI may end a moment after mpirun."""
    for _ in range(100):
        left = processes()
        if not left:
            return
        time.sleep(0.1)
    check(False, f"{what}: processes are left", left)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def run(*args, n=3, code=0, has="", before=(), env=None, what=None, mpi=()):
    """Runs `mpirun -n N ARGS`, or with n=None `mpirun ARGS`; returns standard output and standard error."""
    command = [*before, MPIRUN, *mpi, *(["-n", str(n)] if n else []), *args]
    what = what or " ".join(command[-8:])
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(ENV, **(env or {})), text=True,
                         errors="replace")
    try:
        out, err = p.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        check(False, f"{what}: it hangs")
        p.kill()
        out, err = p.communicate()
    if code is not None:
        check(p.returncode == code, f"{what}: exit code {p.returncode}, not {code}", err)
    check(has in err, f"{what}: no '{has}'", err)
    none_left(what)
    return out, err


def cli(n=12, *more):
    return [tool("llm-cli"), "-m", MODEL, *TOKENS, "-n", str(n), *more]


def alone(*args):
    return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=ENV).stdout


# --- a rank ends ----------------------------------------------------------------------------------------------------------------

def kills():
    """A rank ends, or is stopped, at any moment: the job ends with an error that names it, and nothing stays."""
    rng = random.Random(SEED)
    signals = [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGKILL]
    trials = [(signals[k % len(signals)], 1 + k // 4 % 2, k // 2 % 2 == 1, rng.random() * (0.4 if k % 3 == 0 else 2.5)) for k in range(20)]
    # rank 0, without recovery: then mpirun alone sees it
    trials[7], trials[12] = (signal.SIGKILL, 0, False, 0.8), (signal.SIGSEGV, 0, False, 0.2)
    if "GGL_TEST_LONG" not in os.environ:  # without those that may come before a rank has joined, where mpirun does not end the job by itself:
        # that is seen only half a minute later, and on a loaded machine minutes later
        trials = rng.sample([t for t in trials if t[3] > 1 or not t[2] and t[0] != signal.SIGSTOP], 3)
    for number, rank, recovers, after in trials:
        what = f"{signal.Signals(number).name} to rank {rank} after {after:.2f} s{', with recovery' if recovers else ''}"
        print(what, flush=True)
        # with recovery, mpirun's own exit code is 0
        say = ["sh", "-c", '"$@"; echo "exit code $?" >&2', "sh"] if recovers and IS_OPEN_MPI else []
        p = subprocess.Popen([MPIRUN, *(RECOVERY if say else []), "-n", "3", *say, *cli(10**6, "-c", "200", "--context-shift")],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENV, text=True, errors="replace")
        victim = None
        while victim is None and p.poll() is None:
            victim = next((pid for pid, (r, command) in processes().items() if r == rank and command.startswith(tool("llm-cli"))), None)
        time.sleep(after)
        if victim is None or p.poll() is not None:
            check(False, f"{what}: the job had ended", p.communicate()[0])
            continue
        os.kill(victim, number)
        try:
            err = p.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            check(False, f"{what}: it hangs", processes())
            p.kill()
            err = p.communicate()[0]
        if not IS_OPEN_MPI:  # MPICH's mpirun names the process alone, and may end with 0
            none_left(what)
            continue
        check("exit code 1" in err if say else p.returncode != 0, f"{what}: exit code 0", err)
        check(f"rank {rank}" in err or f",1],{rank}]" in err or str(victim) in err or "could not be joined" in err, f"{what}: nothing names the rank", err)
        none_left(what)


def server_lost():
    """A server goes on when a rank has ended, if mpirun lets it: answers end with an error that names the rank."""
    if not IS_OPEN_MPI:
        skip("only Open MPI lets a job go on without a rank (--mca orte_enable_recovery 1)")
    split = ["--split", "cpu=1,rank1=2,rank2=2"]
    with Server([MPIRUN, *RECOVERY, "-n", "3", tool("llm-server"), "-m", MODEL, "-c", "4096", "-np", "4", "-t", "1", *split], env=ENV) as s:
        body = {"prompt": "Once upon a time", "max_tokens": 4000, "ignore_eos": True, "stream": True}
        check(s.get("/health")[0] == 200, "health before")
        check(s.post("/v1/completions", dict(body, max_tokens=5))[0] == 200, "an answer before")
        victim = next(pid for pid, (r, command) in processes().items() if r == 2 and "llm-server" in command)
        os.kill(victim, signal.SIGSTOP)
        status, _, answer = s.post("/v1/completions", body)
        words = f"rank 2 (process {victim} on ".encode()
        check(words in answer and b"start the job again" in answer, "a stream that runs names the rank", status, answer)
        status, _, answer = s.post("/v1/completions", dict(body, stream=False))
        check(status == 503 and words in answer, "a new answer is refused with 503", status, answer)
        status, _, answer = s.get("/health")
        check(status == 503 and words in answer and json.loads(answer)["error"]["code"] == 503, "health is 503, and says why", status, answer)
        check(s.get("/ready")[::2] == (503, b'{"status": "lost"}'), "it is not ready", s.get("/ready"))
        check(s.get("/metrics")[0] == 200 and s.get("/slots")[0] == 200, "metrics and slots stay")
        code = s.stop(LIMIT)
        check(code not in (0, None), f"the server's exit code is {code}", "".join(s.lines))
    none_left("llm-server")


# --- what is wrong --------------------------------------------------------------------------------------------------------------

# the only weight of the model, with tied embeddings, that is so large that a rank is asked for it; by default it is on rank 0
LARGE = ["--place", "token_embd.weight=rank1"]


def in_namespace():
    """The words that run a command where mounts are its own; None: not possible here."""
    try:
        ok = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0
    except OSError:
        ok = False
    return ["unshare", "-m", "sh", "-c"] if ok else None


def wrong_file():
    """Another file at the same path on another rank."""
    unshare = in_namespace()
    if not unshare:
        skip("this user may not mount, so no rank can have another file at the same path")
    mine = shutil.copyfile(MODEL, path("model.gguf"))
    with open(MODEL, "rb") as f:
        data = bytearray(f.read())
    command = [tool("llm-cli"), "-m", mine, *TOKENS, "-n", "5", "--split", "cpu=2,rank1=3", *LARGE]
    want = alone(*command[:-4])
    for name, change in (("longer", lambda: data.extend(bytes(64))), ("other bytes", lambda: data.__setitem__(slice(50000, None), bytes(len(data) - 50000)))):
        kept = bytes(data)
        change()
        other = put("other.gguf", bytes(data))
        data[:] = kept
        there = [*unshare, f'mount --bind {other} {mine} && exec "$@"', "sh", *command]
        err = run("-n", "1", *command, ":", "-n", "1", *there, n=None, code=1, what=name)[1]
        check(f"rank1: {mine} is another file on " in err, f"{name}: the message names the rank and the file", err)
    # without the file, rank 0 sends the weights
    there = [*unshare, f'mount -t tmpfs none {os.path.dirname(mine)} && exec "$@"', "sh", *command]
    out = run("-n", "1", *command, ":", "-n", "1", *there, n=None, what="no file")[0]
    check(out == want, "no file: another text", out, want)


def memory():
    """Too little memory on one rank."""
    command = cli(5, "-c", "16000000", "--split", "cpu=1,rank1=4", "--no-mmap")
    there = ["sh", "-c", 'ulimit -v 3000000 && exec "$@"', "sh", *command]
    err = run("-n", "1", *command, ":", "-n", "1", *there, n=None, code=1, what="little memory")[1]
    check("do not fit into the memory of rank1" in err, "little memory: the message names the rank", err)


def cache():
    """Weights that are kept: a full disk is a note, and a damaged file is sent again."""
    want = alone(*cli())
    kept = path("kept")
    sent = {"GGL_RANK_FILES": "off", "GGL_RANK_CACHE": kept}
    for _ in range(2):
        out = run(*cli(12, "--split", "cpu=1,rank1=4", *LARGE), n=2, env=sent)[0]
        check(out == want, "weights that were sent: another text", out, want)
    files = [os.path.join(kept, f) for f in os.listdir(kept)]
    check(files, "no weights are kept")
    for f in files:
        with open(f, "r+b") as damaged:
            damaged.seek(100)
            damaged.write(b"\0\1\2\3\4")
    before = {f: open(f, "rb").read(110) for f in files}
    check(run(*cli(12, "--split", "cpu=1,rank1=4", *LARGE), n=2, env=sent)[0] == want, "damaged weights: another text")
    check(all(open(f, "rb").read(110) != before[f] for f in files), "a damaged weight stays")
    unshare = in_namespace()
    if not unshare:
        print("no full disk, because this user may not mount")
        return
    full = path("full")
    os.mkdir(full)
    out, err = run(*cli(12, "--split", "cpu=1,rank1=4", *LARGE), n=2, env=dict(sent, GGL_RANK_CACHE=full), what="a full disk",
                   before=[*unshare, f'mount -t tmpfs -o size=100k none {full} && exec "$@"', "sh"])
    check(out == want, "a full disk: another text", out, want)
    check("weights are not kept for the next start: " in err and full in err, "a full disk is a note", err)
    check(err.count("weights are not kept") == 1, "the note comes once", err)


def plugin():
    """Without the plug-in, and without ranks."""
    run(*cli(), code=1, has="GGL_RANKS=off lets each run by itself", env={"GGL_MPI": "/none/libggl-mpi.so"})
    os.mkdir(path("bin"))
    copy = shutil.copy(tool("llm-cli"), path("bin/llm-cli"))
    run(copy, *cli()[1:], code=1, has="this build was made without MPI", env={"GGL_MPI": ""})
    want = alone(*cli())
    out = run(*cli(), n=2, env={"GGL_RANKS": "off"})[0]
    check(sorted(out) == sorted(2 * want), "GGL_RANKS=off: each runs by itself", out, want)
    if IS_OPEN_MPI:  # which gives each process a terminal
        out = run(*cli(), n=1, env={"TERM": "xterm"})[0]
        check(out == want, "a job of one process: another text, or colours", out, want)
    run(*cli(12, "--device", "rank7"), code=None, has="the job has ranks 0 to 2")
    run(*cli(), n=2, code=None, has="GGL_RANK_PATIENCE: 'x' is no number of seconds", env={"GGL_RANK_PATIENCE": "x"})


# --- programs that work -----------------------------------------------------------------------------------------------------------

def server():
    """Sixteen clients at once, each of whose answers is that of one process, with the same digits."""
    # it is stopped as a service manager does: each process of it gets SIGTERM, but for mpirun, which would kill them a second later
    ranks = path("ranks")
    wrapper = put("llm-server", f"""#!/bin/sh
trap 'kill -TERM $(cat {ranks}.*); rm {ranks}.*' TERM
{MPIRUN} -n 3 sh -c 'echo $$ >{ranks}.$$; exec {tool("llm-server")} "$@"' sh "$@" &
wait
wait $!
""".encode())
    os.chmod(wrapper, 0o755)
    p = subprocess.run([sys.executable, os.path.join(SOURCE, "tests/server/load.py"), wrapper, tool("llm-cli"), MODEL, "--clients", "16", "--seconds", "3",
                        "--cases", "12", "--seed", str(SEED)], env=dict(ENV, GGL_RANK_PATIENCE="60"), capture_output=True, text=True, check=False)
    print(p.stdout[-2000:], p.stderr[-2000:])
    check(p.returncode == 0, "load.py", p.stdout, p.stderr)
    none_left("llm-server")


def texts():
    """Tools on ranks print what they print alone; a prompt cache is used again."""
    env = {"GGL_RANK_PATIENCE": "60"}
    saved = path("prompt")
    text = os.path.join(SOURCE, "tests/data/measured.txt")
    for args in (cli(), cli(20, "--prompt-cache", saved), cli(20, "--prompt-cache", saved),
                 [tool("llm-perplexity"), "-m", MODEL, "-f", text, "-c", "128", "--chunks", "4", "-t", "1", "-o", "json"]):
        mine = [a for a in args if a not in ("--prompt-cache", saved)]
        want, out = alone(*mine), run(*args, env=env)[0]
        if "json" in args:
            want, out = ({k: v for k, v in json.loads(x).items() if "seconds" not in k and "per_second" not in k} for x in (want, out))
        check(out == want, f"{args}: another text", out, want)
    plan = run(*cli(12, "--split", "rows", "--plan"), env=env)[0]
    check("wanted tokens), " in plan and max(map(len, plan.splitlines())) <= 80, "--plan is wider than 80 columns", plan)
    devices = run(tool("llm-cli"), "--list-devices", env=env)[0]
    check("rank1" in devices and "rank2" in devices, "--list-devices", devices)


def spans_of(events, tid):
    """The spans of a row, in ns (what is written has three digits after the point): (begin, end, event), in the order of their begins."""
    return sorted(((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e) for e in events if e["ph"] == "X" and e["tid"] == tid),
                  key=lambda s: (s[0], -s[1]))


def nests(spans):
    """The span that begins within another one and ends behind it; None: there is none. Steps are within runs."""
    outer = []
    for begin, end, e in spans:
        while outer and outer[-1][1] <= begin:
            outer.pop()
        if outer and end > outer[-1][1]:
            return e
        if e["cat"] in ("node", "prepares") and (not outer or outer[-1][2]["name"] != "run"):
            return e
        outer.append((begin, end, e))
    return None


def check_rank(events, rows, rank):
    """The row of what a rank did, beside that of what rank 0 asked it for."""
    here, there = ([tid for tid, name in rows.items() if name.startswith(f"rank{rank}{mark}")] for mark in (": ", " on "))
    if len(here) != 1 or len(there) != 1:
        return check(False, f"rank {rank}: its rows", rows)
    asked, done = spans_of(events, here[0]), spans_of(events, there[0])
    bad = nests(done)
    check(bad is None, f"rank {rank}: a span that is not within another one", bad)
    check({"idle", "receive", "run"} <= {e["name"] for _, _, e in done}, f"rank {rank}: what it did", {e["name"] for _, _, e in done})
    # the truth is 0 on one machine, and the trace says how exact it is; after two samples, the line through them goes on as far again
    exact = 3 * max(e["args"]["exact_ns"] for _, _, e in done if e["name"] == "clock")
    runs, wanted = ([s for s in spans if s[2]["name"] == "run"] for spans in (done, asked))
    if [e["args"] for _, _, e in runs] != [e["args"] for _, _, e in wanted]:
        return check(False, f"rank {rank}: other runs than it was asked for", len(runs), len(wanted))
    ends = [s for s in asked if s[2]["name"] == "wait"]
    for (begin, end, e), (since, _, _) in zip(runs, wanted):
        while ends and ends[0][0] < since:
            ends.pop(0)
        check(bool(ends) and since - exact <= begin and end <= ends[0][1] + exact,
              f"rank {rank}: a run that is not within the call that waited for it", begin, end, since, ends[:1], exact, e)
    return None


def trace():
    """The steps of all ranks are in one timeline, by one clock, and a profile counts them."""
    env = {"GGL_RANK_PATIENCE": "60"}
    files = [path("alone.json"), path("ranks.json")]
    split = ["--split", "cpu=1,rank1=2,rank2=2"]
    want = alone(*cli(80, "--trace", files[0]))
    out = run(*cli(80, *split, "--trace", files[1]), env=env)[0]
    check(out == want, "--trace: another text", out, want)
    events = [json.load(open(f)) for f in files]
    n = [sum(e["ph"] == "X" and e["cat"] == "node" for e in some) for some in events]
    check(n[0] == n[1] > 1000, "as many steps as in one process", n)
    rows = {e["tid"]: e["args"]["name"] for e in events[1] if e["ph"] == "M"}
    for rank in (1, 2):
        check_rank(events[1], rows, rank)

    bench = [tool("llm-bench"), "-m", MODEL, "-p", "0", "-n", "0", "-pg", "32,8", "-ub", "8", "-r", "1", "-t", "1", "--no-limits", "--profile"]
    want = json.loads(alone(*bench, "-o", "json"))[0]
    got = json.loads(run(*bench, *split, "-o", "json", env=env)[0])[0]
    for part in ("profile_prompt", "profile_gen"):
        calls = [sum(s["calls"] for s in r[part]["steps"] if s["op"] == "linear") for r in (want, got)]
        check(calls[0] == calls[1] > 0, f"{part}: products of one process, and of ranks", calls)
        busy = {d["device"]: d["busy"] for d in got[part]["devices"]}
        check(set(busy) == {"cpu", "rank1", "rank2"} == {s["device"] for s in got[part]["steps"]}, f"{part}: the devices", busy)
        check(all(0 < share <= 1.001 for share in busy.values()), f"{part}: shares of the time", busy)
        sums = {d: sum(s["ns"] for s in got[part]["steps"] if s["device"] == d) for d in busy}
        check(all(abs(d["steps_ns"] - sums[d["device"]]) < 100 for d in got[part]["devices"]), f"{part}: times of devices", sums, got[part]["devices"])
    table = run(*bench, *split, env=env)[0]
    check("\nbusy: " in table and "| device |" in table and "| rank2 " in table, "the table names devices", table)


def copies():
    """Every rank has the whole model: the bytes of one process, a rank that ends, and one that has too little memory."""
    env = {"GGL_RANK_PATIENCE": "60"}
    text = os.path.join(SOURCE, "tests/data/measured.txt")
    with open(text, "rb") as f:
        words = f.read().split()
    lines = put("lines.txt", b"".join(b" ".join(words[k % 900:k % 900 + 1 + k % 40]) + b"\n" for k in range(1500)))
    rest = ["-m", MODEL, "-t", "1"]
    split = ["--split", "copies"]
    for args, out in (([tool("llm-embed"), *rest, "-f", lines, "-ub", "64"], "-o"),
                      ([tool("llm-perplexity"), *rest, "-f", text, "-c", "64", "--chunks", "12"], "--kl-divergence-base"),
                      ([tool("llm-imatrix"), *rest, "-f", text, "-c", "64", "--chunks", "12"], "-o")):
        mine, theirs = path("alone.npy"), path("ranks.npy")
        want = alone(*args, out, mine)
        got, err = run(*args, out, theirs, *split, env=env)
        with open(mine, "rb") as a, open(theirs, "rb") as b:
            check(a.read() == b.read(), f"{args}: another file")
        check(got == want, f"{args}: another text", got, want)
        check("copies on cpu,rank1,rank2" in err, f"{args}: the copies are not told", err)
    check("copy 3 of 3, on rank2\n" in run(tool("llm-embed"), *rest, "--plan", *split, env=env)[0], "--plan")

    command = [tool("llm-embed"), *rest, "-c", "2000000", "--no-mmap", "-f", lines, *split]
    there = ["sh", "-c", 'ulimit -v 3000000 && exec "$@"', "sh", *command]
    err = run("-n", "1", *command, ":", "-n", "1", *there, n=None, code=1, what="little memory")[1]
    check("the copy on rank1: " in err and "memory of rank1" in err, "little memory: the message names the rank", err)

    many = put("many.txt", open(lines, "rb").read() * 400)
    say = ["sh", "-c", '"$@"; echo "exit code $?" >&2', "sh"] if IS_OPEN_MPI else []
    with subprocess.Popen([MPIRUN, *(RECOVERY if say else []), "-n", "3", *say, tool("llm-embed"), *rest, "-f", many, *split], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, text=True, errors="replace") as p:
        for _ in range(20):
            p.stdout.readline()
        victim = next(pid for pid, (r, c) in processes().items() if r == 2 and c.startswith(tool("llm-embed")))
        os.kill(victim, signal.SIGKILL)
        try:
            err = p.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            check(False, "a lost rank: it hangs", processes())
            p.kill()
            err = p.communicate()[1]
    if IS_OPEN_MPI:
        check(f"rank 2 (process {victim} on " in err and "exit code 1" in err, "a lost rank: the message names it", err)
    none_left("a lost rank")


def go_on(args):
    """Interrupts a training of two ranks, whose result is "r", and goes on with four."""
    with subprocess.Popen([MPIRUN, "-n", "2", *args, "--save-every", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV) as p:
        for _ in range(600):
            if os.path.exists(path("r.train")):
                break
            time.sleep(0.05)
        for pid, (rank, command_line) in processes().items():
            if rank == 0 and command_line.startswith(tool("llm-train")):
                os.kill(pid, signal.SIGINT)
        p.communicate(timeout=LIMIT)
    none_left("an interrupted training")
    check(os.path.exists(path("r.train")) or os.path.exists(path("r")), "an interrupted training leaves its state, unless it was done")
    run(*args, "--resume", n=4)


def training():
    """llm-train as ranks: the same bits for any number of them, also if it goes on with another number; errors; a rank that is lost."""
    chats = put("chats.jsonl", "".join(json.dumps({"messages": [{"role": "user", "content": f"Who is number {i}?"},
                                                                {"role": "assistant", "content": f"A dog with {i % 7} hats."}]}) + "\n" for i in range(40)).encode())
    pairs = put("pairs.jsonl", "".join(json.dumps({"prompt": f"Once {i}", "chosen": " there was a dog.", "rejected": " 7 7"}) + "\n" for i in range(24)).encode())
    command = lambda out, data=chats, steps="5": [tool("llm-train"), "-m", "builtin:chat", "--lora", data, "-o", path(out), "-lr", "2e-3", "--steps", steps,
                                                  "--parts", "4", "-t", "1", "-q"]
    read = lambda name: open(path(name), "rb").read()
    for data, name, counts in (chats, "c", (1, 3, 4)), (pairs, "p", (1, 2)):
        for n in counts:
            run(*command(f"{name}{n}", data), n=n, has="")
            check(read(f"{name}{n}") == read(f"{name}1"), f"{n} ranks write other bytes than one", data)
    check(not os.path.exists(path("c4.train")), "a state is left")

    for bits in "32", "8":
        go_on([*command("r", steps="60"), "--optimizer-bits", bits])
        run(*command("whole", steps="60"), "--optimizer-bits", bits, n=1)
        check(read("r") == read("whole"), "gone on with by other ranks, it ends with other bytes", bits)

    # errors are those of rank 0, and nobody waits
    run(*command("e", data=path("none.jsonl")), n=3, code=None, has="none.jsonl")
    run(tool("llm-train"), "-m", "builtin:chat", "--lora", chats, "-o", path("e"), "--parts", "2", n=3, code=None, has="a step of 2 parts for 3 processes")
    none_left("wrong files")

    # a rank is lost
    say = ["sh", "-c", '"$@"; echo "exit code $?" >&2', "sh"] if IS_OPEN_MPI else []
    with subprocess.Popen([MPIRUN, *(RECOVERY if say else []), "-n", "3", *say, *command("l", steps="100000"), "--save-every", "1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, text=True, errors="replace") as p:
        for _ in range(600):
            if os.path.exists(path("l.train")):
                break
            time.sleep(0.05)
        victim = next(pid for pid, (r, c) in processes().items() if r == 2 and c.startswith(tool("llm-train")))
        os.kill(victim, signal.SIGKILL)
        try:
            err = p.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            check(False, "a lost rank: it hangs", processes())
            p.kill()
            err = p.communicate()[1]
    if IS_OPEN_MPI:
        check(f"rank 2 (process {victim} on " in err and "exit code 1" in err, "a lost rank: the message names it", err)
    none_left("a lost rank")
    check(os.path.exists(path("l.train")), "the last state stays when a rank is lost")


if not MPIRUN or not PLUGIN:
    skip("no mpirun, or this build has no plug-in for MPI (Debian: libopenmpi-dev, openmpi-bin)")
print(f"GGL_TEST_SEED={SEED}")
{f.__name__: f for f in (kills, server_lost, wrong_file, memory, cache, plugin, server, texts, trace, copies, training)}[CASE]()
sys.exit(finish())
