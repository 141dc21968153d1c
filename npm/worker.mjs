// Runs a model, in a worker of a browser or of node: index.mjs sends what to do, one thing after the other, each with a number. The answers have
// the same number: {piece}, {progress}, and at the end {result} or {error}.
import { hasWide, isWide, SystemError, toNumber, Wasi } from "./wasi.mjs";
import { GivenFolder, Lines, Parts, Picked } from "./files-memory.mjs";
import { download } from "./cache.mjs";
import { withOwnNames } from "./options.mjs";
import { sharedMemory, startThreads, usualThreads } from "./threads.mjs";

const isNode = typeof process === "object" && Boolean(process.versions?.node);
const port = isNode ? (await import("node:worker_threads")).parentPort : self;
const encoder = new TextEncoder(), decoder = new TextDecoder();
const GIVEN = "/.given"; // the folder of files that JavaScript gives
const FINISH = ["none", "end", "stop", "length", "context", "cancelled", "error"];

// The arguments of the library's functions, and their result, last: a: an address or a size, n: another number.
const FUNCTIONS = {
    js_error: "a", js_alloc: "aa", js_free: "an", js_version: "a", js_open: "annaaannnn", js_number: "ann", js_number_name: "aa", js_stop: "an",
    js_grammar: "an", js_json_schema: "an", js_begin: "aan", js_begin_chat: "an", js_next: "a", js_piece_size: "a", js_encode: "aanaa", js_decode: "aaaa",
    js_free_result: "an", js_logits: "aaa", js_embed: "aaan",
};

/** The function with numbers for addresses. */
function withNumbers(f, kinds, wide) {
    return (...args) => {
        const result = f(...(wide ? args.map((a, i) => (kinds[i] === "a" ? BigInt(a) : a)) : args));
        return kinds.endsWith("a") ? toNumber(result) : result;
    };
}

let wasi, lib;
const given = new GivenFolder(GIVEN);
let stop = null; // [1]: nonzero while what runs is to stop, if memory can be shared
let now = 0; // the number of what runs
const aborted = new Set();

function reply(message, transfer = []) {
    port.postMessage({ id: now, ...message }, transfer);
}

function isStopped() {
    return aborted.has(now) || (stop !== null && Atomics.load(stop, 0) === now);
}

function checkStopped() {
    if (isStopped()) throw new DOMException("The operation was aborted.", "AbortError");
}

async function compile(name) {
    const url = new URL(name, import.meta.url);
    if (isNode) return WebAssembly.compile(await (await import("node:fs/promises")).readFile(url));
    const r = await fetch(url);
    if (!r.ok) throw new Error(`${url}: the server answers ${r.status} ${r.statusText}`);
    return WebAssembly.compile(await r.arrayBuffer());
}

const COMFORTABLE = 2 ** 31; // with less shared memory than that, one thread, which needs none, is better

/** Makes the library's instance; returns how many threads it can use. bits: of addresses. */
async function instantiate(bits, nThreads, leastMemory) {
    const isShared = nThreads > 1;
    const module = await compile(`./ggml-lite${bits === 64 ? "64" : ""}${isShared ? ".threads" : ""}.wasm`), wide = isWide(module);
    const files = isNode ? [new (await import("./files-node.mjs")).Root()] : [];
    wasi = new Wasi({ wide, descriptors: [new Lines(), new Lines(console.log), new Lines(console.error), ...files, given] });
    const instance = await WebAssembly.instantiate(module, {
        ...wasi.imports(),
        ...(isShared ? { env: { memory: sharedMemory(leastMemory, wide) } } : {}),
        ggml_lite: {
            progress: (done, total) => {
                report(done, total);
                return isStopped() ? 1 : 0;
            },
            note: (at, n) => reply({ note: withOwnNames(wasi.text(toNumber(at), toNumber(n))) }),
        },
    });
    lib = { ...instance.exports };
    for (const [name, kinds] of Object.entries(FUNCTIONS)) lib[name] = withNumbers(instance.exports[name], kinds, wide);
    wasi.memory = lib.memory;
    const usable = isShared ? await startThreads(module, instance, nThreads, startThread) : 1;
    lib._initialize();
    return usable;
}

