#!/usr/bin/env python3
"""llm-server's /v1/decisions and /v1/systemone. decisions.py LLM-SERVER CASE."""
import json
import math
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from http_layer import check
from running import Server

BINARY = sys.argv[1]
INPUT = "Once upon a time there was a little girl. She had a red ball and a dog."
CHOICE = {"type": "choice", "name": "who", "instructions": "Who had a ball?", "choices": [{"value": "girl", "description": "a child"}, {"value": "dog"}, {"value": "girl named Lily"}, {"value": True}]}
PREDICATE = {"type": "predicate", "instructions": [{"type": "input_text", "text": "She has a dog."}, {"type": "input_json", "data": {"a": 1}}]}
SCORE = {"type": "score", "name": None, "instructions": "How big is she?", "levels": [{"label": "little"}, {"label": "big", "description": "or tall"}, {"label": "huge"}]}
QUESTIONS = [CHOICE, PREDICATE, SCORE]


def post(s, path, body, status=200):
    got, _, text = s.post(path, body)
    check(got == status, f"{path} {str(body)[:200]}: {got} {text[:300]}")
    return json.loads(text)


def decide(s, questions, input=INPUT, status=200, **more):
    return post(s, "/v1/decisions", {"model": "any", "input": input, "questions": questions, **more}, status)


def is_one(probabilities):
    return abs(sum(probabilities) - 1) < 1e-5 and all(0 <= p <= 1 for p in probabilities)


def confidence(p):
    return 1 + sum(x * math.log(x) for x in p if x > 0) / math.log(len(p))


def answers():
    """The forms of the answers, of models with and without a chat template."""
    for model in ("builtin:chat", "builtin:stories"):
        with Server([BINARY, "-m", model, "-t", "2", "-np", "2", "-c", "1024"]) as s:
            r = decide(s, QUESTIONS, safety_identifier="me", prompt_cache_key=None)
            check(sorted(r) == ["answers", "model", "usage"] and r["model"] == "any", r)
            usage = r["usage"]
            check(usage["output_tokens"] == 0 and usage["total_tokens"] == usage["input_tokens"] > 60, usage)
            check(usage["input_tokens_details"] == {"cached_tokens": usage["input_tokens_details"]["cached_tokens"], "cache_write_tokens": 0}, usage)
            one, two, three = r["answers"]
            p = [x["probability"] for x in one["probabilities"]]
            check(one["type"] == "choice" and one["name"] == "who" and [x["value"] for x in one["probabilities"]] == ["girl", "dog", "girl named Lily", True], one)
            check(is_one(p) and one["choice"] == one["probabilities"][p.index(max(p))]["value"] and abs(one["confidence"] - confidence(p)) < 1e-4, one)
            check(two["type"] == "predicate" and two["name"] is None and 0 < two["probability"] < 1 and sorted(two) == ["name", "probability", "type"], two)
            p = [x["probability"] for x in three["probabilities"]]
            check([(x["value"], x["label"]) for x in three["probabilities"]] == [(0, "little"), (1, "big"), (2, "huge")] and is_one(p), three)
            check(abs(three["score"] - sum(k * x for k, x in enumerate(p))) < 1e-5, three)
            check(decide(s, QUESTIONS)["answers"] == r["answers"], "again")
            check([decide(s, [q])["answers"][0] for q in QUESTIONS] == r["answers"], "one by one")
            # the same by the other API: texts are equal, and so are the bits
            state = {"state": INPUT, "model": "jev", "questions": {
                "who": {"type": "choice", "instructions": "Who had a ball?", "criteria": {"girl": "a child", "dog": None, "girl named Lily": None, "true": None}},
                "has": {"type": "noul", "instructions": {"question": "Has she a dog?"}, "criteria": {"true": "a dog", "false": "none"}},
                "big": {"type": "score", "instructions": "How big is she?", "criteria": ["little", "big. or tall", "huge"]}}}
            x = post(s, "/v1/systemone", state)
            check(list(x["answers"]) == ["who", "has", "big"] and x["usage"] == {"input_tokens": x["usage"]["input_tokens"], "output_tokens": 0} and x["model"] == "jev", x)
            who, has, big = x["answers"].values()
            check(list(who["probabilities"].values()) == [v["probability"] for v in one["probabilities"]] and who["confidence"] == one["confidence"] and who["choice"] == str(one["choice"]).replace("True", "true"), who)
            check(has["type"] == "noul" and 0 < has["noul"] < 1 and sorted(has) == ["noul", "type"], has)
            check(big["legend"] == {"0": "little", "1": "big. or tall", "2": "huge"} and big["score"] == three["score"] and list(big["probabilities"]) == ["0", "1", "2"], big)
            check(s.stop() == 0, "exit code")


