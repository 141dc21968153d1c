// Language models in a browser, and in node: see README.md and index.d.ts. A model runs in a worker, so that a page stays alive.
import { check, listOf } from "./options.mjs";
import { canShare } from "./threads.mjs";

const isNode = typeof process === "object" && Boolean(process.versions?.node);

async function startWorker(url) {
    if (!isNode) {
        const worker = new Worker(url, { type: "module" });
        return {
            post: (m, t) => worker.postMessage(m, t),
            end: () => worker.terminate(),
            listen: (f, failed) => {
                worker.onmessage = (e) => f(e.data);
                worker.onerror = (e) => failed(new Error(e.message || `${url}: the worker cannot be started`));
            },
            hold: () => {},
        };
    }
    const { Worker: Thread } = await import("node:worker_threads");
    const worker = new Thread(url);
    return {
        post: (m, t) => worker.postMessage(m, t),
        end: () => worker.terminate(),
        listen: (f, failed) => {
            worker.on("message", f);
            worker.on("error", failed);
        },
        hold: (does) => (does ? worker.ref() : worker.unref()), // a program may end while its models do nothing
    };
}

/** What the worker opens: a name or path, {url}, {blob, name}, or bytes. (node sends a File to a thread without its name.) */
async function toSource(source) {
    if (source instanceof URL) source = source.href;
    if (typeof source !== "string") return source instanceof ArrayBuffer || ArrayBuffer.isView(source) ? bytesOf(source) : { blob: source, name: source.name };
    if (/^builtin:/.test(source)) return source;
    if (/^https?:/.test(source)) return { url: source };
    if (!isNode) return { url: new URL(source, globalThis.document?.baseURI ?? globalThis.location.href).href };
    const { resolve } = await import("node:path");
    const { fileURLToPath } = await import("node:url");
    const { toProgram } = await import("./files-node.mjs");
    return toProgram(/^file:/.test(source) ? fileURLToPath(source) : resolve(source));
}

function bytesOf(source) {
    return source instanceof ArrayBuffer ? source : source.buffer.slice(source.byteOffset, source.byteOffset + source.byteLength);
}

function abortError(signal) {
    return signal?.reason ?? new DOMException("The operation was aborted.", "AbortError");
}

export class Model {
    #worker;
    #threads = [];
    #waiting = new Map(); // number -> {resolve, reject, message}
    #n = 0;
    #stop = null;
    #closed = null;
    #facts = {}; // what check() needs to know of the model
    /** Facts about the last text that was generated to its end. */
    lastRun = null;

