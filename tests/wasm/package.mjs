// The package for JavaScript, in node. GGL_WASM_TEST: FOLDER_OF_PACKAGE:LLM_CLI:FOLDER_OF_MODELS
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { join } from "node:path";

const [folder, cli, models] = process.env.GGL_WASM_TEST.split(":");
const { Model } = await import(join(folder, "index.mjs"));

async function all(pieces) {
    let text = "";
    for await (const piece of pieces) text += piece;
    return text;
}

function native(...args) {
    return execFileSync(cli, ["-q", ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

test("texts, tokens and facts are those of the program", async () => {
    const model = await Model.load("builtin:stories");
    const text = await all(model.generate("Once upon a time", { maxTokens: 60, seed: 1, sampling: { temperature: 0.8 } }));
    assert.equal("Once upon a time" + text, native("-p", "Once upon a time", "-n", "60", "-s", "1", "--temp", "0.8").trimEnd());
    assert.deepEqual([model.lastRun.finish, model.lastRun.tokens], ["length", 60]);
    const ids = await model.encode("Once upon a time");
    assert.equal(await model.decode(ids), "Once upon a time");
    assert.equal((await model.logits(ids)).length, model.nVocab);
    assert.deepEqual(JSON.parse(await all(model.generate("A list:", { maxTokens: 50, jsonSchema: { type: "array", items: { type: "boolean" }, maxItems: 3 } }))).filter((x) => typeof x !== "boolean"), []);
    const stopped = await all(model.generate("Once upon a time", { seed: 1, stop: ["."] }));
    assert.ok(!stopped.includes(".") && model.lastRun.finish === "stop");
    model.close();
});

test("a conversation, from bytes, a Blob, a path and an address, with progress", async () => {
    const path = join(models, "stories-chat.gguf"), bytes = await readFile(path), texts = [];
    const server = createServer((request, response) => {
        response.writeHead(request.url === "/model.gguf" ? 200 : 404, { "content-length": request.url === "/model.gguf" ? bytes.length : 0 });
        response.end(request.url === "/model.gguf" ? bytes : "");
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const at = `http://127.0.0.1:${server.address().port}`;
    for (const source of [bytes, new Blob([bytes]), path, new URL(at + "/model.gguf")]) {
        const told = [];
        const model = await Model.load(source, { progress: (done, total) => told.push([done, total]) });
        assert.ok(told.length > 0 && told.every(([done, total]) => done <= total));
        texts.push(await all(model.chat([{ role: "user", content: "Tell me a story about a fox." }], { seed: 3 })));
        assert.equal(model.lastRun.finish, "end");
        model.close();
    }
    assert.ok(texts[0].length > 100 && texts.every((t) => t === texts[0]));
    await assert.rejects(Model.load(at + "/none.gguf"), /the server answers 404/);
    server.close();
});

test("what is stopped ends, and the model goes on", async () => {
    const model = await Model.load("builtin:stories");
    const stop = new AbortController();
    let n = 0;
    await assert.rejects(async () => {
        for await (const piece of model.generate("Once", { signal: stop.signal })) if (piece && ++n === 5) stop.abort();
    }, { name: "AbortError" });
    for await (const piece of model.generate("Once")) if (piece) break;
    assert.ok((await all(model.generate("Once", { maxTokens: 5 }))).length > 0);
    await assert.rejects(model.generate("Once", { signal: AbortSignal.abort() }).next(), { name: "AbortError" });
    await assert.rejects(Model.load("builtin:stories", { signal: AbortSignal.abort() }), { name: "AbortError" });
    model.close();
    await assert.rejects(model.encode("a"), /closed/);
});

test("mistakes are errors with the library's message", async () => {
    await assert.rejects(Model.load("nothing.gguf"), /nothing.gguf: .*No such file/);
    await assert.rejects(Model.load(new Uint8Array(100)), /not a GGUF file/);
    await assert.rejects(Model.load("builtin:nothing"), /builtin:nothing/);
    const whole = await readFile(join(models, "stories-chat.gguf"));
    await assert.rejects(Model.load(whole.subarray(0, 5000)), Error);
    const model = await Model.load("builtin:stories");
    await assert.rejects(all(model.generate("a", { grammar: "root ::= [" })), /']' is missing/);
    await assert.rejects(all(model.generate("a", { sampling: { nonsense: 1 } })), /no number 'nonsense'/);
    await assert.rejects(all(model.chat([{ role: "user", content: "a" }])), /no chat template/);
    await assert.rejects(model.embed("a"), Error);
    model.close();
});