const starting = new Map(); // k of a thread that starts -> {resolve, reject}

/** Has the model start a thread: it owns them, so that it hears of their errors while this worker waits for them. Nor may a worker start others in Firefox
 * while its tools for developers are open, or a test drives it: both may then wait forever. */
function startThread(thread) {
    return new Promise((resolve, reject) => {
        starting.set(thread.k, { resolve, reject });
        port.postMessage({ thread });
    });
}

let reported = 0, isComplete = false;
function report(done, total) {
    const time = performance.now();
    isComplete = done >= total;
    if (done < total && time - reported < 50) return;
    reported = time;
    reply({ progress: { done, total } });
}

// --- texts and numbers of the library ---

function fail() {
    checkStopped();
    const at = lib.js_error();
    throw new Error(withOwnNames(cText(at).replaceAll(GIVEN + "/", "")));
}

/** Copies a text into the module's memory; the caller frees it. */
function put(text) {
    const bytes = encoder.encode(text), at = lib.js_alloc(bytes.length + 1);
    if (!at) throw new Error("out of memory");
    wasi.bytes(at, bytes.length + 1).set(bytes);
    wasi.bytes(at, bytes.length + 1)[bytes.length] = 0;
    return { at, n: bytes.length };
}

/** Calls f with the places of texts (0 for those that are missing), which are freed afterwards. */
function withTexts(texts, f) {
    const places = texts.map((t) => (t === undefined || t === null ? { at: 0, n: 0 } : put(t)));
    try {
        return f(...places);
    } finally {
        for (const p of places) lib.js_free(p.at);
    }
}

// --- opening ---

/** A name of a URL without its %20 and the like; as it is if these are no text. */
function decoded(name) {
    try {
        return decodeURIComponent(name);
    } catch {
        return name;
    }
}

