#!/bin/sh
# Published chat templates leave out system messages without an error: of "FIRST" and "SECOND", two system messages at the beginning, and "LATER", one before the last question, many show only some. Agents send several: Codex
# two developer messages at the beginning and one when a session is resumed. Templates of gpt-oss and MiniMax look at messages[0] alone, DeepSeek R1's keeps the last one. Kimi K2's for llama.cpp changes a list, which the
# environment that transformers uses refuses.
# Seen with the templates that the source of llama-cpp-python 0.3.36 (PyPI) carries, rendered by jinja2 3.1.6 as transformers sets it up: the lines at the end, a template and what its prompt has.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install jinja2==3.1.6 scikit-build-core==0.11.5 2>/dev/null
py/bin/pip -q --disable-pip-version-check download --no-deps --no-binary :all: --no-build-isolation llama-cpp-python==0.3.36 2>/dev/null
tar -xzf llama_cpp_python-0.3.36.tar.gz --wildcards '*/models/templates/*'
cat >run.py <<'END'
import datetime
import glob
import json
import jinja2.ext
import jinja2.sandbox


def refuse(why):
    raise jinja2.TemplateError(why)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
env.filters["tojson"] = lambda x, **more: json.dumps(x, ensure_ascii=False)
env.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.date(2026, 1, 1).strftime(form)}
folder = glob.glob("*/vendor/llama.cpp/models/templates")[0]
say = lambda role, content: {"role": role, "content": content}
several = [say("system", "FIRST"), say("system", "SECOND"), say("user", "a"), say("assistant", "b"), say("system", "LATER"), say("user", "c")]
call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": {}}}
called = [say("user", "a"), dict(say("assistant", ""), tool_calls=[call]), dict(say("tool", "r"), tool_call_id="x")]
for name, messages in (("openai-gpt-oss-120b", several), ("MiniMax-M2", several), ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", several), ("Qwen3.5-4B", several),
                       ("Qwen-Qwen3-0.6B", several), ("Kimi-K2-Instruct", called)):
    with open(f"{folder}/{name}.jinja") as f:
        text = f.read()
    try:
        prompt = env.from_string(text).render(messages=messages, bos_token="", eos_token="", add_generation_prompt=True)
        print(name, *(w for w in ("FIRST", "SECOND", "LATER") if w in prompt))
    except Exception as e:
        print(name, type(e).__name__)
END
py/bin/python run.py >got.txt
cat got.txt
cat >want.txt <<'END'
openai-gpt-oss-120b FIRST
MiniMax-M2 FIRST
deepseek-ai-DeepSeek-R1-Distill-Llama-8B LATER
Qwen3.5-4B TemplateError
Qwen-Qwen3-0.6B FIRST SECOND LATER
Kimi-K2-Instruct SecurityError
END
diff want.txt got.txt
