"""The built-in chat model answers as an independent float64 computation did, which was recorded in tests/data/chat-answers.txt: the
template is rendered by llm-tokenize, the tokens run by llm-cli. chat_model.py LLM-CLI LLM-TOKENIZE MODEL ANSWERS"""
import json, os, subprocess, sys, tempfile

CLI, TOKENIZE, MODEL, ANSWERS = sys.argv[1:5]
FAILED = 0


def run(*args):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(args)}: {done.stderr[-400:]}")
    return done.stdout


def answer(messages):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"messages": messages, "add_generation_prompt": True}, f)
        f.flush()
        ids = run(TOKENIZE, "-m", MODEL, "--chat", f.name, "--ids")
    ids = ids.strip().strip("[]").replace(" ", "")
    return run(CLI, "-m", "builtin:chat", "--tokens", ids, "-n", "256", "--temp", "0", "-ctk", "f32", "-ctv", "f32").strip()


if os.path.getsize(MODEL) > 1_500_000:
    print(f"FAILED: {MODEL} has more than 1.5 MB")
    FAILED += 1
messages = []
for turn in open(ANSWERS, encoding="utf-8").read().strip().split("\n\n"):
    said, want = turn.removeprefix("> ").split("\n", 1)
    messages.append({"role": "user", "content": said})
    got = answer(messages)
    if got != want:
        print(f"FAILED: after {said!r}\n--- written\n{got}\n--- recorded\n{want}")
        FAILED += 1
    messages.append({"role": "assistant", "content": want})
if len(messages) < 12:
    print("FAILED: few turns")
    FAILED += 1
sys.exit(FAILED > 0)
