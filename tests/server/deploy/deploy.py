#!/usr/bin/env python3
"""The files of the folder deploy, checked by the tools of those who read them: deploy.py LLM-SERVER CASE DEPLOY FOLDER.

units    systemd-analyze, and haproxy -c for each combination of files (nginx.conf: server.replicas.nginx)
schemas  compose.yaml and the manifests of Kubernetes, by schemas from npm, which FOLDER gets (the versions stand in package-lock.json)

Also: all options that they give llm-server are known, probes ask what there is, and nobody is killed before it has ended. Exit code 77: a tool or
the network is missing."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import json
import tempfile

HERE = pathlib.Path(__file__).parent
BINARY, DEPLOY = sys.argv[1], pathlib.Path(sys.argv[3])
sys.path.insert(0, str(HERE.parent))
import running  # noqa: E402


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def find(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def known(words):
    """llm-server knows these options: it complains of the one after them."""
    r = subprocess.run([BINARY, *words, "--no-such-1"], capture_output=True, text=True, timeout=60)
    check(r.returncode == 2 and "--no-such-1" in r.stderr, f"{words}: {r.stderr}")


def seconds(words, flag):
    return int(words[words.index(flag) + 1])


def units():
    text = (DEPLOY / "llm-server.service").read_text()
    command = shlex.split(re.search("^ExecStart=(.*)$", text, re.M).group(1))
    options = shlex.split(re.search('^# LLM_OPTIONS="(.*)"$', text, re.M).group(1))
    known([w for w in command[1:] if w != "$LLM_OPTIONS"] + options)
    check(int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M).group(1)) > seconds(command, "--drain") + seconds(command, "--grace"), "it has time to end")
    missing = []
    if find("systemd-analyze"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "llm-server.service"
            path.write_text(text.replace(command[0], os.path.abspath(BINARY)))
            r = subprocess.run([find("systemd-analyze"), "verify", str(path)], capture_output=True, text=True)
            check(r.returncode == 0 and "llm-server.service" not in r.stderr, r.stderr)
    else:
        missing.append("systemd-analyze is not there (Debian: systemd)")
    if find("haproxy"):
        for second in ("haproxy-three.cfg", "haproxy-dns.cfg"):
            r = subprocess.run([find("haproxy"), "-c", "-f", str(DEPLOY / "haproxy.cfg"), "-f", str(DEPLOY / second)], capture_output=True, text=True)
            check(r.returncode == 0 and "WARNING" not in r.stdout + r.stderr, r.stdout + r.stderr)
    else:
        missing.append("haproxy is not installed (Debian: haproxy)")
    if missing:
        skip("; ".join(missing))


def install(folder):
    """As in ../clients/clients.py."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("node or npm is missing (Debian: nodejs, npm)")
    folder.mkdir(parents=True, exist_ok=True)
    lock, done = (HERE / "package-lock.json").read_text(), folder / "installed.json"
    for name in ("check.mjs", "package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, folder / name)
    if done.exists() and done.read_text() == lock:
        return
    if subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"], cwd=folder).returncode:
        skip("npm cannot install the schemas: is there a network?")
    done.write_text(lock)


def judge(folder, deploy):
    r = subprocess.run(["node", "check.mjs", str(deploy)], cwd=folder, capture_output=True, text=True)
    check(r.returncode == 0, r.stderr)
    return json.loads(r.stdout)


def schemas():
    folder = pathlib.Path(sys.argv[4])
    install(folder)
    r = judge(folder, DEPLOY.resolve())
    check(not r["faults"], r["faults"])
    check(sorted(m["kind"] for m in r["manifests"]) == ["Deployment"] * 2 + ["HorizontalPodAutoscaler"] + ["PodDisruptionBudget"] * 2 + ["Service"] * 3, "kinds")
    with tempfile.TemporaryDirectory() as bad:  # faults are found
        shutil.copytree(DEPLOY, bad, dirs_exist_ok=True)
        for name, old, new in (("kubernetes/replicas.yaml", "maxUnavailable: 1", "maxUnavaiable: 1"), ("kubernetes/balancer.yaml", "replicas: 2", 'replicas: "x"'),
                               ("kubernetes/autoscaler.yaml", "autoscaling/v2", "autoscaling/v7"), ("compose.yaml", "read_only", "readonly")):
            path = pathlib.Path(bad) / name
            check(old in path.read_text(), name)
            path.write_text(path.read_text().replace(old, new))
        faults = judge(folder, bad)["faults"]
        check(len(faults) == 4, faults)
    by_name = {(m["kind"], m["metadata"]["name"]): m for m in r["manifests"]}
    pod = by_name["Deployment", "llm-server"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    known(container["args"])
    check(pod["terminationGracePeriodSeconds"] > seconds(container["args"], "--drain") + seconds(container["args"], "--grace"), "a pod has time to end")
    replica = r["compose"]["services"]["replica"]
    known(replica["command"])
    check(int(replica["stop_grace_period"].rstrip("s")) > seconds(replica["command"], "--drain") + seconds(replica["command"], "--grace"), "a container, too")
    with running.Server([BINARY, "-m", "builtin:stories", "-c", "512", "-t", "1"]) as s:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            check(s.get(container[probe]["httpGet"]["path"])[0] == 200, probe)
        test = replica["healthcheck"]["test"]
        test = [w.replace("/8080", f"/{s.port}") for w in test[1:]]
        check(subprocess.run(test, timeout=60).returncode == 0, test)
    check(subprocess.run(test, stderr=subprocess.DEVNULL, timeout=60).returncode != 0, "a server that is not there is not healthy")


{"units": units, "schemas": schemas}[sys.argv[2]]()