def messages():
    """Inputs that are lists: a message of the user is as its text, and calls of tools are there."""
    with Server([BINARY, "-m", "builtin:chat", "-t", "2", "-c", "1024"]) as s:
        want = decide(s, QUESTIONS)["answers"]
        check(decide(s, QUESTIONS, [{"role": "user", "content": INPUT}])["answers"] == want, "a message")
        check(decide(s, QUESTIONS, [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": INPUT}]}])["answers"] == want, "parts")
        talk = [{"role": "system", "content": "A story."}, {"role": "user", "content": INPUT}, {"role": "assistant", "content": [{"type": "output_text", "text": "I see."}, {"type": "refusal", "refusal": "No."}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "red"},
                {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "a dog"}]}]
        check(decide(s, QUESTIONS, talk)["answers"] != want, "a conversation")
        check(s.stop() == 0, "exit code")


def refused():
    q = lambda **more: [{"type": "choice", "instructions": "a", "choices": [{"value": "a"}, {"value": "b"}], **more}]
    level = lambda *levels: [{"type": "score", "instructions": "a", "levels": list(levels)}]
    wrong = [({"questions": q()}, "input", "missing"), ({"input": "x"}, "questions", "missing"), ({"input": "", "questions": q()}, "input", "not empty"), ({"input": 5, "questions": q()}, "input", "text"),
             ({"input": [5], "questions": q()}, "input", "input[0]"), ({"input": [{"role": "cat", "content": "x"}], "questions": q()}, "input", "input[0].role"), ({"input": [{"role": "user"}], "questions": q()}, "input", "input[0].content"),
             ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], "questions": q()}, "input", "picture"), ({"input": [{"type": "function_call", "name": "f"}], "questions": q()}, "input", "arguments"),
             ({"input": "x", "questions": []}, "questions", "1 to 400"), ({"input": "x", "questions": q() * 401}, "questions", "1 to 400"), ({"input": "x", "questions": {}}, "questions", "1 to 400"), ({"input": "x", "questions": [5]}, "questions", "questions[0].type"),
             ({"input": "x", "questions": q(type="noul")}, "questions", "questions[0].type"), ({"input": "x", "questions": q(instructions=None)}, "questions", "questions[0].instructions"), ({"input": "x", "questions": q(name=5)}, "questions", "questions[0].name"),
             ({"input": "x", "questions": q(choices=[{"value": "a"}])}, "questions", "2 to 255"), ({"input": "x", "questions": q(choices=[{"value": str(i)} for i in range(256)])}, "questions", "2 to 255"),
             ({"input": "x", "questions": q(choices=[{"value": "a"}, {"value": 5}])}, "questions", "choices[1].value"), ({"input": "x", "questions": q(choices=[{"value": "true"}, {"value": True}])}, "questions", "choices[1].value"),
             ({"input": "x", "questions": q(choices=[{"value": "a"}, {"value": ""}])}, "questions", "must not be empty"), ({"input": "x", "questions": level({"label": "a"})}, "questions", "2 to 255"), ({"input": "x", "questions": level({"label": "a"}, {"label": 3})}, "questions", "levels[1].label")]
    one = lambda **question: {"state": "x", "questions": {"n": {"instructions": "a", **question}}}
    others = [({"state": 5, "questions": {}}, "state"), ({"state": "x", "questions": []}, "an object of 1 to 400"), (one(type="predicate"), "questions.n.type"), (one(type="choice"), "questions.n.criteria"), (one(type="choice", criteria={"a": "b"}), "2 to 255"),
              (one(type="score", criteria={"a": "b", "c": "d"}), "questions.n.criteria"), (one(type="score", criteria=["a", 5]), "questions.n.criteria[1]"), ({**one(type="noul"), "images": ["x"]}, "images")]
    with Server([BINARY, "-m", "builtin:chat", "-t", "2", "-c", "256"]) as s:
        for body, param, words in wrong:
            e = post(s, "/v1/decisions", body, 400)["error"]
            check(e["type"] == "invalid_request_error" and e["param"] == param and words in e["message"], (body, e))
        for body, words in others:
            e = post(s, "/v1/systemone", body, 400)["error"]
            check(words in e["message"], (body, e))
        e = decide(s, q(), INPUT * 20, status=400)["error"]
        check(e["code"] == "context_length_exceeded", e)
        check(s.request("GET", "/v1/decisions")[0] == 405, "GET")
        check(len(decide(s, q())["answers"]) == 1, "afterwards")
        check(s.stop() == 0, "exit code")


def many():
    """Requests at the same time, in a cache that is too small for all, get the answers that each gets alone."""
    with Server([BINARY, "-m", "builtin:chat", "-t", "2", "-np", "4", "-c", "256"]) as s:
        bodies = [[{**CHOICE, "instructions": f"Who had ball {i}?"}, SCORE] for i in range(6)]
        want = [decide(s, b)["answers"] for b in bodies]
        got, told = {}, []

        def one(i):
            got[i] = decide(s, bodies[i % 6])["answers"]

        def tell(i):
            told.append(post(s, "/v1/chat/completions", {"messages": [{"role": "user", "content": f"Tell story {i}."}], "max_tokens": 60}))

        threads = [threading.Thread(target=tell if i % 3 == 0 else one, args=(i,)) for i in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check(len(told) == 8 and len(got) == 16 and all(got[i] == want[i % 6] for i in got), (len(told), [i for i in got if got[i] != want[i % 6]], got.get(1), want[1]))
        check(s.stop() == 0, "exit code")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
    print("ok")
