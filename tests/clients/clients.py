#!/usr/bin/env python3
"""Lets the clients that people use ask llm-server, each in the version that stands here, and prints a table: what they could do.

    clients.py LLM-SERVER FOLDER [CLIENT..] [--write]

FOLDER is where they are installed, each for itself, from PyPI and npm; what is there already is kept. Each has three tasks: a text in pieces, a tool that the
model calls and whose result it answers, and a second turn. Agents have a folder of files, a home and a request; their tool is to leave a file behind.
The model is a parrot (parrot.py): it says the same texts to all, so that only the client and the server are tried. A client that cannot be installed
is named, not passed. --write puts the table into docs/clients.md. Exit code 1: a task went wrong; 77: no client could be installed."""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "server")]
import parrot  # noqa: E402
import running  # noqa: E402

TASKS = ("stream", "tool", "second turn")
PLAIN, AFTER, AGAIN = "Good morning, what is this about?", "It is done; the folder has a new file in it.", "No, there was nothing else to be told."
PATIENCE = 240  # seconds for a client

# name, kind, what is installed, function of sdk.py or sdk.mjs
LIBRARIES = [
    ("openai (Python)", "pypi", ["openai==3.57.0"], "openai"),
    ("anthropic (Python)", "pypi", ["anthropic==2.14.0"], "anthropic"),
    ("ollama (Python)", "pypi", ["ollama==0.6.3"], "ollama"),
    ("litellm", "pypi", ["litellm==1.110.2"], "litellm"),
    ("langchain-openai", "pypi", ["langchain-openai==1.7.4"], "langchain"),
    ("pydantic-ai", "pypi", ["pydantic-ai-slim[openai]==2.62.0"], "pydantic_ai"),
    ("openai-agents", "pypi", ["openai-agents==0.24.0"], "openai_agents"),
    ("instructor", "pypi", ["instructor==1.17.0"], "instructor"),
    ("openai (npm)", "npm", ["openai@6.49.0"], "openai"),
    ("@anthropic-ai/sdk", "npm", ["@anthropic-ai/sdk@1.14.0"], "anthropic"),
    ("ai", "npm", ["ai@6.0.326", "@ai-sdk/openai@3.0.141"], "ai"),
    ("ollama (npm)", "npm", ["ollama@0.6.4"], "ollama"),
]
HELD = "instructor" # which demands a call, or JSON of a schema
# name, what is installed, the tool that its model calls, and its arguments
SHELL = "echo called >> called.txt; ls"
AGENTS = [
    ("codex", ["@openai/codex@0.171.0"], "exec_command", {"cmd": SHELL}),
    ("claude-code", ["@anthropic-ai/claude-code@2.1.332"], "Bash", {"command": SHELL, "description": "List files"}),
    ("qwen-code", ["@qwen-code/qwen-code@0.24.4"], "run_shell_command", {"command": SHELL, "description": "List files", "is_background": False}),
    ("opencode", ["opencode-ai@1.18.33"], "bash", {"command": SHELL, "description": "List files"}),
]


# --- installation ------------------------------------------------------------------------------------


