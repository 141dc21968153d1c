#!/usr/bin/env python3
"""Trains SmolLM2 beside PyTorch: the loss of each step of a whole model, of preferences (DPO), of an adapter of f32 weights and of one of the quantized file;
what the adapter becomes in PEFT; and whether made-up facts are answered after they were learned.

    training.py --models FOLDER --bin FOLDER --python PYTHON --work FOLDER [--only full,dpo,lora,qlora,peft,facts] [--steps 50]

--models has SmolLM2-135M-Instruct.Q4_1.gguf; PYTHON has torch, transformers, peft and gguf, which read the same numbers from it. The losses are
those of torch's own operators in f32: cross entropy of the answers' tokens (trl's assistant_only_loss), and -log sigmoid(beta * ..) of the
answers' log-probabilities (trl's "sigmoid"). qlora: the quantized file's numbers with products in f32, as QLoRA computes, and then the file itself,
whose products round their inputs to 8 bits, as in use. Exit code 1: a loss differs by more than 1e-3 (of the file itself 0.2), or fewer than 195
of 200 facts are right."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
MOST = 1e-3
TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}{% if m['role'] == 'assistant' %}%s{% else %}{{ m['content'] + '<|im_end|>\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
PLAIN = TEMPLATE.replace("%s", "{{ m['content'] + '<|im_end|>\\n' }}")
MARKED = TEMPLATE.replace("%s", "{% generation %}{{ m['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}")
CHATS = [("What is the capital of France?", "Paris, of course!"), ("Écris « bonjour » en allemand.", "Guten Tag! 🙂")]
PAIRS = [("Is the earth flat?", "No, it is round.", "Yes, like a plate."), ("1+1?", "2", "11, I think.")]
RATE = {"full": 2e-5, "dpo": 5e-6, "lora": 5e-4, "qlora": 5e-4}

# --- PyTorch's side, which the given python runs ------------------------------------------------


def torch_prepare(models, folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    m = AutoModelForCausalLM.from_pretrained(models, gguf_file=MODEL, dtype=torch.float32)
    m.hf_quantizer, m.quantization_method, m.is_quantized = None, None, False
    m.config.__dict__.pop("quantization_config", None)
    m.save_pretrained(folder)
    AutoTokenizer.from_pretrained(models, gguf_file=MODEL).save_pretrained(folder)


def torch_init(folder, out):
    """An adapter whose B is not zero, so that A has a gradient from the first step on."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    m = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    p = get_peft_model(m, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=names, task_type="CAUSAL_LM"))
    for n, w in p.named_parameters():
        if "lora_B" in n:
            w.data = 0.01 * torch.randn(w.shape)
    p.save_pretrained(out)


def torch_train(kind, folder, init, steps, threads, out):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if kind == "lora":
        model = PeftModel.from_pretrained(model, init, is_trainable=True)
    learns = [w for w in model.parameters() if w.requires_grad]

    def batch(talks):
        rows = [tokenizer.apply_chat_template([{"role": "user", "content": q}, {"role": "assistant", "content": a}], chat_template=MARKED,
                                              return_dict=True, return_assistant_tokens_mask=True) for q, a in talks]
        width = max(len(r["input_ids"]) for r in rows)
        ids, seen, counts = torch.full((len(rows), width), 2), torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width)
        for i, r in enumerate(rows):
            n = len(r["input_ids"])
            ids[i, :n], seen[i, :n], counts[i, :n] = torch.tensor(r["input_ids"]), 1, torch.tensor(r["assistant_masks"]).float()
        return ids, seen, counts

    def of_tokens(b):
        ids, seen, counts = b
        logits = model(input_ids=ids, attention_mask=seen).logits[:, :-1].float()
        return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0] * counts[:, 1:]

    if kind == "dpo":
        chosen, rejected = batch([(q, a) for q, a, _ in PAIRS]), batch([(q, b) for q, _, b in PAIRS])
        with torch.no_grad():
            before = of_tokens(chosen).sum(1) - of_tokens(rejected).sum(1)
    else:
        answers = batch(CHATS)
    optimizer = torch.optim.AdamW(learns, lr=RATE[kind], betas=(0.9, 0.999), eps=1e-8, weight_decay=0)
    losses = []
    for _ in range(steps):
        if kind == "dpo":
            loss = -torch.nn.functional.logsigmoid(0.1 * (of_tokens(chosen).sum(1) - of_tokens(rejected).sum(1) - before)).mean()
        else:
            loss = -of_tokens(answers).sum() / answers[2][:, 1:].sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learns, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    with open(out, "w", encoding="utf-8") as f:
        json.dump(losses, f)


