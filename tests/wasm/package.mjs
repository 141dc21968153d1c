// The package for JavaScript, in node. GGL_WASM_TEST: FOLDER_OF_PACKAGE:LLM_CLI:FOLDER_OF_MODELS
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const [folder, cli, models] = process.env.GGL_WASM_TEST.split(":");
const [{ Model }, { Exit, Wasi }, { Lines }, { toProgram, toReal }] =
    await Promise.all(["index", "wasi", "files-memory", "files-node"].map((name) => import(join(folder, `${name}.mjs`))));

/** The package's worker for a test, after `code` ran in it; returns how to post messages, and the answer to one. */
function startWorker(t, code) {
    const worker = new Worker(`(async () => { ${code}; await import(${JSON.stringify(join(folder, "worker.mjs"))}); })()`, { eval: true });
    const answers = new Map();
    t.after(() => worker.terminate());
    worker.on("message", (m) => ("result" in m || "error" in m) && answers.get(m.id)?.(m));
    worker.on("message", ({ thread: data }) => { // as Model does
        if (!data) return;
        const thread = new Worker(join(folder, "thread.mjs"));
        t.after(() => thread.terminate());
        thread.once("message", () => worker.postMessage({ what: "started", k: data.k }));
        thread.postMessage(data);
    });
    worker.on("error", (e) => answers.forEach((answer) => answer({ error: e })));
    const post = (m) => worker.postMessage(m);
    return { post, ask: (m) => new Promise((resolve) => { answers.set(m.id, resolve); post(m); }) };
}

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

test("threads change no bit, and are as many as were asked for", async () => {
    const results = [];
    for (const nThreads of [1, 2, 5]) {
        const model = await Model.load("builtin:stories", { nThreads });
        assert.equal(model.nThreads, nThreads);
        const ids = await model.encode("Once upon a time, there was a fox who lived in a wood. ".repeat(8));
        results.push([Array.from(await model.logits(ids)), await all(model.generate("Once upon a time", { maxTokens: 40, seed: 1 }))]);
        model.close();
    }
    assert.deepEqual(results[1], results[0]);
    assert.deepEqual(results[2], results[0]);
    await assert.rejects(Model.load("builtin:stories", { nThreads: 1000 }), /nThreads must be an integer from 0 to/);
});

test("threads that cannot be started are an error for who asked for them, and else one thread", async (t) => {
    const dir = await mkdtemp(join(tmpdir(), "ggml-lite-"));
    t.after(() => rm(dir, { recursive: true }));
    await cp(folder, dir, { recursive: true });
    await writeFile(join(dir, "thread.mjs"), 'throw new Error("no thread today");');
    const { Model: Poor } = await import(join(dir, "index.mjs"));
    await assert.rejects(Poor.load("builtin:stories", { nThreads: 2 }), /no thread today/);
    const model = await Poor.load("builtin:stories");
    assert.equal(model.nThreads, 1);
    assert.ok(await all(model.generate("Once", { maxTokens: 5, seed: 1 })));
    model.close();
});

test("a thread that fails in the middle of its work ends the model, which waits for it", async (t) => {
    const dir = await mkdtemp(join(tmpdir(), "package-"));
    t.after(() => rm(dir, { recursive: true }));
    await cp(folder, dir, { recursive: true });
    const file = join(dir, "thread.mjs"), code = await readFile(file, "utf8");
    await writeFile(file, code.replace("__stack_pointer.value = stack", "__stack_pointer.value = 48")); // so that what it runs has no stack
    assert.notEqual(await readFile(file, "utf8"), code);
    const { Model: Poor } = await import(join(dir, "index.mjs"));
    await assert.rejects(async () => {
        const model = await Poor.load("builtin:stories", { nThreads: 2 });
        await all(model.generate("Once upon a time, there was a fox who lived in a wood. ".repeat(8), { maxTokens: 2 }));
    }, /a thread of the model ended: .*memory access/);
});

test("loading stops at any time, also while threads start and wait for each other", async () => {
    for (let ms = 0; ms < 300; ms += 15) {
        const stop = new AbortController(), loading = Model.load("builtin:stories", { nThreads: 6, signal: stop.signal });
        setTimeout(() => stop.abort(), ms);
        await loading.then((model) => model.close(), (e) => assert.equal(e.name, "AbortError"));
    }
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
    assert.match(texts[0], /^\S/, "programs print no space before an answer either");
    await assert.rejects(Model.load(at + "/none.gguf"), /the server answers 404/);
    server.close();
});