def run(command, seconds=PATIENCE, **more):
    """Returns (exit code, output); the whole group of processes ends with it."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         start_new_session=True, **more)
    try:
        out = p.communicate(timeout=seconds)[0]
        return p.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        return 124, p.communicate()[0] + f"\nended after {seconds} s"


def install(folder, kind, packages):
    """Returns why it could not be installed, or None."""
    done = folder / "installed.txt"
    if done.exists() and done.read_text() == "\n".join(packages):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "npm":
        if not shutil.which("npm"):
            return "npm is missing (Debian: npm)"
        (folder / "package.json").write_text('{"private": true}')
        code, out = run(["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], 600, cwd=folder)
    else:
        venv.create(folder / "venv", with_pip=True)
        code, out = run([str(folder / "venv/bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], 600)
    if code:
        return " ".join(out.split())[-300:] or f"exit code {code}"
    done.write_text("\n".join(packages))
    return None


# --- libraries ---------------------------------------------------------------------------------------


def try_library(folder, kind, function, server):
    command = [str(folder / "venv/bin/python"), str(HERE / "sdk.py")] if kind == "pypi" else ["node", str(folder / "sdk.mjs")]
    if kind == "npm":
        shutil.copyfile(HERE / "sdk.mjs", folder / "sdk.mjs") # which looks for packages beside itself
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    code, out = run([*command, function, server.url(""), PLAIN, AFTER, AGAIN], env=env, cwd=folder)
    return {t for t in TASKS if re.search(f"^{t}$", out, re.M)}, "" if code == 0 else out[-1500:]


# --- agents ------------------------------------------------------------------------------------------


def codex(home, url):
    config = f'model="m"\nmodel_provider="here"\n[model_providers.here]\nname="here"\nbase_url="{url}/v1"\nwire_api="responses"\n'
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(config)
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return {}, lambda bin, again: [bin + "/codex", "exec", *flags, *(["resume", "--last", "And what else?"] if again else ["List the files."])]


def claude(home, url):
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return env, lambda bin, again: [bin + "/claude", "-p", *(["-c", "And what else?"] if again else ["List the files."]), "--allowedTools", "Bash"]


def qwen(home, url):
    env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url + "/v1", "OPENAI_MODEL": "m", "QWEN_SANDBOX": "false"}
    (home / ".qwen").mkdir()
    (home / ".qwen/settings.json").write_text('{"security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true}, '
                                              '"privacy": {"usageStatisticsEnabled": false}}')
    return env, lambda bin, again: [bin + "/qwen", *(["--continue"] if again else []), "--yolo", "-p", "And what else?" if again else "List the files."]


def opencode(home, url):
    config = ('{"provider": {"here": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "%s/v1"}, "models": {"m": {}}}}, "model": "here/m", '
              '"permission": "allow", "autoupdate": false}' % url)
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(config)
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    return env, lambda bin, again: [bin + "/opencode", "run", *(["-c", "And what else?"] if again else ["List the files."])]


def try_agent(folder, start, server):
    """An agent streams; so the text that it shows is the first task, the file that its tool has written the second one."""
    with tempfile.TemporaryDirectory() as place:
        home, work = pathlib.Path(place) / "home", pathlib.Path(place) / "work"
        home.mkdir()
        work.mkdir()
        (work / "apple.txt").write_text("an apple\n")
        env, command = start(home, server.url(""))
        env |= {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "NO_COLOR": "1"}
        code, first = run(command(str(folder / "node_modules/.bin"), False), env=env, cwd=work)
        called = work / "called.txt"
        passed = {t for t, ok in (("stream", AFTER in first), ("tool", called.exists() and called.read_text() == "called\n")) if ok}
        if len(passed) < 2 or code:
            return passed, f"exit code {code}\n{first[-1500:]}"
        code, second = run(command(str(folder / "node_modules/.bin"), True), env=env, cwd=work)
        if AGAIN in second and code == 0:
            return set(TASKS), ""
        return passed, f"exit code {code}\n{second[-1500:]}"


# --- all of them -------------------------------------------------------------------------------------


def serve(binary, folder, name, tool, arguments, begin="Let me look.\n", plain=PLAIN):
    call = begin + "<tool_call>" + json.dumps({"name": tool, "arguments": arguments}) + "</tool_call>"
    model = parrot.write(str(folder / f"{name}.gguf"), {"first": call, "after": AFTER, "again": AGAIN, "plain": plain})
    return running.Server([binary, "-m", model, "-c", "65536", "-np", "2", "--temp", "0"])


def table(rows):
    lines = ["| client | version | " + " | ".join(TASKS) + " |", "|---|---|" + "---|" * len(TASKS)]
    for name, version, passed, why in rows:
        cells = [f"not installed: {why}"] + [""] * (len(TASKS) - 1) if passed is None else ["yes" if t in passed else "**no**" for t in TASKS]
        lines.append(f"| {name} | {version} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(text):
    page = HERE.parent.parent / "docs" / "clients.md"
    old = page.read_text()
    new = re.sub(r"(<!-- table -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{text}\n\nRun on {datetime.date.today()}.\n\n{m[2]}", old, flags=re.S)
    page.write_text(new)


def main():
    a = argparse.ArgumentParser(usage="./test clients [--write] [CLIENT ..]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("server", help=argparse.SUPPRESS)
    a.add_argument("folder", type=pathlib.Path, help=argparse.SUPPRESS)
    a.add_argument("clients", nargs="*", metavar="CLIENT")
    a.add_argument("--write", action="store_true", help="put the table into docs/clients.md")
    a.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments alone
    options = a.parse_intermixed_args()
    known = [x[0] for x in LIBRARIES + AGENTS]
    for name in options.clients:
        if name not in known:
            a.error(f"there is no client {name!r}; there are {', '.join(known)}")
    if options.check:
        return 0
    wanted = options.clients or known
    options.folder.mkdir(parents=True, exist_ok=True)
    folder, rows = options.folder.resolve(), []
    version = lambda packages: re.split("==|@(?=[0-9])", packages[0])[1]
    place = lambda name: folder / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

    def note(name, packages, passed, why):
        rows.append((name, version(packages), passed, why))
        print(f"{name} {version(packages)}: " + (f"not installed: {why}" if passed is None else ", ".join(t for t in TASKS if t in passed) or "nothing"), flush=True)
        if why and passed is not None:
            print("    " + why.replace("\n", "\n    "), flush=True)

    for held in (False, True):
        libraries = [x for x in LIBRARIES if x[0] in wanted and (x[3] == HELD) == held]
        if not libraries:
            continue
        more = {"begin": "", "plain": '{"city": "Oslo"}'} if held else {} # what a grammar lets through
        with serve(options.server, folder, "held" if held else "free", "get_weather", {"city": "Paris"}, **more) as server:
            for name, kind, packages, function in libraries:
                why = install(place(name), kind, packages)
                note(name, packages, *((None, why) if why else try_library(place(name), kind, function, server)))
    starts = {"codex": codex, "claude-code": claude, "qwen-code": qwen, "opencode": opencode}
    for name, packages, tool, arguments in [x for x in AGENTS if x[0] in wanted]:
        why = install(place(name), "npm", packages)
        if why:
            note(name, packages, None, why)
            continue
        with serve(options.server, folder, name, tool, arguments) as server:
            note(name, packages, *try_agent(place(name), starts[name], server))
    print("\n" + table(rows))
    if options.write:
        write(table(rows))
    if all(passed is None for _, _, passed, _ in rows):
        return 77
    return 1 if any(passed is not None and len(passed) < len(TASKS) for _, _, passed, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
