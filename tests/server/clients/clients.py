#!/usr/bin/env python3
"""Runs the clients of the ecosystem, from npm, against llm-server: streams, tools, schemas, log-probabilities, errors, cut streams.

    clients.py SERVER MODEL FOLDER [CLIENT..]

FOLDER is where npm installs them (their exact versions stand in package-lock.json). Exit code 77 if node, npm or the network is missing."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import running  # noqa: E402

KEY = "secret"


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def install(folder):
    """Installs what package-lock.json says, unless that was done already. Scripts of packages are not run."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("node or npm is missing (Debian: nodejs, npm)")
    major = int(subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.lstrip("v").split(".")[0])
    if major < 20:
        skip(f"node {major} is too old; the clients need 20")
    folder.mkdir(parents=True, exist_ok=True)
    lock, done = (HERE / "package-lock.json").read_text(), folder / "installed.json"
    for file in HERE.iterdir():
        if file.suffix in (".mjs", ".json"):
            shutil.copyfile(file, folder / file.name)
    if done.exists() and done.read_text() == lock:
        return
    # What npm says about its settings goes to the output.
    result = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"], cwd=folder)
    if result.returncode:
        skip("npm cannot install the clients: is there a network?")
    done.write_text(lock)


def main():
    binary, model, folder = sys.argv[1:4]
    names = sys.argv[4:] or ["openai", "ollama", "anthropic"]
    folder = pathlib.Path(folder)
    install(folder)
    command = [binary, "-m", model, "-c", "4096", "-np", "2", "--queue", "16", "--embeddings", "--api-key", KEY, "--chat-template-file", str(HERE / "tools.jinja")]
    failed = []
    with running.Server(command) as server:
        env = dict(os.environ, LLM_SERVER_URL=f"http://127.0.0.1:{server.port}", LLM_SERVER_KEY=KEY)
        for name in names:
            if subprocess.run(["node", "--test", "--test-reporter=spec", f"{name}.mjs"], cwd=folder, env=env).returncode:
                failed.append(name)
        code = server.stop() if server.process.poll() is None else server.process.returncode
        if code != 0: # it has crashed, or a sanitizer has found something
            failed.append(f"the server (exit code {code})")
            print("".join(server.lines)[-8000:])
    print("failed: " + ", ".join(failed) if failed else "ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
