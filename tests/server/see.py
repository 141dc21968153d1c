#!/usr/bin/env python3
"""llm-server with a model that sees: the built-in one, with an eye of random weights. see.py LLM-SERVER CASE LLM-CLI."""
import asyncio
import base64
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import eye_file
from gguf_file import gguf
from http_layer import check
from running import Gone, Server, events, exchange

BINARY, CLI = sys.argv[1], sys.argv[3]
N_EMBD, N_ROWS = 128, 16
RED, BLUE = eye_file.ppm((255, 0, 0)), eye_file.ppm((0, 0, 255), other=(0, 255, 0))
TEXT = "Tell me a story about"
FOLDER = tempfile.TemporaryDirectory()


def b64(picture):
    return base64.b64encode(picture).decode()


def url(picture):
    return "data:image/x-portable-pixmap;base64," + b64(picture)


def eye():
    path = FOLDER.name + "/mmproj-eye.gguf"
    return path if os.path.exists(path) else eye_file.llava(path, N_EMBD)


def seeing(*options, mmproj=None):
    return Server([BINARY, "--mmproj", mmproj or eye(), "-c", "2048", "-np", "4", "-t", "1", "--temp", "0", *options])


def post(server, path, body, status=200, **more):
    got, _, text = server.post(path, body, **more)
    check(got == status, f"{path} {str(body)[:200]}: {got} {text[:300]}")
    return json.loads(text)


def chat(*parts, **more):
    """A request of OpenAI's chat; a part is a text or a picture."""
    content = [{"type": "text", "text": p} if isinstance(p, str) else {"type": "image_url", "image_url": {"url": url(p)}} for p in parts]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 8, **more}


def answer(server, body):
    x = post(server, "/v1/chat/completions", body)
    return x["choices"][0]["message"]["content"], x["usage"]["prompt_tokens"], x["usage"]["prompt_tokens_details"]["cached_tokens"]


def metrics(server):
    text = server.get("/metrics")[2].decode()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


def at_rest(server):
    """All that requests held was given back."""
    held = {k: v for k, v in metrics(server).items() if "memory" in k and 'use="requests"' in k}
    check(held and all(v == 0 for v in held.values()), held)


# --- cases -----------------------------------------------------------------------------------------