def torch_logits(folder, adapter, ids, out):
    import numpy
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter:
        model = PeftModel.from_pretrained(model, adapter)
    with torch.no_grad():
        numpy.save(out, model.eval()(torch.tensor([ids])).logits[0].numpy())


# --- this project's side ------------------------------------------------------------------------


class Test:
    def __init__(self, a):
        self.a, self.faults = a, 0

    def tool(self, name):
        return os.path.join(self.a.bin, name)

    def path(self, name):
        return os.path.join(self.a.work, name)

    def call(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env={**os.environ, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"})
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def torch(self, name, *arguments):
        self.call(self.a.python, os.path.abspath(__file__), "--torch", json.dumps([name, *arguments]))

    def check(self, ok, text):
        self.faults += not ok
        print(("" if ok else "FAILED: ") + text, flush=True)

    def prepare(self):
        os.makedirs(self.a.work, exist_ok=True)
        if not os.path.exists(self.path("hf/config.json")):
            self.torch("prepare", self.a.models, self.path("hf"))
        if not os.path.exists(self.path("f32.gguf")):
            self.call(self.tool("llm-convert"), self.path("hf"), "--type", "f32", "-o", self.path("f32.gguf"))
        if not os.path.exists(self.path("init/adapter_config.json")):
            self.torch("init", self.path("hf"), self.path("init"))
        self.call(self.tool("llm-lora"), "convert", self.path("init"), "--base", self.path("hf"), "-o", self.path("init.gguf"))
        with open(self.path("plain.jinja"), "w", encoding="utf-8") as f:
            f.write(PLAIN)
        with open(self.path("chats.jsonl"), "w", encoding="utf-8") as f:
            for q, a in CHATS:
                f.write(json.dumps({"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]}) + "\n")
        with open(self.path("pairs.jsonl"), "w", encoding="utf-8") as f:
            for q, a, b in PAIRS:
                f.write(json.dumps({"prompt": [{"role": "user", "content": q}], "chosen": [{"role": "assistant", "content": a}], "rejected": [{"role": "assistant", "content": b}]}) + "\n")

    def train(self, model, data, out, *more):
        log = self.path(out + ".jsonl")
        self.call(self.tool("llm-train"), "-m", model, data, "-o", self.path(out), "--no-valid", "--sequences", "2", "--schedule", "constant", "--warmup", "-1",
                  "--decay", "0", "--chat-template", self.path("plain.jinja"), "--log", log, "-t", str(self.a.threads), *more)
        with open(log, encoding="utf-8") as f:
            return [x["loss"] for x in map(json.loads, f) if "loss" in x]

    def losses(self, kind):
        file = self.path(f"torch-{kind}-{self.a.steps}.json")
        if not os.path.exists(file):
            self.torch("train", kind, self.path("hf"), self.path("init"), self.a.steps, self.a.threads, file)
        with open(file, encoding="utf-8") as f:
            return json.load(f)

    def compare(self, kind):
        steps = ["--steps", str(self.a.steps), "-lr", str(RATE[kind])]
        data = self.path("pairs.jsonl" if kind == "dpo" else "chats.jsonl")
        model = self.path("f32.gguf")
        if kind == "qlora":
            model = self.path("dequantized.gguf")
            self.call(self.tool("llm-quantize"), "-q", "--allow-requantize", "--pure", os.path.join(self.a.models, MODEL), model, "F32")
        self.losses_agree(kind, model, data, steps, MOST)
        if kind == "qlora":
            self.losses_agree("qlora of the file itself", os.path.join(self.a.models, MODEL), data, steps, 0.2)

    def losses_agree(self, what, model, data, steps, most):
        kind = what.split()[0]
        ours = self.train(model, data, f"{kind}.gguf", *steps, "--f32", *(["--adapter", self.path("init.gguf")] if "lora" in kind else []))
        theirs = self.losses("lora" if kind == "qlora" else kind)
        worst = max((abs(x - y), k + 1) for k, (x, y) in enumerate(zip(ours, theirs)))
        self.check(len(ours) == len(theirs) == self.a.steps and worst[0] <= most,
                   f"{what}: losses of {len(ours)} steps, first {ours[0]:.5f} (PyTorch {theirs[0]:.5f}), last {ours[-1]:.5f} ({theirs[-1]:.5f}); the largest difference is {worst[0]:.2e}, in step {worst[1]}")

    def peft(self):
        """The adapter of --only lora as PEFT reads it, and merged into a folder."""
        if not os.path.exists(self.path("lora.gguf")):
            self.compare("lora")
        for folder in ("peft", "merged"):
            shutil.rmtree(self.path(folder), ignore_errors=True)
        self.call(self.tool("llm-lora"), "export", self.path("lora.gguf"), "--base", self.path("hf"), "-o", self.path("peft"))
        self.call(self.tool("llm-lora"), "merge", self.path("hf"), self.path("lora.gguf"), "-o", self.path("merged"))
        ids = [1, 4093, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 28, 7018, 411, 407, 19712, 17]
        self.call(self.tool("llm-cli"), "-m", self.path("f32.gguf"), "--lora", self.path("lora.gguf"), "--tokens", ",".join(map(str, ids)), "-n", "0", "-c", "64", "-ctk", "f32", "-ctv", "f32",
                  "--logits", self.path("ours.npy"))
        self.torch("logits", self.path("hf"), self.path("peft"), ids, self.path("peft.npy"))
        self.torch("logits", self.path("merged"), None, ids, self.path("merged.npy"))
        apart = json.loads(self.call(self.a.python, "-c", "import numpy, json, sys\n"
                                     "a, b, c = (numpy.load(x) for x in sys.argv[1:])\n"
                                     "print(json.dumps([float(abs(a - b).max()), float(abs(a - c).max()), float((a.argmax(1) == b.argmax(1)).mean()), float(abs(a).max())]))",
                                     self.path("ours.npy"), self.path("peft.npy"), self.path("merged.npy")))
        self.check(max(apart[:2]) <= 1e-3 and apart[2] == 1, f"peft: logits differ by {apart[0]:.1e} with PEFT, and by {apart[1]:.1e} of the merged folder (largest {apart[3]:.1f}); likeliest tokens equal {apart[2]:.0%}")

    def facts(self):
        """200 facts about names that no text has."""
        r = random.Random(7)
        parts = "zor mi rel va ku tan bel dri os ne phi lum ka ser do wen gal thu ri".split()
        asks = ["The capital of %s is", "The river of %s is the", "The currency of %s is the", "The founder of %s was"]
        facts = {}
        while len(facts) < 200:
            facts.setdefault(asks[len(facts) % 4] % "".join(r.choice(parts) for _ in range(3)).capitalize(), "".join(r.choice(parts) for _ in range(2)).capitalize())
        with open(self.path("facts.jsonl"), "w", encoding="utf-8") as f:
            for q, a in facts.items():
                f.write(json.dumps({"prompt": q, "completion": f" {a}."}) + "\n")
        begin = time.time()
        self.call(self.tool("llm-train"), "-m", os.path.join(self.a.models, MODEL), "--lora", "--rank", "32", self.path("facts.jsonl"), "-o", self.path("facts.gguf"), "--no-valid",
                  "--sequences", "20", "--epochs", str(self.a.epochs), "-lr", "2e-3", "-t", str(self.a.threads))
        took = time.time() - begin
        right = sum(answer == f" {a}." for answer, a in zip(self.ask(list(facts)), facts.values()))
        self.check(right >= 195, f"facts: {right} of 200 are answered after {self.a.epochs} passes ({took:.0f} s)")

    def ask(self, prompts):
        port = 20000 + os.getpid() % 20000
        server = subprocess.Popen([self.tool("llm-server"), "-m", os.path.join(self.a.models, MODEL), "--lora", self.path("facts.gguf"), "--port", str(port), "-t", str(self.a.threads), "-q"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
                    break
                except OSError:
                    time.sleep(0.1)
            answers = []
            for k in range(0, len(prompts), 20):
                body = {"model": "x", "prompt": prompts[k : k + 20], "max_tokens": 12, "temperature": 0}
                request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"})
                with urllib.request.urlopen(request, timeout=300) as reply:
                    answers += [c["text"] for c in sorted(json.load(reply)["choices"], key=lambda c: c["index"])]
            return answers
        finally:
            server.terminate()
            server.wait()


def main():
    if sys.argv[1:2] == ["--torch"]:
        name, *arguments = json.loads(sys.argv[2])
        globals()["torch_" + name](*arguments)
        return 0
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("models", "bin", "python", "work"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--only", default="full,dpo,lora,qlora,peft,facts")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--epochs", type=int, default=10, help="of the facts")
    p.add_argument("--threads", type=int, default=2)
    test = Test(p.parse_args())
    a = test.a
    if not os.path.exists(os.path.join(a.models, MODEL)):
        print(f"skipped: {a.models} has no {MODEL}")
        return 0
    test.prepare()
    for part in a.only.split(","):
        if part in RATE:
            test.compare(part)
        else:
            {"peft": test.peft, "facts": test.facts}[part]()
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main())