test("progress and notes of each load", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "f32-")), path = join(folder, "f32.gguf");
    t.after(() => rm(folder, { recursive: true }));
    execFileSync(join(dirname(cli), "llm-quantize"), ["-q", "--allow-requantize", "builtin:stories", path, "f32"]);
    for (const source of [path, await readFile(path)]) { // nothing of such a file is prepared
        const told = [], notes = [];
        const model = await Model.load(source, { progress: (done, total) => told.push([done, total]), note: (text) => notes.push(text), nCtx: 2048 });
        model.close();
        assert.ok(told.length > 0 && told.at(-1)[0] === told.at(-1)[1], "the end of the loading");
        assert.ok(notes.some((text) => /^the model was trained on 512 tokens at once; text beyond them may make no sense$/.test(text)), String(notes));
    }
});

test("messages have the names of this package", async (t) => {
    const { withOwnNames } = await import(join(folder, "options.mjs"));
    assert.equal(withOwnNames("n_ctx, n_threads, llm_eval or cache_type_k and cache_type_v (n_ubatch)."), "nCtx, nThreads, logits or cacheType (nUbatch).");
    assert.equal(withOwnNames("n_ctx (-c) of (n_ubatch, or --ubatch), in a (--b).gguf"), "nCtx of (nUbatch), in a (--b).gguf");
    for (const same of ["/a/n_ctx/b", "n_ctx.gguf", "n_ctx-1", "my_n_ctx", "top_k", "12 | root ::= n_ctx \"a\"", "rule 'n_ctx' is not defined",
        "the template refuses this conversation: n_ctx and max_tokens must be set"]) assert.equal(withOwnNames(same), same);
    await assert.rejects(Model.load("builtin:stories", { cacheType: "q9" }), (e) => /cacheType/.test(e.message) && !/cache_type/.test(e.message));
    const model = await Model.load("builtin:stories", { nCtx: 16 });
    t.after(() => model.close());
    await assert.rejects(model.logits([]), /^Error: logits needs at least one token$/);
    await assert.rejects(all(model.chat([{ role: "user", content: "a" }])), /; chatTemplate gives one/);
});

test("a kind of picture that WebAssembly does not read is no advice to install something", async (t) => {
    const model = await Model.load("builtin:shapes");
    t.after(() => model.close());
    const png = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1").toString("base64");
    const content = [{ type: "text", text: "What is it?" }, { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }];
    await assert.rejects(all(model.chat([{ role: "user", content }])), (e) => /PNG, which is not read in WebAssembly: convert it/.test(e.message) && !/Debian/.test(e.message));
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
    for (const name of ["mein Löwe (1).gguf", "a+b=c%20.gguf", "名前.gguf"])
        await assert.rejects(Model.load(new File(["no model"], name)), (e) => e.message.startsWith(`${name}: `));
    await assert.rejects(Model.load(new File(["no model"], "..")), /not a GGUF file/);
    const whole = await readFile(join(models, "stories-chat.gguf"));
    await assert.rejects(Model.load(whole.subarray(0, 5000)), Error);
    const model = await Model.load("builtin:stories");
    await assert.rejects(all(model.generate("a", { grammar: "root ::= [" })), /']' is missing/);
    await assert.rejects(all(model.generate("a", { sampling: { nonsense: 1 } })), /unknown option 'sampling.nonsense'; there are sampling\.\w+, /);
    await assert.rejects(all(model.chat([{ role: "user", content: "a" }])), /no chat template/);
    await assert.rejects(model.embed("a"), Error);
    model.close();
});