def apis():
    """All APIs show the same conversation to the model, and pictures that were seen are not computed again."""
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(RED)}}
    with seeing() as s:
        text, n, cached = answer(s, chat(TEXT, RED, "and a cat."))
        check(n > N_ROWS and cached < n - N_ROWS, (n, cached))
        for _ in range(2):
            check(answer(s, chat(TEXT, RED, "and a cat.")) == (text, n, n - 1), "again")
        x = post(s, "/v1/responses", {"input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": TEXT}, {"type": "input_image", "image_url": url(RED)}, {"type": "input_text", "text": "and a cat."}]}],
            "max_output_tokens": 8})
        check(x["output"][0]["content"][0]["text"] == text and x["usage"]["input_tokens_details"]["cached_tokens"] == n - 1, x)
        messages = {"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}, block, {"type": "text", "text": "and a cat."}]}]}
        x = post(s, "/v1/messages", {**messages, "max_tokens": 8})
        check(x["content"][0]["text"] == text and x["usage"]["cache_read_input_tokens"] == n - 1, x)
        check(post(s, "/v1/messages/count_tokens", messages) == {"input_tokens": n}, "count_tokens")
        check(post(s, "/v1/chat/completions/input_tokens", chat(TEXT, RED, "and a cat."))["input_tokens"] == n, "input_tokens")
        # Ollama's pictures come before the text
        first = answer(s, chat(RED, BLUE, TEXT))
        x = post(s, "/api/chat", {"messages": [{"role": "user", "content": TEXT, "images": [b64(RED), b64(BLUE)]}], "stream": False,
                                  "options": {"num_predict": 8}})
        check(x["message"]["content"] == first[0] and x["prompt_eval_count"] == first[1], x)
        x = post(s, "/api/generate", {"prompt": TEXT, "images": [b64(RED), b64(BLUE)], "stream": False, "options": {"num_predict": 8}})
        check(x["response"] == first[0] and x["prompt_eval_count"] == first[1], x)
        # a stream, and several choices
        stream = events(s.post("/v1/chat/completions", chat(TEXT, RED, "and a cat.", stream=True))[2])
        check("".join(e["choices"][0]["delta"].get("content") or "" for e in stream) == text, "a stream")
        x = post(s, "/v1/chat/completions", chat(TEXT, RED, "and a cat.", n=3))
        check([c["message"]["content"] for c in x["choices"]] == [text] * 3, x)
        at_rest(s)
        check(s.stop() == 0, "exit code")


def completion():
    """llama.cpp's /completion, whose answer is that of llm-cli."""
    prompt = "Once there was <__media__> and <__media__>, who"
    args = ["-m", "builtin:chat", "--mmproj", eye(), "-no-cnv", "-n", "12", "--temp", "0", "-t", "1", "--no-display-prompt", "-q"]
    for i, picture in enumerate((RED, BLUE)):
        name = f"{FOLDER.name}/{i}.ppm"
        with open(name, "wb") as f:
            f.write(picture)
        args += ["--image", name]
    cli = subprocess.run([CLI, *args, "-p", prompt], capture_output=True, text=True, timeout=120)
    check(cli.returncode == 0, cli)
    with seeing() as s:
        body = {"prompt": {"prompt_string": prompt, "multimodal_data": [b64(RED), b64(BLUE)]}, "n_predict": 12}
        x = post(s, "/completion", body)
        check(x["content"].strip() == cli.stdout.strip(), (x["content"], cli.stdout))
        check(x["prompt"].endswith(prompt) and "__media:" not in json.dumps(x), x["prompt"])
        other = post(s, "/completion", {"prompt": {"prompt_string": prompt, "multimodal_data": [b64(BLUE), b64(RED)]}, "n_predict": 12, "n_probs": 3})
        same = post(s, "/completion", {**body, "n_probs": 3})
        check(other["completion_probabilities"] != same["completion_probabilities"], "the order of pictures has no effect")
        several = post(s, "/completion", {**body, "prompt": [body["prompt"], "Once there was"]})
        check(several[0]["content"] == x["content"], several)
        at_rest(s)


def saved():
    """A saved slot whose prompt has pictures goes on after a restart: the same pictures need not run again, others do."""
    folder = FOLDER.name + "/slots"
    os.makedirs(folder)
    options = ["--slot-save-path", folder, "--cache-slots", "0"]
    ask = lambda s, *pictures: post(s, "/completion", {"prompt": {"prompt_string": "A <__media__>, then <__media__>, and", "multimodal_data": [b64(p) for p in pictures]},
                                                       "n_predict": 6, "id_slot": 0})
    use = lambda s, action, status=200: post(s, f"/slots/0?action={action}", {"filename": "seen"}, status)
    with seeing(*options) as s:
        first = ask(s, RED, BLUE)
        n = first["timings"]["prompt_n"]
        check(use(s, "save")["n_saved"] >= n, first)
    with seeing(*options) as s:
        check(use(s, "restore")["n_restored"] >= n, "restored")
        again = ask(s, RED, BLUE)
        check(again["timings"]["prompt_n"] == 1 and again["content"] == first["content"], again)
        use(s, "restore")
        check(1 < ask(s, RED, RED)["timings"]["prompt_n"] < n, "the first picture is the same")
        use(s, "restore")
        check(n // 2 < ask(s, BLUE, RED)["timings"]["prompt_n"] < n, "both are others")
        at_rest(s)
    other = eye_file.llava(FOLDER.name + "/other-eye.gguf", N_EMBD, seed=5)
    with seeing(*options, mmproj=other) as s:
        use(s, "restore")
        check(n // 2 < ask(s, RED, BLUE)["timings"]["prompt_n"] < n, "another eye sees other rows")
    with Server([BINARY, "-c", "2048", "-np", "4", "-t", "1", *options]) as s:
        check("--mmproj" in use(s, "restore", 400)["error"]["message"], "without an eye")


def names():
    """A text that looks like the name of a picture is a text, also when the picture is there."""
    with open(FOLDER.name + "/red.ppm", "wb") as f:
        f.write(RED)
    cli = subprocess.run([CLI, "-m", "builtin:chat", "--mmproj", eye(), "-cnv", "-st", "--json-output", "-n", "1", "-p", "<__media__>", "--image", FOLDER.name + "/red.ppm"],
                         capture_output=True, text=True, timeout=120)
    mark = re.search("<__media:[0-9a-f]{64}__>", cli.stdout).group() # of the library, which names the picture by its contents
    with seeing() as s:
        n_without = answer(s, chat(""))[1]
        n_red = answer(s, chat(RED))[1]
        check(n_red == n_without + N_ROWS, (n_red, n_without))
        for text in (mark, "<__media__>", "<image>", "<__media:" + "0" * 64 + "__>"):
            plain = len(post(s, "/tokenize", {"content": text, "parse_special": False})["tokens"])
            check(post(s, "/tokenize", {"content": text})["tokens"] == post(s, "/tokenize", {"content": text, "parse_special": False})["tokens"], text)
            check(all(x >= 0 for x in post(s, "/tokenize", {"content": text})["tokens"]), text)
            check(answer(s, chat(text))[1] >= n_without + plain - 1, text)
            with_picture = answer(s, chat(RED, text))[1]
            check(with_picture >= n_red + plain - 1, (text, with_picture))
            x = post(s, "/completion", {"prompt": text, "n_predict": 1})
            check(x["tokens_evaluated"] >= plain and text in x["prompt"], x)
        check(post(s, "/completion", {"prompt": {"prompt_string": mark + "<__media__>", "multimodal_data": [b64(RED)]}, "n_predict": 1})["tokens_evaluated"] > N_ROWS + 10, "both")
        for body in ({"prompt": [-5]}, {"prompt": [[1, -1]]}, {"prompt": [-2147483648]}): # ids of rows are no tokens of a client
            check("is not a token" in json.dumps(post(s, "/completion", body, 400)), body)
        post(s, "/detokenize", {"tokens": [-5]}, 400)
        # nothing shows the marks that the server itself uses
        x = post(s, "/v1/chat/completions", chat("a", RED, "b", verbose=True))
        check("a<__media__>b" in x["__verbose"]["prompt"], x)
        x = post(s, "/apply-template", chat("a", RED, "b<__media__>"))
        check("a<__media__>b<__media__>" in x["prompt"], x)
        x = post(s, "/v1/chat/completions", {"messages": [chat(RED)["messages"][0], {"role": "assistant", "content": [
            {"type": "text", "text": "I see"}, {"type": "image_url", "image_url": url(BLUE)}]}], "max_tokens": 2, "verbose": True})
        check(x["__verbose"]["prompt"].endswith("I see<__media__>"), x) # a message that is continued
        check(not any(re.search(r"media\w{27}\d{3}_|__media:", line) for line in s.lines), s.lines)


def errors():
    """What is wrong with pictures is said, in the form of each API."""
    def says(server, path, body, words, status=400):
        text = json.dumps(post(server, path, body, status))
        check(words in text, f"{path}: {text[:300]}")

    damaged = RED[:100]
    with seeing("--max-body", "4") as s:
        says(s, "/v1/chat/completions", chat(damaged), "picture 1 of 1: the file: ")
        says(s, "/v1/chat/completions", chat(RED, b"GIF89a"), "picture 2 of 2: the file: ")
        says(s, "/v1/chat/completions", chat(b"x"), "no kind of picture")
        says(s, "/v1/messages/count_tokens", {"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(damaged)}}]}]}, "picture 1 of 1")
        says(s, "/api/chat", {"messages": [{"role": "user", "content": "", "images": [b64(damaged)]}]}, "picture 1 of 1")
        says(s, "/v1/chat/completions", chat(*[RED] * 101), "at most 100 pictures")
        says(s, "/v1/chat/completions", chat(RED, "hello", n=1000), '"n"')
        says(s, "/v1/chat/completions", chat(*[eye_file.ppm((i, i, i)) for i in range(100)], "hello " * 600), "too large", 400)
        huge = b"P6\n100000 100000\n255\n"
        says(s, "/v1/chat/completions", chat(huge), "picture 1 of 1: the file: ")
        # long runs that are no pictures count as text
        got, _, text = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "A" * 3000000}]})
        check(got in (400, 413, 503), (got, text[:200]))
        at_rest(s)
        check(answer(s, chat(RED, "a"))[1] > N_ROWS, "the server goes on")
    with Server([BINARY, "-c", "512", "-np", "1", "-t", "1"]) as s:
        unseen = "image input is not supported"
        says(s, "/v1/chat/completions", chat(RED), unseen)
        says(s, "/v1/responses", {"input": [{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url(RED)}]}]}, unseen)
        says(s, "/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, unseen)
        says(s, "/api/chat", {"messages": [{"role": "user", "content": "", "images": [b64(RED)]}]}, unseen)
        says(s, "/api/generate", {"prompt": "x", "images": [b64(RED)]}, unseen)
        says(s, "/completion", {"prompt": {"prompt_string": "<__media__>", "multimodal_data": [b64(RED)]}}, unseen)
        check(json.loads(s.get("/props")[2])["modalities"]["vision"] is False, "props")
    other = eye_file.llava(FOLDER.name + "/other.gguf", 96)
    for options, words in ((["--mmproj", other], "another model"), (["--mmproj", FOLDER.name + "/none.gguf"], "No such file"),
                           (["--mmproj", "builtin:stories"], "makes no rows of pictures"), (["-m", eye()], "with this file beside it (-m MODEL --mmproj FILE)")):
        r = subprocess.run([BINARY, *options, "--port", "0"], capture_output=True, text=True, timeout=120)
        check(r.returncode in (1, 2) and words in r.stderr, r)


def says_so():
    """What the server says of a model that sees."""
    with seeing("-a", "m") as s:
        props = json.loads(s.get("/props")[2])
        check(props["modalities"] == {"vision": True, "audio": False} and props["media_marker"] == "<__media__>", props)
        check("vision" in post(s, "/api/show", {"model": "m"})["capabilities"], "show")
        check("multimodal" in json.loads(s.get("/v1/models")[2])["data"][0]["capabilities"], "models")
        check("vision" in json.loads(s.get("/api/tags")[2])["models"][0]["capabilities"], "tags")


def others():
    """Tokens of others go on while the model looks at a picture, and each client gets what it would get alone."""
    slow = eye_file.slow(FOLDER.name + "/mmproj-slow.gguf", N_EMBD)
    pictures = [eye_file.ppm((40 * i, 255 - 40 * i, 7)) for i in range(4)]
    with seeing(mmproj=slow) as s:
        async def run():
            looking = asyncio.create_task(exchange(s.port, "POST", "/v1/chat/completions", chat(pictures[0], "a")))
            await asyncio.sleep(0)
            n = 0
            while not looking.done():
                status, _, body = await exchange(s.port, "POST", "/v1/chat/completions", chat("Tell me a story.", max_tokens=4))
                check(status == 200, body)
                n += 1
            check((await looking)[0] == 200, await looking)
            return n
        check(asyncio.run(run()) > 1, "others wait for the eye")
    with seeing() as s:
        bodies = [chat("Tell", pictures[i % 4], "me", pictures[(i + i // 4) % 4]) for i in range(16)]
        alone = [answer(s, x)[:2] for x in bodies]
    with seeing("--cache-slots", "0") as s:
        async def all_at_once():
            return await asyncio.gather(*(exchange(s.port, "POST", "/v1/chat/completions", x) for x in bodies))
        got = [json.loads(x[2]) for x in asyncio.run(all_at_once())]
        check([(x["choices"][0]["message"]["content"], x["usage"]["prompt_tokens"]) for x in got] == alone, "answers differ")
        at_rest(s)


def addresses():
    """Pictures are fetched from public hosts alone, if at all, and no answer tells what else there is."""
    def says(server, address, words, status=400):
        text = json.dumps(post(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": address}}]}]}, status))
        check(words in text, f"{address}: {text[:300]}")

    with seeing() as s:
        says(s, "https://example.org/a.png", "--allow-image-urls")
        says(s, "file:///etc/passwd", "must be data:image")
    # the server itself has a public name for everybody but itself: only by number can it be asked here
    with Server([BINARY, "--mmproj", eye(), "-c", "512", "-t", "1", "--allow-image-urls"], env={"PATH": "/none"}) as s:
        here = f"127.0.0.1:{s.port}"
        for address in (f"http://{here}/icon.svg", f"http://localhost:{s.port}/", "http://127.1/", "http://2130706433/x", "http://0x7f.0.0.1/", "http://[::1]/",
                        "http://[::ffff:10.0.0.1]/", "http://169.254.169.254/latest/meta-data", "https://10.1.2.3/a.png", "http://192.168.1.1/",
                        "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://0.0.0.0/"):
            says(s, address, "picture 1 of 1: the address: its host is not a public one")
        says(s, "http://user:word@8.8.8.8/", "no address of the form")
        says(s, "http://8.8.8.8 /", "a space")
        says(s, "http://" + "a" * 5000, "at most 4000")
        says(s, "file:///etc/passwd", "must be data:image")
        says(s, "http://8.8.8.8/a.png", "curl") # which is not in that folder
        block = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/"}}
        check("not a public one" in json.dumps(post(s, "/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": [block]}]}, 400)), "Anthropic")
        check("not a public one" in json.dumps(post(s, "/v1/messages/count_tokens", {"messages": [{"role": "user", "content": [block]}]}, 400)), "count")
        n_before = metrics(s)
        check(answer(s, chat(RED, "a"))[1] > N_ROWS, n_before)
        at_rest(s)


def folders():
    """A folder with one model and its eye; one that is of no use; and presets."""
    models = FOLDER.name + "/models"
    chat_model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin/stories-chat.gguf")
    with open(chat_model, "rb") as f:
        data = f.read()
    with open(eye(), "rb") as f:
        sight = f.read()
    with open(eye_file.llava(FOLDER.name + "/mmproj-narrow.gguf", N_EMBD - 32), "rb") as f:
        narrow = f.read()
    for name, files in {"sees": {"a.gguf": data, "mmproj-a-f16.gguf": sight, "mmproj-a-f32.gguf": b"x"}, "blind": {"b.gguf": data, "mmproj-b.gguf": data},
                        "two": {"c.gguf": data, "d.gguf": data, "mmproj-c.gguf": sight}, "narrow": {"e.gguf": data, "mmproj-e.gguf": narrow}}.items():
        os.makedirs(f"{models}/{name}")
        for path, content in files.items():
            with open(f"{models}/{name}/{path}", "wb") as f:
                f.write(content)
    presets = FOLDER.name + "/models.ini"
    with open(presets, "w") as f:
        f.write(f"[*]\nctx-size = 512\n[sees]\nmodel = {chat_model}\nmmproj = {eye()}\n[blind]\nmodel = {chat_model}\n")
    for options, seeing_ones in (([models], {"sees"}), ([models, "--no-mmproj"], set()), ([presets], {"sees"})):
        with Server([BINARY, "--models", *options, "-t", "1", "-c", "512"]) as s:
            if options == [models]: # an eye that belongs to another model
                check(s.post("/v1/chat/completions", {**chat("a"), "model": "narrow"})[0] == 200, "a text beside an eye of no use")
                text = s.post("/v1/chat/completions", {**chat(RED), "model": "narrow"})[2]
                check(b"image input is not supported: the model sees no pictures: " in text and b"belongs to another model" in text, text)
            for name in ("sees", "blind"):
                status, _, text = s.post("/v1/chat/completions", {**chat(RED, "a"), "model": name})
                check((status == 200) == (name in seeing_ones) and (status == 200 or b"image input is not supported" in text), (options, name, status, text[:300]))
            data_of = {m["id"]: m for m in json.loads(s.get("/v1/models")[2])["data"]}
            check({k for k, m in data_of.items() if "multimodal" in m.get("capabilities", [])} == seeing_ones, data_of)
            check(options != [models] or any("the model sees no pictures" in line for line in s.lines), s.lines)


def unloaded():
    """The lists say which models see, before they are loaded, too: a built-in one does by its own eye, one with an ear hears."""
    ear = eye_file.ultravox(FOLDER.name + "/mmproj-ear.gguf", N_EMBD)
    presets = FOLDER.name + "/unloaded.ini"
    with open(presets, "w") as f:
        f.write(f"""[*]\nctx-size = 512\n[shapes]\nmodel = builtin:shapes\n[blind]\nmodel = builtin:shapes\nno-mmproj\n[sees]\nmodel = builtin:chat\nmmproj = {eye()}
[hears]\nmodel = builtin:chat\nmmproj = {ear}\n[chat]\nmodel = builtin:chat\n""")

    def seeing_ones(s):
        models = json.loads(s.get("/v1/models")[2])["data"], json.loads(s.get("/api/tags")[2])["models"]
        return [{m.get("id") or m["name"] for m in all_of if {"multimodal", "vision"} & set(m.get("capabilities", []))} for all_of in models]

    with Server([BINARY, "--models", presets, "-t", "1"]) as s:
        check(seeing_ones(s) == [{"shapes", "sees"}] * 2, seeing_ones(s))
        for name in ("shapes", "blind", "sees", "hears", "chat"):
            post(s, "/v1/chat/completions", {**chat("a", max_tokens=1), "model": name})
        check(seeing_ones(s) == [{"shapes", "sees"}] * 2, seeing_ones(s))


def sizes():
    """How many tokens pictures take, said for all models, is no error for one whose eye has sizes of its own; said for that one alone, it is."""
    models = FOLDER.name + "/sized"
    chat_model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin/stories-chat.gguf")
    os.makedirs(models + "/fixed")
    os.symlink(chat_model, models + "/fixed/a.gguf")
    os.symlink(eye(), models + "/fixed/mmproj-a.gguf")
    presets = FOLDER.name + "/sizes.ini"
    with open(presets, "w") as f:
        f.write(f"[fixed]\nmodel = {chat_model}\nmmproj = {eye()}\n[own]\nmodel = {chat_model}\nmmproj = {eye()}\nimage-max-tokens = 64\n")
    words = "in sizes of its own"
    for path in (models, presets):
        with Server([BINARY, "--models", path, "--image-max-tokens", "64", "-t", "1", "-c", "512"]) as s:
            post(s, "/v1/chat/completions", {**chat(RED, "a"), "model": "fixed"})
            check(sum("note: " in line and words in line for line in s.lines) == 1, s.lines)
            if path == presets:
                check(words in json.dumps(post(s, "/v1/chat/completions", {**chat(RED, "a"), "model": "own"}, 500)), "its own flag")
    r = subprocess.run([BINARY, "-m", chat_model, "--mmproj", eye(), "--image-max-tokens", "64", "--port", "0"], capture_output=True, text=True, timeout=120)
    check(r.returncode == 1 and words in r.stderr and "note: " not in r.stderr, r)


def several():
    """A model whose file says how many pictures a text may have: more of them are an error of the request."""
    with Server([BINARY, "-m", "builtin:shapes", "-t", "1"]) as s:
        post(s, "/v1/chat/completions", chat(RED, "a"))
        words = "the model takes 1 picture at a time, but the text has 2"
        text = json.dumps(post(s, "/v1/chat/completions", chat(RED, BLUE, "a"), 400))
        check(words in text, text)
        prompt = {"prompt_string": "<__media__>", "multimodal_data": [b64(RED)]}
        post(s, "/completion", {"prompt": [prompt, prompt], "n_predict": 1}) # texts of their own
        at_rest(s)


def adapted():
    """An adapter of the eye changes what is seen, and at scale 0 nothing."""
    path, ones = FOLDER.name + "/eye-lora.gguf", struct.pack("<96f", *[1.0] * 96)
    with open(path, "wb") as f:
        f.write(gguf([("general.architecture", "string", "llama"), ("general.type", "string", "adapter"), ("adapter.type", "string", "lora")],
                     [("mm.2.weight.lora_a", "f32", (96, 1), ones), ("mm.2.weight.lora_b", "f32", (1, 96), ones)]))
    answers = []
    for lora in ([], ["--lora", path], ["--lora", path + ":0"]):
        with Server([BINARY, "-m", "builtin:shapes", "-t", "1", "--temp", "0", *lora]) as s:
            answers.append([answer(s, chat(RED, "What is in the picture?"))[0] for _ in range(2)])
            at_rest(s)
    check(answers[0] == answers[2] != answers[1] and all(a == b for a, b in answers), answers)


def leaves():
    """A client that leaves is not waited for, while the model looks and before, and the end of the server does not wait."""
    slow = eye_file.slow(FOLDER.name + "/mmproj-slow.gguf", N_EMBD, layers=24)
    with seeing(mmproj=slow) as s:
        async def go(i):
            reader, writer = await asyncio.open_connection("127.0.0.1", s.port)
            data = json.dumps(chat(eye_file.ppm((i, 2 * i, 3)))).encode()
            writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            await writer.drain()
            await asyncio.sleep(0.02 * i)
            writer.close()

        async def all_go():
            await asyncio.gather(*(go(i) for i in range(12)))
        asyncio.run(all_go())
        last = RED
        check(answer(s, chat(last, "a"))[1] > 256, "the next one")
        check(answer(s, chat(last, "a"))[2] > 256, "the same again")
        at_rest(s)
        m = metrics(s)
        gone = sum(v for k, v in m.items() if "gone" in k or "disconnect" in k)
        check(gone >= 1, m)

        async def begin():
            tasks = [asyncio.create_task(exchange(s.port, "POST", "/v1/chat/completions", chat(eye_file.ppm((9, i, 9))))) for i in range(3)]
            await asyncio.sleep(0.05)
            s.process.send_signal(15)
            s.process.send_signal(15)
            return await asyncio.gather(*tasks, return_exceptions=True)
        asyncio.run(begin())
        s.process.wait(60)
    with seeing("--max-time", "1", mmproj=eye_file.slow(FOLDER.name + "/slower.gguf", N_EMBD, layers=96)) as s:
        got, _, text = s.post("/v1/chat/completions", chat(RED))
        check(got == 504 and b"time limit" in text, (got, text))
        at_rest(s)


def sounds():
    """Sounds in chats, by all ways to send them, and what is said about those that are none."""
    ear = eye_file.ultravox(FOLDER.name + "/mmproj-ear.gguf", N_EMBD)
    low, high = eye_file.wav(200), eye_file.wav(2000, 3, 44100)

    def audio(*parts, **more):
        content = [{"type": "text", "text": p} if isinstance(p, str) else {"type": "input_audio", "input_audio": {"data": b64(p), "format": "wav"}} for p in parts]
        return {"messages": [{"role": "user", "content": content}], "max_tokens": 8, **more}

    def says(server, path, body, words, status=400):
        text = json.dumps(post(server, path, body, status))
        check(words in text, f"{path}: {text[:300]}")

    def hears(s, capabilities):
        one = json.loads(s.get("/v1/models")[2])["data"][0]
        check(one["capabilities"] == capabilities, one)
        for shown in json.loads(s.get("/api/tags")[2])["models"][0], post(s, "/api/show", {"model": one["id"]}):
            check("audio" in shown["capabilities"] and ("vision" in shown["capabilities"]) == ("multimodal" in capabilities), shown["capabilities"])

    with seeing(mmproj=ear) as s:
        n_without = answer(s, audio(TEXT, "and a cat."))[1] - 1 # a line break
        text, n, cached = answer(s, audio(TEXT, low, "and a cat."))
        check(abs(n - n_without - 7) <= 1 and cached < n - 7, (n, n_without, cached)) # 0.8 and 0.2 seconds: 5 rows and 2
        for _ in range(2):
            check(answer(s, audio(TEXT, low, "and a cat.")) == (text, n, n - 1), "again")
        check(answer(s, audio(TEXT, high, "and a cat."))[1] > n + 10, "a longer one")
        x = post(s, "/v1/chat/completions", audio("a", low, "b", verbose=True))
        check("a<__media__>b" in x["__verbose"]["prompt"], x)
        prompt = "Once there was <__media__> and <__media__>, who"
        bodies = [{"prompt": {"prompt_string": prompt, "multimodal_data": [b64(p) for p in two]}, "n_predict": 12, "n_probs": 3} for two in ((low, high), (high, low))]
        first, other = (post(s, "/completion", body) for body in bodies)
        check(first["completion_probabilities"] != other["completion_probabilities"], "the order of sounds has no effect")
        props = json.loads(s.get("/props")[2])
        check(props["modalities"] == {"vision": False, "audio": True}, props)
        check("multimodal" not in json.dumps(json.loads(s.get("/v1/models")[2])), "the page would send pictures")
        hears(s, ["completion", "audio"])
        n_rows = [post(s, "/v1/chat/completions", audio(TEXT, *sounds_of))["usage"]["prompt_tokens_details"]["audio_tokens"] for sounds_of in ((), (low,), (low, low, low))]
        check(n_rows[0] == 0 and 5 <= n_rows[1] <= 7 and n_rows[2] == 3 * n_rows[1], n_rows)
        says(s, "/v1/chat/completions", audio(low[:-1000]), "sound 1 of 1: the file: the sound is damaged: it ends 500 samples before")
        says(s, "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "audio_url", "audio_url": {"url": "x"}}]}]},
             'is not supported; use')
        says(s, "/v1/chat/completions", audio(low, eye_file.wav(1, 0)), "sound 2 of 2: the file: the sound has no samples")
        says(s, "/v1/chat/completions", audio(b"<html>"), "sound 1 of 1: the file: ")
        says(s, "/v1/chat/completions", audio(eye_file.wav(9, 700, 1000)), "more than ")
        says(s, "/v1/chat/completions", audio(b""), "a sound has no bytes")
        says(s, "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": low.hex()}]}]}, "the file as base64")
        says(s, "/v1/chat/completions", chat(RED), "image input is not supported")
        says(s, "/v1/chat/completions", audio(*[low] * 101), "at most 100 sounds")
        def ollama(media, status=200, text="and a cat."):
            return post(s, "/api/chat", {"messages": [{"role": "user", "content": TEXT + text, **({"images": [b64(m) for m in media]} if media else {})}], "options": {"num_predict": 8}, "stream": False}, status)
        n_heard = [ollama(media)["prompt_eval_count"] for media in ((), (low,), (low, high))]
        check(5 <= n_heard[1] - n_heard[0] <= 9 and n_heard[2] > n_heard[1] + 10, n_heard)
        made = post(s, "/api/generate", {"prompt": TEXT, "images": [b64(low)], "options": {"num_predict": 8}, "stream": False})["prompt_eval_count"]
        check(made > post(s, "/api/generate", {"prompt": TEXT, "options": {"num_predict": 8}, "stream": False})["prompt_eval_count"], made)
        check("no kind of sound" in str(ollama((b"<html>",), 400)), "no sound")
        in_result = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "1", "content": audio(low)["messages"][0]["content"]}]
        post(s, "/v1/chat/completions", {"messages": in_result, "max_tokens": 1}, 200)
        at_rest(s)
        check(s.stop() == 0, "exit code")
    with seeing(mmproj=eye_file.both(FOLDER.name + "/mmproj-both.gguf", N_EMBD)) as s:
        check(json.loads(s.get("/props")[2])["modalities"] == {"vision": True, "audio": True}, "a model that sees and hears")
        hears(s, ["completion", "multimodal", "audio"])
        details = post(s, "/v1/chat/completions", {"messages": [{"role": "user", "content": [*chat(RED)["messages"][0]["content"], *audio(low)["messages"][0]["content"]]}]})["usage"]
        check(0 < details["prompt_tokens_details"]["audio_tokens"] < details["prompt_tokens"] - 15, details)
        def content(*parts):
            return {"messages": [{"role": "user", "content": [part for p in parts for part in p["messages"][0]["content"]]}], "max_tokens": 8}
        seen, heard, all_ = (answer(s, content(*parts)) for parts in ((audio(TEXT), chat(RED)), (audio(TEXT), audio(low)), (audio(TEXT), chat(RED), audio(low))))
        check(all_[1] - seen[1] >= 20 and all_[1] - heard[1] >= 4, (seen, heard, all_))
        one, two = (post(s, "/completion", {"prompt": {"prompt_string": "a <__media__> b <__media__>", "multimodal_data": [b64(p) for p in two]}, "n_predict": 8, "n_probs": 3})
                    for two in ((RED, low), (low, RED)))
        check(one["tokens_evaluated"] == two["tokens_evaluated"] and one["completion_probabilities"] != two["completion_probabilities"], (one, two))
        says(s, "/v1/chat/completions", audio(low[:-1000]), "sound 1 of 1: the file: the sound is damaged")
        at_rest(s)
    with seeing() as s:
        says(s, "/v1/chat/completions", audio(low), "audio input is not supported")
        for path, body in (("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [b64(low)]}]}), ("/api/generate", {"prompt": "a", "images": [b64(low)]})):
            says(s, path, body, "images[0]: audio input is not supported")
        post(s, "/api/chat", {"messages": [{"role": "user", "content": "a", "images": [b64(RED)]}], "options": {"num_predict": 1}, "stream": False})
    with Server([BINARY, "-c", "512", "-np", "1", "-t", "1"]) as s:
        says(s, "/v1/chat/completions", audio(low), "audio input is not supported")


CASES = {f.__name__: f for f in (apis, completion, saved, names, errors, says_so, others, addresses, folders, unloaded, sizes, several, adapted, leaves, sounds)}

if __name__ == "__main__":
    CASES[sys.argv[2]]()