/** Makes a source a path that the library can open. */
async function toPath(source, name, options, signal) {
    if (typeof source === "string") return source; // built in, or a file of this machine
    const own = (source.name ?? decoded(source.url?.split(/[?#]/)[0].split("/").pop() ?? "")).replace(/[/\0]/g, "_");
    if (!["", ".", ".."].includes(own) && !given.files.has(own)) name = own; // messages have the name that the user knows
    const file = source.url ? await download(source.url, { cache: options.cache, progress: report, signal })
        : source.blob ? (isNode ? new Parts([new Uint8Array(await source.blob.arrayBuffer())]) : new Picked(source.blob))
        : new Parts([new Uint8Array(source)]);
    file.watch = (done) => {
        if (isStopped()) throw new SystemError("EIO"); // the library then ends, and fail() says why
        report(done, file.size);
    };
    given.files.set(name, file);
    return `${GIVEN}/${name}`;
}

/** How many bytes a source has; of a file of this machine, those of all its parts. */
async function sizeOf(source, path) {
    if (typeof source !== "string") return given.statAt(path.slice(GIVEN.length + 1)).size;
    if (!isNode || source.startsWith("builtin:")) return 0;
    const { statSync } = await import("node:fs"), { toReal } = await import("./files-node.mjs");
    const parts = Number(/-00001-of-(\d{5})\.gguf$/.exec(source)?.[1] ?? 1);
    try {
        return parts * statSync(toReal(source.slice(1))).size;
    } catch {
        return 0; // the library says why it cannot be opened
    }
}

// Weights take their size twice while they are prepared: more than that, and 32 bits are too few for them and a cache.
const MOST_32 = 1.75 * 2 ** 30;
const MOST_FILE_32 = 2 ** 31 - 1; // bytes of a file

/** Whether this package has modules whose addresses have 64 bits. */
async function packageHasWide() {
    const url = new URL("./ggml-lite64.wasm", import.meta.url);
    if (isNode) return (await import("node:fs")).existsSync(url);
    const r = await fetch(url, { method: "HEAD" }).catch(() => null);
    return r?.ok === true && !/html/.test(r.headers.get("content-type")); // some hosts answer with a page in place of a file that is not there
}

/** How many bits addresses have for weights of that size: as asked, or as needed, if the engine and this package have them. */
async function bitsFor(size, asked) {
    if (asked === 32 || (!asked && size <= MOST_32)) {
        if (size > MOST_FILE_32) throw new Error(`the model has ${size} bytes, too many for addresses of 32 bits: leave addressBits out, or pass 64`);
        return 32;
    }
    const why = !hasWide() ? "this engine has none: Chrome 133, Firefox 134, node 24, or later, have"
        : !(await packageHasWide()) ? "this package was built without ggml-lite64.wasm" : null;
    if (!why) return 64;
    if (asked) throw new Error(`addressBits is 64, but ${why}`);
    if (size > MOST_FILE_32) throw new Error(`the model has ${size} bytes and needs addresses of 64 bits, but ${why}`);
    return 32;
}

let controller = null; // of downloads

async function open({ source, options, nThreads, shared }) {
    stop = shared ? new Int32Array(shared) : null;
    controller = new AbortController();
    const path = await toPath(source, "model.gguf", options, controller.signal);
    checkStopped();
    const eye = options.mmproj === undefined ? undefined : await toPath(options.mmproj, "mmproj.gguf", options, controller.signal);
    checkStopped();
    const size = await sizeOf(source, path) + (eye === undefined ? 0 : await sizeOf(options.mmproj, eye));
    const bits = await bitsFor(size, options.addressBits);
    if (nThreads) nThreads = await instantiate(bits, nThreads);
    else nThreads = await instantiate(bits, await usualThreads(), Math.max(COMFORTABLE, bits === 64 ? 2 * size : 0)).catch(() => instantiate(bits, 1));
    checkStopped();
    withTexts([path, eye, options.chatTemplate, options.cacheType], (p, m, t, c) => {
        if (!lib.js_open(p.at, options.nCtx ?? 0, options.nUbatch ?? 0, m.at, t.at, c.at, options.embeddings ? 1 : 0, options.fileSampling === false ? 1 : 0, nThreads)) fail();
    });
    if (!isComplete) report(1, 1); // of some types nothing is prepared, and a file that is there need not arrive
    for (const file of given.files.values()) file.handle?.close(); // the module has read them
    given.files.clear();
    const samplerNumbers = [];
    for (let name; (name = lib.js_number_name(samplerNumbers.length)); ) samplerNumbers.push(cText(name));
    return { samplerNumbers, nThreads, addressBits: bits, nCtx: lib.js_n_ctx(), nVocab: lib.js_n_vocab(), hasChat: lib.js_has_chat() !== 0, version: cText(lib.js_version()) };
}

function cText(at) {
    return wasi.text(at, new Uint8Array(lib.memory.buffer, at).indexOf(0));
}

// --- generating ---

/** Lets messages arrive, such as one that stops this. */
const pause = isNode
    ? () => new Promise((resolve) => setImmediate(resolve))
    : (() => {
          const { port1, port2 } = new MessageChannel();
          return () => new Promise((resolve) => {
              port1.onmessage = resolve;
              port2.postMessage(null);
          });
      })();

function setRequest({ maxTokens, seed, stop: stops, grammar, jsonSchema, sampling = {} }) {
    lib.js_request();
    const numbers = { max_tokens: maxTokens, seed, ...sampling };
    for (const [name, value] of Object.entries(numbers)) if (value !== undefined && !lib.js_number(put(name).at, value)) fail();
    for (const text of stops ?? []) if (!lib.js_stop(put(text).at)) fail();
    if (grammar !== undefined) lib.js_grammar(put(grammar).at);
    if (jsonSchema !== undefined) lib.js_json_schema(put(typeof jsonSchema === "string" ? jsonSchema : JSON.stringify(jsonSchema)).at);
}

async function generate({ prompt, messages, options }) {
    setRequest(options);
    if (messages)
        withTexts([JSON.stringify({ messages, ...(options.template ?? {}) })], (j) => {
            if (!lib.js_begin_chat(j.at)) fail();
        });
    else
        withTexts([prompt], (p) => {
            if (!lib.js_begin(p.at, p.n)) fail();
        });
    let begins = messages !== undefined; // an answer of a conversation: without the space before its first word, as programs print it
    for (let time = performance.now(); ; ) {
        const at = lib.js_next();
        if (!at) break;
        const whole = wasi.text(at, lib.js_piece_size()), piece = begins ? whole.trimStart() : whole;
        if (piece) reply({ piece });
        begins &&= !piece;
        if (performance.now() - time > 8) {
            await pause();
            time = performance.now();
        }
        checkStopped();
    }
    if (lib.js_failed()) fail();
    const [finish, reused, promptTokens, tokens, promptSeconds, seconds] = Array.from({ length: 6 }, (_, i) => lib.js_fact(i));
    return { finish: FINISH[finish], reused, promptTokens, tokens, promptSeconds, seconds };
}

// --- tokens, logits, vectors ---

/** Calls f with a place for `size` bytes. */
function withRoom(size, f) {
    const at = lib.js_alloc(size);
    if (!at) throw new Error("out of memory");
    try {
        return f(at);
    } finally {
        lib.js_free(at);
    }
}

function encode({ text, special }) {
    return withTexts([text], (t) => withRoom(wasi.addressSize, (n) => {
        const ids = lib.js_encode(t.at, t.n, special ? 1 : 0, n);
        if (!ids) fail();
        const result = Array.from(new Int32Array(lib.memory.buffer, ids, wasi.address(n)));
        lib.js_free_result(ids);
        return result;
    }));
}

function withIds(ids, f) {
    return withRoom(4 * ids.length, (at) => {
        new Int32Array(lib.memory.buffer, at, ids.length).set(ids);
        return f(at);
    });
}

function decode({ ids }) {
    return withIds(ids, (at) => withRoom(wasi.addressSize, (n) => {
        const text = lib.js_decode(at, ids.length, n);
        if (!text) fail();
        const result = wasi.text(text, wasi.address(n));
        lib.js_free_result(text);
        return result;
    }));
}

function logits({ ids }) {
    return withIds(ids, (at) => {
        const found = lib.js_logits(at, ids.length);
        if (!found) fail();
        return new Float32Array(lib.memory.buffer, found, lib.js_n_vocab()).slice();
    });
}

function embed({ text }) {
    const n = lib.js_n_embd();
    return withTexts([text], (t) => withRoom(4 * (n || 1), (out) => {
        if (!lib.js_embed(t.at, t.n, out)) fail();
        return new Float32Array(lib.memory.buffer, out, n).slice();
    }));
}

// --- messages ---

const calls = { open, generate, encode, decode, logits, embed };
let last = Promise.resolve();

async function run(message) {
    now = message.id;
    try {
        checkStopped();
        reply({ result: await calls[message.what](message) });
    } catch (e) {
        const wrong = isStopped() ? new DOMException("The operation was aborted.", "AbortError") : e;
        reply({ error: { name: wrong.name, message: wrong.message } });
    } finally {
        aborted.delete(message.id);
        controller = null;
    }
}

function receive(message) {
    if (message.what === "abort") {
        aborted.add(message.of);
        if (message.of === now) controller?.abort();
        return;
    }
    if (message.what === "started") {
        const { resolve, reject } = starting.get(message.k);
        return message.error === undefined ? resolve() : reject(new Error(message.error));
    }
    last = last.then(() => run(message));
}
if (isNode) port.on("message", receive);
else port.onmessage = (e) => receive(e.data);
port.postMessage({ ready: true });
