#!/usr/bin/env python3
"""Answers that llm-server keeps: previous_response_id, item_reference, conversations, Anthropic's threads. stored.py LLM-SERVER CASE."""
import json
import os
import pathlib
import sys
import tempfile
import time

from http_layer import check
from running import Server

BINARY = sys.argv[1]
SMALL = ["-c", "1024", "-np", "2", "-t", "1"]
TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {}}}


def post(s, path, body, status=200, **more):
    got, _, text = s.post(path, body, **more)
    check(got == status, f"{path} {str(body)[:300]}: {got} {text[:400]}")
    return json.loads(text) if not body.get("stream") or status != 200 else events(text)


def get(s, path, status=200, method="GET", **more):
    got, _, text = s.request(method, path, **more)
    check(got == status, f"{method} {path}: {got} {text[:400]}")
    return json.loads(text)


def events(text):
    return [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: {")]


def ask(s, input, n=12, status=200, **more):
    return post(s, "/v1/responses", dict({"max_output_tokens": n, "temperature": 0, "input": input}, **more), status)


def text_of(r):
    return "".join(p["text"] for x in r["output"] if x["type"] == "message" for p in x["content"])


def error_of(r):
    return r["error"]["code"], r["error"]["param"], r["error"]["message"]


# --- cases -----------------------------------------------------------------------------------------


def chain():
    """What a request names makes the prompt that it would have if all were sent again, and nothing of it is computed twice."""
    with Server([BINARY, *SMALL]) as s:
        one = ask(s, "Hello!", instructions="Be brief.")
        check(one["store"] is True and one["previous_response_id"] is None and one["id"].startswith("resp_"), one)
        two = ask(s, "And you?", instructions="Be brief.", previous_response_id=one["id"])
        check(two["previous_response_id"] == one["id"], two)
        sent = [{"role": "user", "content": "Hello!"}, *one["output"], {"role": "user", "content": "And you?"}]
        whole = ask(s, sent, instructions="Be brief.")
        item = ask(s, [sent[0], {"type": "item_reference", "id": one["output"][0]["id"]}, sent[-1]], instructions="Be brief.")
        for r in (whole, item):
            check(text_of(r) == text_of(two) and r["usage"]["input_tokens"] == two["usage"]["input_tokens"], r)
            check(r["usage"]["input_tokens_details"]["cached_tokens"] >= r["usage"]["input_tokens"] - 1, r["usage"])
        check(two["usage"]["input_tokens_details"]["cached_tokens"] > one["usage"]["input_tokens"], two["usage"])
        count = {"input": "And you?", "instructions": "Be brief.", "previous_response_id": one["id"]}
        check(post(s, "/v1/responses/input_tokens", count)["input_tokens"] == two["usage"]["input_tokens"], "counted")
        # a stream keeps the same, before it ends
        stream = ask(s, "And you?", instructions="Be brief.", previous_response_id=one["id"], stream=True)
        last = stream[-1]["response"]
        check(stream[0]["response"]["store"] is True and text_of(last) == text_of(two), last)
        kept = get(s, "/v1/responses/" + last["id"])
        check({**kept, "timings": 0} == {**last, "timings": 0}, f"{kept}\n{last}")
        three = [ask(s, "Why?", instructions="Be brief.", previous_response_id=r["id"]) for r in (two, last)]
        check(text_of(three[0]) == text_of(three[1]) and three[0]["usage"]["input_tokens"] == three[1]["usage"]["input_tokens"], three)
        compact = post(s, "/v1/responses/compact", {"previous_response_id": two["id"], "temperature": 0, "max_output_tokens": 5})
        check([x.get("role") for x in compact["output"]] == ["user", "user", None], compact["output"])
        check(s.stop() == 0, "exit code")


def kept():
    """Reading, listing and removing what is kept; store: false; ids that are gone."""
    with Server([BINARY, *SMALL]) as s:
        one = ask(s, "Hello!")
        two = ask(s, [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, {"role": "user", "content": "b"}], previous_response_id=one["id"])
        check(get(s, "/v1/responses/" + one["id"]) == one and get(s, "/responses/" + two["id"]) == two, "kept as it was answered")
        page = get(s, f"/v1/responses/{two['id']}/input_items?order=asc")
        check([x["content"][0]["text"] for x in page["data"]] == ["a", "b"] and not page["has_more"], page)
        check(page["first_id"] == page["data"][0]["id"] and page["last_id"] == page["data"][1]["id"] != page["first_id"], page)
        check(all(x["type"] == "message" and x["status"] == "completed" and x["content"][0]["type"] == "input_text" for x in page["data"]), page)
        check([x["id"] for x in get(s, f"/v1/responses/{two['id']}/input_items")["data"]] == [page["last_id"], page["first_id"]], "newest first")
        first = get(s, f"/v1/responses/{two['id']}/input_items?limit=1")
        check(first["has_more"] and [x["id"] for x in first["data"]] == [page["last_id"]], first)
        rest = get(s, f"/v1/responses/{two['id']}/input_items?limit=1&after={first['last_id']}")
        check(not rest["has_more"] and [x["id"] for x in rest["data"]] == [page["first_id"]], rest)
        for query, words in (("limit=0", "from 1 to 100"), ("limit=x", "limit"), ("limit=101", "from 1 to 100"), ("order=up", "asc or desc")):
            check(words in get(s, f"/v1/responses/{two['id']}/input_items?{query}", 400)["error"]["message"], query)
        check(text_of(ask(s, [{"type": "item_reference", "id": page["first_id"]}])) is not None, "an item that was sent")
        check("X-Conversation-Id" in get(s, f"/v1/responses/{one['id']}?stream=true", 400)["error"]["message"], "stream=true")
        check(get(s, "/v1/responses/" + one["id"], method="DELETE") == {"id": one["id"], "object": "response", "deleted": True}, "removed")
        for path, method in ((one["id"], "GET"), (one["id"], "DELETE"), (one["id"] + "/input_items", "GET"), ("none", "GET"), (two["id"] + "/none", "GET")):
            words = get(s, "/v1/responses/" + path, 404, method=method)["error"]["message"]
            check(words.startswith("Response not found: /v1/responses/" if path[-5:] != "/none" else "there is no such part of a response: /v1/"), words)
        for path, method in (("/v1/responses/resp_1/cancel", "GET"), ("/v1/conversations/conv_1/nope", "GET")):
            words = get(s, path, 404, method=method)["error"]["message"]
            check("there is no such part of a " in words and words.count("not found") == 0 and "ID/" in words, words)
        check("in the background" in post(s, f"/v1/responses/{two['id']}/cancel", {}, 400)["error"]["message"], "nothing to cancel")
        check("Response not found" in post(s, "/v1/responses/resp_1/cancel", {}, 404)["error"]["message"], "nothing to cancel")
        talk = post(s, "/v1/conversations", {})
        for path in ("conv_1", "conv_1/items", talk["id"] + "/items/msg_1"):
            words = get(s, "/v1/conversations/" + path, 404)["error"]["message"]
            check("not found: /v1/conversations/" in words and '"store"' not in words, words)
        e = get(s, "/v1/models/nope", 404, headers={"anthropic-version": "2023-06-01"})
        check(e["type"] == "error" and e["error"]["type"] == "not_found_error" and "param" not in e["error"], e)
        check("param" in get(s, "/v1/models/nope", 404)["error"], "OpenAI's form")
        code, param, words = error_of(ask(s, "a", status=400, previous_response_id=two["id"]))
        check((code, param) == ("previous_response_not_found", "previous_response_id") and "what it follows" in words, "a chain that is broken")
        code, param, words = error_of(ask(s, [{"type": "item_reference", "id": one["output"][0]["id"]}], status=404))
        check(param == "input" and words.startswith("input[0]: Item with id '"), words)
        none = ask(s, "Hello!", store=False)
        check(none["store"] is False and get(s, "/v1/responses/" + none["id"], 404), "not kept")
        check(error_of(ask(s, "a", status=400, previous_response_id=none["id"]))[0] == "previous_response_not_found", "not kept")
        check(ask(s, "a", status=400, store="x")["error"]["param"] == "store", "store")
    with Server([BINARY, *SMALL, "--no-store"]) as s:
        one = ask(s, "Hello!")
        check(one["store"] is False, one)
        for body in ({"previous_response_id": one["id"]}, {"conversation": "conv_1"}, {"input": [{"type": "item_reference", "id": one["output"][0]["id"]}]}):
            check("--no-store" in ask(s, body.pop("input", "a"), status=400, **body)["error"]["message"], body)
        check("--no-store" in get(s, "/v1/responses/" + one["id"], 404)["error"]["message"], "nothing is kept")
        check("--no-store" in post(s, "/v1/conversations", {}, 404)["error"]["message"], "no conversations")
        e = post(s, "/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "a"}], "thread": {"type": "create"}}, 400)["error"]
        check(e["details"] == {"error_code": "thread_unsupported_request"} and "without" in e["message"], e)


def owners():
    """Another key reads nothing; all is forgotten after its time; memory is bounded."""
    with Server([BINARY, *SMALL, "--api-key", "a", "--api-key", "b"]) as s:
        a, b = ({"Authorization": "Bearer " + k} for k in "ab")
        body = {"max_output_tokens": 5, "input": "Hello!"}
        one = post(s, "/v1/responses", body, headers=a)
        item = [{"type": "item_reference", "id": one["output"][0]["id"]}]
        for more, status in (({"previous_response_id": one["id"]}, 400), ({"input": item}, 404)):
            post(s, "/v1/responses", {**body, **more}, status, headers=b)
            post(s, "/v1/responses", {**body, **more}, headers=a)
        get(s, "/v1/responses/" + one["id"], 404, headers=b)
        get(s, "/v1/responses/" + one["id"], 404, method="DELETE", headers=b)
        get(s, "/v1/responses/" + one["id"], 401)
        get(s, "/v1/responses/" + one["id"], headers=a)
        talk = post(s, "/v1/conversations", {}, headers=a)
        get(s, "/v1/conversations/" + talk["id"], 404, headers=b)
        post(s, "/v1/responses", {**body, "conversation": talk["id"]}, 404, headers=b)
    with tempfile.TemporaryDirectory() as folder: # a model that is read again does not make others of the clients
        keys, models = (os.path.join(folder, name) for name in ("keys", "models.ini"))
        write = lambda path, text: pathlib.Path(path).write_text(text)
        write(keys, "a\nb\n"), write(models, "[m]\nmodel = builtin:chat\n")
        with Server([BINARY, *SMALL, "--models", models, "--api-key-file", keys]) as s:
            write(keys, "b\na\n"), write(models, "[m]\nmodel = builtin:chat\ntemp = 0.5\n")
            get(s, "/models?reload=1", headers=a)
            one = post(s, "/v1/responses", {**body, "model": "m"}, headers=a)
            get(s, "/v1/responses/" + one["id"], 404, headers=b)
            get(s, "/v1/responses/" + one["id"], headers=a)
    with Server([BINARY, *SMALL, "--store-time", "1", "--request-memory", "16"]) as s:
        one = ask(s, "Hello!")
        end = time.monotonic() + 60
        while s.get("/v1/responses/" + one["id"] + "x")[0] == 404 and held(s) > 0 and time.monotonic() < end:
            time.sleep(0.1)
        check(held(s) == 0 and get(s, "/v1/responses/" + one["id"], 404), "forgotten")
    with Server([BINARY, *SMALL, "--request-memory", "16"]) as s:
        long = [ask(s, "Hello!", n=1, metadata={"k": "x" * 120000})["id"] for _ in range(24)]
        check(0 < held(s) <= 2 << 20, held(s))
        check([s.get("/v1/responses/" + x)[0] for x in (long[0], long[-1])] == [404, 200], "the oldest go first")
        for x in long:
            s.request("DELETE", "/v1/responses/" + x)
        check(held(s) == 0, held(s))
    fails = __import__("subprocess").run([BINARY, "--store-time", "0"], capture_output=True, text=True)
    check(fails.returncode == 2 and "--store-time" in fails.stderr, fails)


def held(s):
    lines = dict(x.rsplit(" ", 1) for x in s.get("/metrics")[2].decode().splitlines() if x[0] != "#")
    return float(lines['llm_request_memory_bytes{use="store"}'])


def conversations():
    """A conversation gets the items of each answer that names it."""
    with Server([BINARY, *SMALL]) as s:
        hello = {"role": "user", "content": "Hello!"}
        talk = post(s, "/v1/conversations", {"items": [hello], "metadata": {"k": "v"}})
        check(talk["object"] == "conversation" and talk["id"].startswith("conv_") and talk["metadata"] == {"k": "v"}, talk)
        check(get(s, "/v1/conversations/" + talk["id"]) == talk, "kept")
        one = ask(s, "And you?", conversation=talk["id"])
        check(one["conversation"] == {"id": talk["id"]}, one)
        two = ask(s, "Why?", conversation={"id": talk["id"]}, stream=True)[-1]["response"]
        whole = ask(s, [hello, {"role": "user", "content": "And you?"}, *one["output"], {"role": "user", "content": "Why?"}])
        check(text_of(two) == text_of(whole) and two["usage"]["input_tokens"] == whole["usage"]["input_tokens"], two)
        items = get(s, f"/v1/conversations/{talk['id']}/items?order=asc")["data"]
        check([x["role"] for x in items] == ["user", "user", "assistant", "user", "assistant"], items)
        check(items[2]["id"] == one["output"][0]["id"] and len({x["id"] for x in items}) == 5, items)
        more = post(s, f"/v1/conversations/{talk['id']}/items", {"items": [hello, {"role": "user", "content": "And?"}]})
        check([x["content"][0]["text"] for x in more["data"]] == ["Hello!", "And?"] and not more["has_more"], f"what was added: {more}")
        check(more["first_id"] == more["data"][0]["id"] and more["last_id"] == more["data"][1]["id"], more)
        path = f"/v1/conversations/{talk['id']}/items/"
        first = more["data"][0]["id"]
        check(get(s, path + first) == more["data"][0] and get(s, path + "none", 404), "an item")
        check(text_of(ask(s, [{"type": "item_reference", "id": first}])) == text_of(ask(s, "Hello!")), "an item that is named")
        check(get(s, path + first, method="DELETE") == talk and get(s, path + first, 404), "an item is removed")
        check([x["id"] for x in get(s, path[:-1] + "?order=asc")["data"]] == [x["id"] for x in [*items, more["data"][1]]], "the others stay")
        get(s, path + first, 404, method="DELETE")
        ask(s, "Not kept", conversation=talk["id"], store=False)
        check(len(get(s, f"/v1/conversations/{talk['id']}/items")["data"]) == 6, "store: false")
        check("belongs to the conversation" in ask(s, "a", status=400, previous_response_id=one["id"])["error"]["message"], "previous_response_id")
        get(s, "/v1/responses/" + one["id"], method="DELETE")
        ask(s, "And now?", conversation=talk["id"])
        named = post(s, f"/v1/conversations/{talk['id']}", {"metadata": {"n": "2"}})
        check(named == {**talk, "metadata": {"n": "2"}} == get(s, "/v1/conversations/" + talk["id"]), named)
        check(len(get(s, f"/v1/conversations/{talk['id']}/items")["data"]) == 8, "its items stay")
        for body in ({}, {"items": [hello]}):
            e = post(s, f"/v1/conversations/{talk['id']}", body, 400)["error"]
            check(e["param"] == "metadata" and "metadata" in e["message"], e)
        check(get(s, "/v1/conversations/" + talk["id"]) == named, "they stay without others")
        check(post(s, f"/v1/conversations/{talk['id']}", {"metadata": None})["metadata"] == {}, "null takes them away")
        for body in ({"items": 7}, {"items": ["a"]}, {"metadata": []}, {}, {"items": []}):
            post(s, f"/v1/conversations/{talk['id']}/items", body, 400)
        picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
        for bad, words in ((dict(hello, role="usr"), 'items[1]: "role" must be'), ({"type": "mesage", **hello}, 'did you mean "message"?'),
                           ({"type": "nonsense", "content": "a"}, 'items of type "nonsense"'), (dict(hello, content=5), 'items[1]: "content" must be'),
                           (dict(hello, content=[picture]), "items[1]: "), ({"type": "function_call"}, "items[1]: a call needs")):
            for path in ("/v1/conversations", f"/v1/conversations/{talk['id']}/items"):
                e = post(s, path, {"items": [hello, bad]}, 400)["error"]
                check(e["param"] == "items" and words in e["message"] and "items[1]: " in e["message"], f"{bad}: {e}")
        check("items[0]: " in post(s, "/v1/conversations", {"items": [{"type": "nonsense"}]}, 400)["error"]["message"], "only nonsense")
        e = post(s, f"/v1/conversations/{talk['id']}/items", {"items": [{"type": "item_reference", "id": "msg_none_0"}]}, 404)["error"]
        check("items[0]: Item with id" in e["message"], e)
        check(len(get(s, f"/v1/conversations/{talk['id']}/items")["data"]) == 8, "nothing of these is kept")
        for path in ("/v1/conversations", f"/v1/conversations/{talk['id']}"):
            e = post(s, path, {"metadata": {"a": "b", "n": 1}}, 400)["error"]
            check(e["param"] == "metadata" and '"n" must be a string, not a number' in e["message"], e)
        status, headers, _ = s.post("/v1/conversations", {"metdata": {}, "itmes": [], "items": [hello, {"type": "web_search_call", "id": "ws_1"}]})
        check(status == 200 and headers["X-Ignored-Fields"] == "metdata, itmes, items.web_search_call", headers)
        post(s, "/v1/conversations/conv_none/items", {"items": [hello]}, 404)
        post(s, f"/v1/conversations/{talk['id']}/none", {"items": [hello]}, 404)
        check(get(s, "/v1/conversations/" + talk["id"], method="DELETE")["deleted"] is True, "removed")
        check(error_of(ask(s, "a", status=404, conversation=talk["id"]))[1] == "conversation", "gone")
        check(s.request("POST", "/v1/conversations", b"")[0] == 200, "nothing need be said")
        check(s.stop() == 0, "exit code")
    with Server([BINARY, *SMALL, "--strict-fields"]) as s:
        check('did you mean "metadata"?' in post(s, "/v1/conversations", {"metdata": {}}, 400)["error"]["message"], "strict")


def full():
    """A conversation that has no room for an answer says so, and loses nothing."""
    with Server([BINARY, *SMALL, "--request-memory", "64"]) as s:
        talk = post(s, "/v1/conversations", {})
        path = f"/v1/conversations/{talk['id']}/items"
        items = [{"role": "user", "content": "Hello!"}, {"type": "function_call_output", "call_id": "c", "output": "x" * 100000}]
        for _ in range(10):
            post(s, path, {"items": items})
        e = post(s, path, {"items": items}, 400)["error"]
        check("--request-memory" in e["message"] and "1048576" in e["message"] and e["param"] == "items", e)
        check(len(get(s, path + "?limit=100")["data"]) == 20, "nothing is lost")
        code, param, words = error_of(ask(s, "a", status=400, conversation=talk["id"]))
        check(param == "conversation" and "--request-memory" in words, words)
        words = s.post("/v1/responses/compact", {"conversation": talk["id"], "max_output_tokens": 5})[2]
        check(b"begin another" not in words, f"what is not added to it has no need of room: {words}")
        check(ask(s, "Hello!", n=2, status=400, conversation=talk["id"], stream=True)["error"]["param"] == "conversation", "as a stream")


def threads():
    """Anthropic's threads, whole and as streams."""
    with Server([BINARY, *SMALL]) as s:
        base = {"max_tokens": 12, "temperature": 0}
        first = {**base, "system": "Be brief.", "tools": [TOOL], "messages": [{"role": "user", "content": "Hello!"}]}
        more = {**base, "messages": [{"role": "user", "content": "And you?"}]}

        def answer(body):
            if not body.get("stream"):
                return post(s, "/v1/messages", body)
            r = post(s, "/v1/messages", body)
            m, text = r[0]["message"], "".join(e["delta"].get("text", "") for e in r if e["type"] == "content_block_delta")
            return {**m, "content": [{"type": "text", "text": text}], "usage": r[-2]["usage"]}

        def size(m):
            return m["usage"]["input_tokens"] + m["usage"]["cache_read_input_tokens"]

        for stream in (False, True):
            one = answer({**first, "thread": {"type": "create"}, "stream": stream})
            two = answer({**more, "thread": {"type": "continue", "previous_message_id": one["id"]}, "stream": stream})
            whole = answer({**first, "messages": [*first["messages"], {"role": "assistant", "content": one["content"]}, *more["messages"]]})
            check(two["content"] == whole["content"] and size(two) == size(whole), f"{stream}: {two}\n{whole}")
            three = answer({**more, "thread": {"type": "continue", "previous_message_id": two["id"]}})
            check(size(three) > size(two) and three["usage"]["cache_read_input_tokens"] > size(two), three)
            count = {**more, "thread": {"type": "continue", "previous_message_id": one["id"]}}
            check(post(s, "/v1/messages/count_tokens", count)["input_tokens"] == size(two), "counted")
        status, _, text = s.post("/v1/messages", {**more, "thread": {"type": "continue", "previous_message_id": "msg_none"}})
        e = json.loads(text)["error"]
        check(status == 404 and e["type"] == "not_found_error" and e["details"] == {"error_code": "thread_not_found"}, text)
        plain = post(s, "/v1/messages", first)
        post(s, "/v1/messages", {**more, "thread": {"type": "continue", "previous_message_id": plain["id"]}}, 404)
        check(s.stop() == 0, "exit code")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
    print("ok")