test("unknown options and wrong types are refused by name", async (t) => {
    const model = await Model.load("builtin:stories", { progress: undefined, nUbatch: 64 });
    t.after(() => model.close());
    const unknown = (name, near) => ({ name: "TypeError", message: new RegExp(`^unknown option '${name}'; ${near}`) });
    const must = (name, wanted, kind = "TypeError") => ({ name: kind, message: new RegExp(`^${name} must be ${wanted}`) });
    const generate = (...args) => all(model.generate(...args)), load = (...args) => Model.load(...args);
    const wrong = [
        [() => generate("Once", { temperature: 0 }), unknown("temperature", "did you mean sampling\\.temperature\\?$")],
        [() => generate("Once", { temprature: 0 }), unknown("temprature", "did you mean sampling\\.temperature\\?$")],
        [() => generate("Once", { max_tokens: 3 }), unknown("max_tokens", "did you mean maxTokens\\?$")],
        [() => generate("Once", { sampling: { topk: 3 } }), unknown("sampling\\.topk", "did you mean sampling\\.top_k\\?$")],
        [() => load("builtin:stories", { contextSise: 5 }), unknown("contextSise", "there are progress, note, .*nCtx")],
        [() => load("builtin:stories", { n_ctx: 5 }), unknown("n_ctx", "did you mean nCtx\\?$")],
        [() => model.encode("a", { specials: true }), unknown("specials", "did you mean special\\?$")],
        [() => all(model.chat([], { templat: {} })), unknown("templat", "did you mean template\\?$")],
        [() => generate("Once", { toString: 1 }), unknown("toString", "")],
        [() => generate(), must("prompt", "a string, not undefined$")],
        [() => generate(42), must("prompt", "a string, not 42$")],
        [() => generate(null), must("prompt", "a string, not null$")],
        [() => generate("a", 5), must("options", "an object, not 5$")],
        [() => generate("a", null), must("options", "an object, not null$")],
        [() => generate("a", { maxTokens: 1.5 }), must("maxTokens", "an integer from 0 to \\d+, not 1.5$", "RangeError")],
        [() => generate("a", { maxTokens: "3" }), must("maxTokens", 'an integer from 0 to \\d+, not "3"$')],
        [() => generate("a", { seed: -1 }), must("seed", "an integer", "RangeError")],
        [() => generate("a", { sampling: 5 }), must("sampling", "an object of numbers, not 5$")],
        [() => generate("a", { sampling: { top_k: "5" } }), must("sampling\\.top_k", 'a number, not "5"$')],
        [() => generate("a", { sampling: { top_p: NaN } }), must("sampling\\.top_p", "a finite number, not NaN$", "RangeError")],
        [() => generate("a", { stop: "." }), must("stop", 'an array of strings, not "\\."$')],
        [() => generate("a", { stop: ["a", 5] }), must("stop\\[1\\]", "a string, not 5$")],
        [() => generate("a", { grammar: 5 }), must("grammar", "a string, not 5$")],
        [() => generate("a", { jsonSchema: [] }), must("jsonSchema", "an object or a string, not an array$")],
        [() => generate("a", { signal: {} }), must("signal", "an AbortSignal, not of type Object$")],
        [() => generate("a", { progress: "x" }), must("progress", 'a function, not "x"$')],
        [() => all(model.chat()), must("messages", "an array of messages .*, not undefined$")],
        [() => all(model.chat(["a"])), must("messages\\[0\\]", 'a message .*, not "a"$')],
        [() => all(model.chat([{ content: "a" }])), must("messages\\[0\\]\\.role", "a string, not undefined$")],
        [() => all(model.chat([{ role: "user", content: 5 }])), must("messages\\[0\\]\\.content", "a string, .*, not 5$")],
        [() => model.decode([99999999]), must("ids\\[0\\]", `an integer from 0 to ${model.nVocab - 1}, not 99999999$`, "RangeError")],
        [() => model.decode([1, -1]), must("ids\\[1\\]", "an integer from 0 to", "RangeError")],
        [() => model.decode([1n]), must("ids\\[0\\]", "an integer .*, not 1n$")],
        [() => model.decode("12"), must("ids", 'a list of tokens, not "12"$')],
        [() => model.decode(null), must("ids", "a list of tokens, not null$")],
        [() => model.logits([model.nVocab]), must("ids\\[0\\]", "an integer", "RangeError")],
        [() => model.logits(), must("ids", "a list of tokens")],
        [() => model.encode(5), must("text", "a string, not 5$")],
        [() => model.embed(), must("text", "a string, not undefined$")],
        [() => load(42), must("source", "an address, a path, .*, not 42$")],
        [() => load({}), must("source", "an address, a path, .*, not of type Object$")],
        [() => load(), must("source", "an address, a path, .*, not undefined$")],
        [() => load(""), must("source", 'an address, a path, .*, not ""$', "RangeError")],
        [() => load("builtin:stories", { mmproj: 5 }), must("mmproj", "an address, a path, .*, not 5$")],
        [() => load("builtin:stories", { nCtx: -5 }), must("nCtx", "an integer", "RangeError")],
        [() => load("builtin:stories", { progress: "x" }), must("progress", 'a function, not "x"$')],
        [() => load("builtin:stories", { cache: 1 }), must("cache", "true or false, not 1$")],
    ];
    for (const [call, error] of wrong) await assert.rejects(call, error, String(call));
    await assert.rejects(all(model.chat([{ role: "user", content: "a", more: () => {} }])), { name: "DataCloneError" });
    const ids = await model.encode("Once", { special: undefined });
    assert.equal(await model.decode(new Set(ids)), await model.decode(Uint32Array.from(ids)));
    assert.ok((await generate("Once", { maxTokens: 3, seed: undefined, sampling: { temperature: undefined, top_k: 1 } })).length > 0);
});

