"""Runs the tasks of lm-evaluation-harness on a model of ggml_lite.

    pip install lm-eval
    python3 lm_eval_adapter.py --model ggml-lite --model_args model=model.gguf,n_ctx=2048,n_parallel=8 --tasks arc_easy

All arguments of ggml_lite.Model can be in --model_args. The class also works without lm-eval: its methods take objects whose `args` are those
of lm-eval's requests."""
import ggml_lite

try:
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
except ImportError:
    LM = object

    def register_model(*names):
        return lambda cls: cls


@register_model("ggml-lite")
class GgmlLite(LM):
    def __init__(self, model, batch_size=None, device=None, max_batch_size=None, **arguments):
        """model: a path, or a ggml_lite.Model. batch_size: texts that are generated at once."""
        super().__init__()
        if not isinstance(model, ggml_lite.Model):
            if str(batch_size or "").isdigit():
                arguments.setdefault("n_parallel", int(batch_size))
            model = ggml_lite.Model(model, device=device, **arguments)
        self.model = model
        begin = model.bos if model.bos is not None else model.eos
        self.prefix = [] if begin is None else [begin]  # stands before a text that has nothing before it

    def loglikelihood(self, requests, disable_tqdm=False):
        """For each (context, continuation): the log-probability of the continuation, and whether each of its tokens is the likeliest."""
        return [self._score(*self._pair(*request.args)) for request in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        """For each (text,): its log-probability. A text that is longer than the context is read in windows, of which each token counts once."""
        return [sum(self._score(*window)[0] for window in self._windows(request.args[0])) for request in requests]

    def generate_until(self, requests, disable_tqdm=False):
        """For each (context, options): the text until one of options["until"]."""
        prompts = []
        for request in requests:
            context, options = request.args
            until = options.get("until") or []
            most = min(options.get("max_gen_toks", 256), self.model.n_ctx - 1)
            prompts.append(
                {
                    "prompt": self.model.tokenize(context)[-(self.model.n_ctx - most) :],
                    "stop": [text for text in ([until] if isinstance(until, str) else until) if text],
                    "max_tokens": most,
                    "temperature": options.get("temperature", 0) if options.get("do_sample", True) else 0,
                    "top_p": options.get("top_p"),
                    "seed": 0,
                }
            )
        results = self.model.batch(prompts)
        for result in results:
            if result.error:
                raise result.error
        return [result.text for result in results]

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return self.model.format_chat(chat_history, answer=add_generation_prompt)

    def chat_template(self, chat_template=False):
        return self.model.metadata("tokenizer.chat_template")

    @property
    def tokenizer_name(self):
        return f"{self.model.name or self.model.arch}"

    def _pair(self, context, continuation):
        """The tokens of both, as lm-eval makes them: space at the end of the context belongs to the continuation."""
        stem = context.rstrip()
        continuation, context = context[len(stem) :] + continuation, stem
        if not context:
            return self.prefix, self.model.tokenize(continuation, add_special=False)
        ids, n = self.model.tokenize(context + continuation), len(self.model.tokenize(context))
        return ids[:n], ids[n:]

    def _windows(self, text):
        ids, size, done = self.model.tokenize(text, add_special=False), self.model.n_ctx, 0
        while done < len(ids):
            end = min(done + size, len(ids))
            begin = end - size - 1
            yield (self.prefix + ids[:done] if begin < 0 else ids[begin:done]), ids[done:end]
            done = end

    def _score(self, context, continuation):
        if not continuation:
            return 0.0, True
        room = self.model.n_ctx + 1 - len(continuation)
        score = self.model.logprobs(context[-room:], continuation)
        return score.total, all(score.is_greedy)


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