    /** @private Model.load() makes models. */
    constructor(worker) {
        this.#worker = worker;
        worker.listen((m) => this.#receive(m), (e) => this.#end(e));
        if (canShare()) this.#stop = new Int32Array(new SharedArrayBuffer(4));
    }

    static async load(source, options = {}) {
        check("load", [source, options]);
        const { progress, note, signal, mmproj, nThreads, ...rest } = options;
        if (nThreads > 1 && !canShare())
            throw new Error(`nThreads is ${nThreads}, but this page has one: threads need a page that is isolated from others (crossOriginIsolated)`);
        signal?.throwIfAborted();
        const model = new Model(await startWorker(new URL("./worker.mjs", import.meta.url)));
        try {
            const { samplerNumbers, ...opened } = await model.#call({
                what: "open",
                source: await toSource(source),
                nThreads,
                options: { ...rest, ...(mmproj === undefined ? {} : { mmproj: await toSource(mmproj) }) },
                shared: model.#stop?.buffer,
            }, signal, (m) => {
                if (m.progress) return progress?.(m.progress.done, m.progress.total);
                if (m.note) return note?.(m.note);
            });
            Object.assign(model, opened);
            model.#facts = { samplerNumbers, nVocab: opened.nVocab };
            return model;
        } catch (e) {
            model.close();
            throw e;
        }
    }

    #receive(m) {
        if (m.thread) return this.#startThread(m.thread);
        const waits = this.#waiting.get(m.id);
        if (!waits) return;
        if ("result" in m || "error" in m) {
            this.#waiting.delete(m.id);
            if (this.#waiting.size === 0) this.#worker.hold(false);
            if ("error" in m) waits.reject(m.error.name === "AbortError" ? new DOMException(m.error.message, "AbortError") : new Error(m.error.message));
            else waits.resolve(m.result);
        } else waits.message(m);
    }

    /** Starts a thread for the worker, and tells it whether that works. A later error of the thread ends the model, because the worker may wait for it. */
    async #startThread(data) {
        let isReady = false;
        const tell = (error) => this.#worker.post({ what: "started", k: data.k, error });
        try {
            const thread = await startWorker(new URL("./thread.mjs", import.meta.url));
            if (this.#closed) return thread.end();
            this.#threads.push(thread);
            thread.listen(() => {
                isReady = true;
                tell();
            }, (e) => (isReady ? this.#end(new Error(`a thread of the model ended: ${e.message}`)) : tell(e.message)));
            thread.post(data);
            thread.hold(false); // the worker is held while it works
        } catch (e) {
            tell(e.message);
        }
    }

    #end(why) {
        this.#closed ??= why;
        for (const waits of this.#waiting.values()) waits.reject(why);
        this.#waiting.clear();
        for (const worker of [this.#worker, ...this.#threads.splice(0)]) worker.end();
    }

    #call(message, signal, onMessage) {
        if (this.#closed) return Promise.reject(this.#closed);
        if (signal?.aborted) return Promise.reject(abortError(signal));
        const id = ++this.#n;
        const abort = () => {
            if (this.#stop) Atomics.store(this.#stop, 0, id);
            this.#worker.post({ what: "abort", of: id });
        };
        signal?.addEventListener("abort", abort, { once: true });
        return new Promise((resolve, reject) => {
            const fail = (e) => { // of the caller's own function: nobody else may hear of it, and what runs stops
                reject(e);
                if (this.#waiting.has(id)) abort();
            };
            this.#worker.post({ id, ...message }); // an exception if a value cannot be sent: then nothing is waited for
            this.#waiting.set(id, {
                resolve, reject,
                message: (m) => {
                    try {
                        onMessage?.(m)?.then?.(undefined, fail);
                    } catch (e) {
                        fail(e);
                    }
                },
            });
            this.#worker.hold(true);
        }).catch((e) => {
            throw e?.name === "AbortError" && signal?.aborted ? abortError(signal) : e;
        }).finally(() => signal?.removeEventListener("abort", abort));
    }

    /** The pieces of a text, while they come. Who stops to read them stops the model. */
    async *#stream(what, message, given) {
        check(what, [Object.values(message)[0], given], this.#facts);
        const { signal, progress, ...options } = given;
        const own = new AbortController(), pieces = [];
        const forward = () => own.abort(signal.reason);
        let wake = () => {}, result, failure, ended = false;
        if (signal?.aborted) throw abortError(signal);
        signal?.addEventListener("abort", forward, { once: true });
        this.#call({ what: "generate", options, ...message }, own.signal, (m) => {
            if (m.piece !== undefined) pieces.push(m.piece);
            wake();
            if (m.progress) return progress?.(m.progress.done, m.progress.total);
        }).then((r) => (result = r), (error) => (failure = { error })).finally(() => {
            ended = true;
            wake();
        });
        try {
            for (;;) {
                while (pieces.length > 0) yield pieces.shift();
                if (ended) break;
                await new Promise((resolve) => (wake = resolve));
            }
            if (failure) throw failure.error;
            this.lastRun = result;
            return result;
        } finally {
            signal?.removeEventListener("abort", forward);
            if (!ended) own.abort();
        }
    }

    generate(prompt, options = {}) {
        return this.#stream("generate", { prompt }, options);
    }

    chat(messages, options = {}) {
        return this.#stream("chat", { messages }, options);
    }

    async encode(text, options = {}) {
        check("encode", [text, options], this.#facts);
        return this.#call({ what: "encode", text, special: options.special ?? true });
    }

    async decode(ids) {
        return this.#ofTokens("decode", ids);
    }

    async logits(ids) {
        return this.#ofTokens("logits", ids);
    }

    #ofTokens(what, given) {
        const ids = listOf(given);
        check(what, [ids], this.#facts);
        return this.#call({ what, ids });
    }

    async embed(text) {
        check("embed", [text], this.#facts);
        return this.#call({ what: "embed", text });
    }

    close() {
        this.#end(new Error("the model is closed"));
    }
}