test("what a callback throws goes to who waits, and the work stops", async (t) => {
    const ways = { throws: () => { throw new Error("a mistake"); }, rejects: async () => { throw new Error("a mistake"); } };
    const model = await Model.load("builtin:stories", { nCtx: 1024, nUbatch: 16 });
    t.after(() => model.close());
    const ids = await model.encode("Once upon a time there was a fox. ".repeat(500), { special: false });
    const prompt = await model.decode(ids.slice(0, model.nCtx - 40));
    for (const [name, callback] of Object.entries(ways)) {
        await assert.rejects(Model.load("builtin:stories", { progress: callback }), /^Error: a mistake$/, name);
        await assert.rejects(all(model.generate(name + prompt, { progress: callback })), /^Error: a mistake$/, name);
        await all(model.generate(name + prompt, { maxTokens: 1 }));
        assert.ok(model.lastRun.promptTokens > 16, `${name}: the prompt was read to its end, but for ${model.lastRun.promptTokens} tokens`);
    }
});

test("run.mjs says in one line what it cannot run", async (t) => {
    const dir = await mkdtemp(join(tmpdir(), "ggml-lite-"));
    t.after(() => rm(dir, { recursive: true }));
    const bad = join(dir, "bad.wasm");
    await writeFile(bad, "no program");
    const tries = [[[], 2, /^usage: /], [["--what"], 2, /^unknown flag '--what'; usage: /], [[join(dir, "nosuch.wasm")], 1, /nosuch\.wasm: no such file/], [[dir], 1, /EISDIR/],
        [[bad], 1, /bad\.wasm: .*magic/], [[join(folder, "ggml-lite.wasm")], 1, /ggml-lite\.threads\.wasm: cannot be run/]];
    for (const [args, code, line] of tries) {
        const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "run.mjs"), ...args], { encoding: "utf8" });
        assert.deepEqual([status, stdout, stderr.split("\n").length], [code, "", 2], stderr);
        assert.match(stderr, line);
    }
});

