#!/usr/bin/env python3
"""`llm-bench serve` against a server that counts what it is asked, and misbehaves in all the ways of real ones.

    bench_serve.py LLM_BENCH"""
import csv
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from mock_openai import Mock

tool = sys.argv[1]
faults = []
mock = Mock()


def check(condition, words):
    if not condition:
        faults.append(words)


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def run(code, *args, before=None):
    """Runs the tool; returns what it prints to stdout and stderr."""
    mock.forget()
    env = {**os.environ, "http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}  # it must not be asked
    r = subprocess.run([tool, "serve", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env=env, check=False,
                       preexec_fn=before)
    check(r.returncode == code, f"{args}: exit code {r.returncode}, not {code}: {r.stderr[:500]}")
    check("\x1b" not in r.stdout + r.stderr or "csv" in args, f"{args}: an escape sequence of the server is printed")
    return r.stdout, r.stderr


def rows(*args, code=0):
    out, err = run(code, *args, "-o", "json")
    try:
        return json.loads(out), err
    except ValueError:
        faults.append(f"{args}: not JSON: {out[:300]}, {err[:300]}")
        return [], err


def measured():
    return [body for _, _, body in mock.requests if body["max_tokens"] > 1]


def counts():
    """How many requests there are, what they say, and whether the numbers of the report are those of the server."""
    got, _ = rows(mock.url(), "-c", "1,3", "--requests", "2", "-p", "60,101", "-n", "8,5", "--rounds", "2")
    check(len(got) == 8, f"{len(got)} rows")
    for r in got:
        n = r["n_clients"] * 2 * 2
        want = {"n_answers": n, "n_failed": 0, "n_short": 0, "completion_tokens": n * r["n_gen"], "pieces": n * r["n_gen"],
                "n_rounds": 2, "endpoint": "completions", "model": "mock-\x1b[1mok", "rate": None}
        for key, value in want.items():
            check(r[key] == value, f"{key} is {r[key]}, not {value}")
        # a word is two tokens, and three stand around a prompt
        check(r["prompt_tokens"] == n * (3 + 2 * round((r["n_prompt"] - 3) / 2 + 0.25)), f"prompts: {r}")
        check(len(r["samples_ts"]) == 2 and all(x > 0 for x in r["samples_ts"]), f"rounds: {r['samples_ts']}")
        check(0 <= r["first_token_ms"] <= r["first_token_ms_99"] <= r["answer_ms_99"], f"times: {r}")
        check(abs(r["completion_tokens"] / r["seconds"] / r["completion_ts"] - 1) < 0.01, f"rate: {r}")
    sent = measured()
    check(len(sent) == sum(r["n_answers"] for r in got), f"{len(sent)} requests")
    check(len({b["prompt"] for b in sent}) == len(sent), "prompts repeat")
    for b in sent:
        check(b["ignore_eos"] is True and b["stream"] is True and b["stream_options"] == {"include_usage": True} and
              b["temperature"] == 0 and b["model"] == "mock-\x1b[1mok", f"body: {b}")
    run(0, mock.url() + "/v1/", "-c", "1", "--no-ignore-eos", "--temp", "0.5", "--model", "mine", "--field", "cache_prompt=false",
        "--field", 'user="me"', "-n", "3", "--words", "-p", "7", "--shared", "5")
    for b in measured():
        check("ignore_eos" not in b and b["temperature"] == 0.5 and b["model"] == "mine" and b["cache_prompt"] is False and
              b["user"] == "me" and len(b["prompt"].split()) == 12, f"body: {b}")
    check(len(measured()) == 4, f"{len(measured())} requests, not 4")


def loads():
    """Clients run side by side, and no more of them than asked for; rates start requests that do not wait for each other."""
    run(0, mock.url("meet6"), "-c", "6", "--requests", "2", "-n", "3")
    check(mock.most == 6, f"{mock.most} at once, not 6")
    run(0, mock.url("meet80"), "-c", "80", "--requests", "1", "-n", "3", before=few_files)  # the soft limit is raised
    check(mock.most == 80, f"{mock.most} at once, not 80")
    got, _ = rows(mock.url("meet8"), "--rate", "200", "--requests", "8", "-n", "3")
    check(mock.most == 8 and len(measured()) == 8, f"{mock.most} at once, {len(measured())} requests")
    check([r["samples_ts"] for r in got] == [[r["completion_ts"]] for r in got], f"the rate of one round is that of all: {got}")
    check([(r["n_clients"], r["rate"], r["n_answers"]) for r in got] == [(None, 200, 8)], f"rate: {got}")


def same_texts():
    """Both servers get the same requests in turns, and the same seed gives them again."""
    def texts(*args):
        rows(mock.url("other"), "--vs", mock.url(), "-c", "1", "--requests", "2", "--rounds", "3", "-n", "2", *args)
        of = {"other": [], "ok": []}
        for manner, _, body in mock.requests:
            if body["max_tokens"] > 1:
                of[manner].append((body["prompt"], body["seed"]))
        order = [manner for manner, _, body in mock.requests if body["max_tokens"] > 1]
        check(order == 3 * (2 * ["other"] + 2 * ["ok"]), f"not in turns: {order}")
        check(of["other"] == of["ok"] and len(set(of["ok"])) == 6, f"not the same texts: {of}")
        return of["ok"]

    first = texts("--seed", "1")
    check(texts("--seed", "1") == first, "the same seed gives other texts")
    check(texts("--seed", "2") != first, "another seed gives the same texts")
    check(texts() != texts(), "without --seed a run repeats another's texts, which the server may have kept")
    check(rows(mock.url(), "-c", "1", "-n", "2", "--seed", "7")[0][0]["seed"] == 7, "the seed of a row")


def conversations(chat):
    """Each turn repeats what was said, with the server's answers; a beginning is common to all."""
    args = ["--chat"] if chat else []
    got, _ = rows(mock.url(), "-c", "2", "--requests", "2", "--turns", "4", "--shared", "40", "-p", "20", "-n", "6", *args)
    sent = measured()
    check(len(sent) == 16 and got[0]["n_answers"] == 16, f"{len(sent)} requests")
    answer = "".join(f" w\u00e9{i}" for i in range(6))
    if chat:
        check(all(p == "/v1/chat/completions" for _, p, _ in mock.requests), "the endpoint")
        for b in sent:
            roles = [m["role"] for m in b["messages"]]
            check(roles == ["system"] + ["user", "assistant"] * (len(roles) // 2 - 1) + ["user"], f"roles: {roles}")
            check(all(m["content"] == answer for m in b["messages"] if m["role"] == "assistant"), f"answers: {b}")
            before = [o for o in sent if o["messages"] == b["messages"][:-2]]
            check(len(before) == (1 if len(roles) > 2 else 0), "a turn does not go on from the one before")
        beginnings = {b["messages"][0]["content"] for b in sent}
    else:
        for b in sent:
            before = [o for o in sent if b["prompt"].startswith(o["prompt"] + answer + " ")]
            check(len(before) == b["prompt"].count(answer), "a turn does not go on from the one before")
        beginnings = {" ".join(b["prompt"].split()[:20]) for b in sent}
    check(len(beginnings) == 1, f"{len(beginnings)} beginnings")
    turns = got[0]["turn_prompt_tokens"]
    check(len(turns) == 4 and turns == sorted(turns) and turns[0] < turns[1], f"turns: {turns}")
    # the mock keeps all: each turn's prompt but its new text, but for the first conversation
    kept = got[0]["turn_cached_tokens"]
    check(all(k >= t for k, t in zip(kept[1:], [t - 40 for t in turns])), f"kept: {kept} of {turns}")


def failures():
    """Each way to fail is counted, named once, and does not stop the others."""
    manners = {"full": "HTTP 429: queue is full", "break": "the answer breaks off", "quiet": "breaks off after 3 pieces",
               "badjson": "an event of the answer:1:", "noobject": "not an object", "nochoices": "no `choices`", "nul": "an event of the answer:1:",
               "error": "the server ends the answer: out of \\x1b[31mmemory", "nostream": "not a stream of events",
               "html": "HTTP 502: <html>\\x1b[31mBad gateway", "endless": "more than 16777216 bytes", "more": "after [DONE]"}
    for manner, words in manners.items():
        got, err = rows(mock.url(manner), "-c", "2", "--requests", "6", "-n", "8", code=1)
        check(words in err, f"{manner}: no '{words}' in: {err}")
        check(len(measured()) == 12, f"{manner}: {len(measured())} requests, not 12")
        r = got[0] if got else {"n_failed": 0, "n_answers": 0}
        check(r["n_failed"] + r["n_answers"] == 12, f"{manner}: {r}")
        check((0 < r["n_failed"] < 12) if manner == "full" else r["n_failed"] == 12, f"{manner}: {r['n_failed']} failures")
        check(f"{r['n_failed']} of 12 requests failed" in err and err.count("\n") == 1, f"{manner}: {err}")
    out, _ = run(1, mock.url("break"), "-c", "1", "-n", "8")
    check("- " in out, f"no times: {out}")
    _, err = run(1, mock.url("hang"), "-c", "1", "--requests", "1", "-n", "2", "--timeout", "1")
    check("1 of 1 requests failed: " in err and "timed out" in err.lower(), f"timeout: {err}")
    got, err = rows(mock.url("break"), "-c", "1", "--requests", "2", "--turns", "3", "-n", "8", code=1)
    check(got[0]["n_failed"] == 2, f"a failure ends its conversation: {got}")


def oddities():
    """Servers that do right in other ways."""
    for manner in ("split", "short", "merge", "nousage"):
        for args in ((), ("--chat",)):
            got, err = rows(mock.url(manner), "-c", "1", "--requests", "3", "-n", "8", *args)
            r = got[0]
            check(r["n_answers"] == 3, f"{manner}: {r}")
            check(r["completion_tokens"] == (12 if manner == "short" else 24), f"{manner}: {r['completion_tokens']} tokens")
            check(r["pieces"] == (12 if manner in ("short", "merge") else 24), f"{manner}: {r['pieces']} pieces")
            check(r["n_short"] == (3 if manner == "short" else 0), f"{manner}: {r['n_short']} short ones")
            check((r["prompt_tokens"] is None) == (manner == "nousage"), f"{manner}: {r['prompt_tokens']}")
            note = {"split": "", "short": "3 of 3 answers have fewer than 8 tokens", "merge": "24 tokens came in 12 pieces",
                    "nousage": "reports no usage"}[manner]
            check(note in err and bool(note) == bool(err), f"{manner}: {err}")


def refusals():
    """What cannot be measured is said before anything is."""
    url = mock.url()
    for code, words, args in (
            (2, "a server's URL is needed", ()), (2, "only one URL", (url, url)), (2, "is not a URL", ("localhost:80",)),
            (2, "is not a URL", (url, "--vs", "ftp://x")), (2, "cannot be used together", (url, "-c", "1", "--rate", "1")),
            (2, "is not a list of requests per second", (url, "--rate", "1,,2")), (2, "--rate: '0'", (url, "--rate", "0")),
            (2, "-c: '0'", (url, "-c", "0")), (2, "-n: 'x'", (url, "-n", "x")), (2, "is not NAME=JSON", (url, "--field", "top_k")),
            (2, "not JSON", (url, "--field", "user=me")), (2, "set by llm-bench itself", (url, "--field", "stream=false")),
            (2, "too long", (url, "--model", 300 * "m")), (2, "need --vs", (url, "--vs-model", "m")), (2, "--plot", (url, "--plot", "")),
            (1, "onnect", ("http://127.0.0.1:9",)), (1, "wrong key (--api-key)", (mock.url("key"),)),
            (1, "/v1/models: HTTP 404: no such path", (mock.url("nomodels"),)), (1, "lists no model", (mock.url("emptylist"),)),
            (1, "/v1/models:1:", (mock.url("oddlist"),)), (1, "unknown field ignore_eos; see --no-ignore-eos", (mock.url("noeos"),)),
            (1, mock.url("key"), (url, "--vs", mock.url("key"), "--api-key", "sesame"))):
        out, err = run(code, *args)
        check(words in err and err.count("\n") == 1, f"{args}: no '{words}' in: {err}")
        check(not out and not measured(), f"{args}: something was measured")
    run(0, mock.url("key"), "--api-key", "sesame", "-c", "1", "--requests", "1", "-n", "2")
    run(0, mock.url("noeos"), "--no-ignore-eos", "-c", "1", "--requests", "1", "-n", "2")
    run(0, url, "--vs", mock.url("key"), "--vs-api-key", "sesame", "-c", "1", "--requests", "1", "-n", "2")


def outputs(folder):
    """Tables of 80 columns, Markdown, CSV, and a picture."""
    plot = os.path.join(folder, "plot.svg")
    args = (mock.url("a&b<c"), "--vs", mock.url(), "-c", "1-4*2", "--requests", "1", "-n", "4", "-p", "30,50")
    out, _ = run(0, *args, "--turns", "2", "--plot", plot)
    lines = out.splitlines()
    check(all(len(line) <= 80 for line in lines), "more than 80 columns:\n" + out)
    check(sum("A / B" in line for line in lines) == 6 and sum(line.startswith("  turn 2") for line in lines) == 6, "lines:\n" + out)
    root = xml.etree.ElementTree.parse(plot).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    check(root.tag == svg + "svg" and sum("point" in c.get("class") for c in root.iter(svg + "circle")) == 2 * 2 * 3 * 3,
          "points of the picture")
    texts = "".join(t.text or "" for t in root.iter(svg + "text"))
    check("a&b<c: " in texts and "prompts of 50, answers of 4" in texts, f"texts of the picture: {texts}")
    out, _ = run(0, *args, "-o", "md")
    table = [line for line in out.splitlines() if line.startswith("|")]
    check(len(table) == 2 * (2 + 3 * 3) and len({line.count("|") for line in table}) == 1, "Markdown:\n" + out)
    out, _ = run(0, *args, "-o", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    check(len(table) == 12 and all(int(r["n_answers"]) == int(r["n_clients"]) * 2 and r["rate"] == "" for r in table), "CSV:\n" + out)
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "svg_check.py"), plot], check=True)
    out, _ = run(0, mock.url("a&b<c"), "--name", "new <&>", "--vs", mock.url(), "--vs-name", "old", "-c", "1", "--requests", "1", "-n", "2", "--plot", plot)
    picture = open(plot, encoding="utf-8").read()
    check("new &lt;&amp;&gt;: prompts" in picture and ">old: prompts" in picture and "http://127" not in picture, "names in the picture")
    check("A: new <&>, http" in out and "B: old, http" in out, "names in the report:\n" + out)
    check("--vs-name need --vs" in run(2, mock.url(), "--vs-name", "x")[1], "--vs-name without --vs")
    run(0, mock.url(), "--rate", "100", "--requests", "3", "-n", "2", "--plot", plot)
    check("requests per second" in open(plot, encoding="utf-8").read(), "the picture of rates")
    _, err = run(1, mock.url(), "-c", "1", "-n", "2", "--plot", "/dev/full")
    check("--plot" in err and "No space left" in err, f"a full disk: {err}")
    check(not [f for f in os.listdir(folder) if "tmp-" in f], "files are left")


def main():
    r = subprocess.run([tool, "serve", mock.url()], capture_output=True, text=True, check=False)
    if "without libcurl" in r.stderr:
        check(r.returncode == 1 and not mock.requests, "without libcurl: " + r.stderr)
        print("skipped: this build has no libcurl")
        sys.exit(1 if faults else 77)
    counts()
    loads()
    same_texts()
    conversations(chat=True)
    conversations(chat=False)
    failures()
    oddities()
    refusals()
    with tempfile.TemporaryDirectory() as folder:
        outputs(folder)
    print("\n".join(faults) or "right")
    sys.exit(1 if faults else 0)


main()