test("what is stopped before the library is ready fetches nothing", async (t) => {
    let asked = 0;
    const server = createServer((request, response) => {
        asked++;
        response.end();
    });
    t.after(() => server.close());
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${server.address().port}/model.gguf`;
    for (const what of [{ source: { url }, options: {} }, { source: "builtin:stories", options: { mmproj: { url } } }]) {
        const { ask, post } = startWorker(t, "");
        const opened = ask({ id: 1, what: "open", ...what });
        post({ what: "abort", of: 1 });
        assert.equal((await opened).error?.name, "AbortError");
    }
    assert.equal(asked, 0);
});

test("addresses above 2 GiB", async (t) => {
    const { ask } = startWorker(t, `
        const instantiate = WebAssembly.instantiate;
        WebAssembly.instantiate = async (...args) => {
            const made = await instantiate(...args), { _initialize, js_alloc } = made.exports;
            const exports = { ...made.exports, _initialize: () => {
                _initialize();
                for (let i = 0; i < 2; i++) if (!js_alloc(2 ** 30)) throw new Error("no memory for the test");
            } };
            return { exports };
        };`);
    let id = 0;
    const run = async (what, message) => {
        const { result, error } = await ask({ id: ++id, what, ...message });
        assert.equal(error, undefined, `${what}: ${error?.message}`);
        return result;
    };
    const plain = await Model.load("builtin:stories", { embeddings: true });
    t.after(() => plain.close());
    const { nVocab, version, nThreads } = await run("open", { source: "builtin:stories", options: { embeddings: true }, nThreads: 2 });
    assert.equal(nThreads, 2);
    assert.deepEqual([nVocab, version], [plain.nVocab, plain.version]);
    assert.deepEqual(await run("embed", { text: "a fox" }), await plain.embed("a fox"));
    const model = await Model.load("builtin:stories");
    t.after(() => model.close());
    await run("open", { source: "builtin:stories", options: {} });
    const ids = await run("encode", { text: "Once upon a time", special: true });
    assert.deepEqual(ids, await model.encode("Once upon a time"));
    assert.equal(await run("decode", { ids }), "Once upon a time");
    assert.deepEqual(await run("logits", { ids }), await model.logits(ids));
    assert.equal((await run("generate", { prompt: "Once", options: { maxTokens: 5, stop: ["zzz"] } })).tokens, 5);
    const failed = await ask({ id: ++id, what: "generate", prompt: "a", options: { grammar: "root ::= [" } });
    assert.match(failed.error.message, /']' is missing/);
});

test("what the system refuses is a number for programs; only the end of a program is an exception", () => {
    let why;
    const stream = { write: () => { throw why; }, stat: () => ({ kind: 2 }) };
    const wasi = new Wasi({ descriptors: [stream, stream] });
    wasi.memory = new WebAssembly.Memory({ initial: 1 });
    new DataView(wasi.memory.buffer).setUint32(4, 1, true); // a list of one part, of 1 byte
    const { fd_write, fd_read, proc_exit } = wasi.imports().wasi_snapshot_preview1;
    const tries = { EDQUOT: 19, ETXTBSY: 74, ENOSPC: 51, EPROTO: 29, ERR_OUT_OF_RANGE: 29 };
    for (const [code, number] of Object.entries(tries)) {
        why = Object.assign(new Error("refused"), { code });
        assert.equal(fd_write(1, 0, 1, 16), number, code);
    }
    why = new DOMException("gone", "NotReadableError");
    assert.equal(fd_write(1, 0, 1, 16), 29);
    assert.equal(fd_read(9, 0, 1, 16), 8);
    why = new TypeError("a mistake in JavaScript");
    assert.throws(() => fd_write(1, 0, 1, 16), TypeError);
    assert.throws(() => proc_exit(44), (e) => e instanceof Exit && e.code === 44);
});

test("lines are given one by one, and alone", () => {
    const told = [], lines = new Lines((...args) => told.push(args));
    lines.write(new TextEncoder().encode("a\nb\nc"));
    lines.write(new TextEncoder().encode("d\n"));
    assert.deepEqual(told, [["a"], ["b"], ["cd"]]);
});

test("paths of Windows are those of POSIX for programs", () => {
    const pairs = { "C:\\a b\\c.gguf": "/C:/a b/c.gguf", "d:/x/y": "/d:/x/y", "C:\\": "/C:/", "\\\\?\\E:\\long\\name": "/E:/long/name" };
    for (const [real, path] of Object.entries(pairs)) assert.equal(toProgram(real, true), path);
    for (const real of ["\\\\server\\share\\a.gguf", "\\\\?\\UNC\\server\\share\\a"]) assert.throws(() => toProgram(real, true), /drive with a letter/);
    assert.equal(toReal("C:/a b/c.gguf", true), "C:\\a b\\c.gguf");
    assert.deepEqual([toReal("C:", true), toReal("C:/", true)], ["C:\\", "C:\\"]);
    for (const path of ["", ".", "etc/passwd"]) assert.throws(() => toReal(path, true), { code: "ENOENT" });
    assert.deepEqual([toProgram("/a/b\\c", false), toReal("a/b\\c", false), toReal(".", false)], ["/a/b\\c", "/a/b\\c", "/"]);
});
