// Programs and the package in a headless browser (serve.mjs). GGL_WASM_TEST: BITS:BUILD:PROGRAMS_OF_THIS_BUILD:FOLDER_OF_MODELS, where BUILD is one for
// WebAssembly with addresses of so many bits; GGL_WASM_LARGE: a model of more than 4 GiB, which takes its size twice.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, serve } from "./serve.mjs";

const [bits, build, here, models] = process.env.GGL_WASM_TEST.split(":"), addressBits = Number(bits), isWide = addressBits === 64;
const isFirefox = process.env.GGL_WASM_BROWSER === "firefox"; // the large file would take as long again there; page.mjs picks small ones
const large = process.env.GGL_WASM_LARGE;
const FOLDERS = { bin: join(build, "bin"), web: join(build, "web"), models, file: "/" };
let server, browser, tab;

before(async () => {
    ({ server, at: tab } = await serve((path) => {
        const [, folder, ...rest] = path.split("/");
        return join(FOLDERS[folder], ...rest);
    }, () => ({ "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" })));
    browser = await launch();
    tab = await browser.newTab(tab + "web/index.html");
});

after(async () => {
    await browser?.close();
    server?.close();
});

/** Runs a program that may read `files`, of absolute paths; returns its exit code and what it wrote to both streams. */
const run = (program, args = [], files = []) => tab.eval(async (program, args, files) => {
    const { isWide, Wasi } = await import("/web/ggml-lite/wasi.mjs"), { GivenFolder, Lines, Parts } = await import("/web/ggml-lite/files-memory.mjs");
    const root = new GivenFolder("/");
    for (const path of files) root.files.set(path.slice(1), new Parts([new Uint8Array(await (await fetch(`/file${path}`)).arrayBuffer())]));
    const module = await WebAssembly.compileStreaming(fetch(`/bin/${program}.wasm`)), lines = [[], []];
    const wasi = new Wasi({
        wide: isWide(module),
        args: [program, ...args],
        descriptors: [new Lines(), ...lines.map((said) => new Lines((line) => said.push(line))), root],
    });
    const code = wasi.start(await WebAssembly.instantiate(module, wasi.imports()));
    return { code, isWide: wasi.wide, out: lines[0], errors: lines[1], rest: wasi.descriptors[1].rest };
}, program, args, files);

test("the kernels compute what the definitions say", async () => {
    for (const name of ["slots", "products", "attend"]) {
        const found = await run(`tests/test-conformance-kernels_${name}`);
        assert.equal(found.isWide, isWide);
        assert.equal(found.code, 0, found.errors.slice(-5).join("\n"));
    }
});

test("digests of models, and a text, are those of this build", async () => {
    const native = (program, ...args) => execFileSync(join(here, program), args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const { code, out, errors } = await run("tests/digest", ["few"], [join(models, "stories.gguf"),
        ...["gpt2", "qwen2", "qwen3"].map((name) => fileURLToPath(new URL(`../data/stories-${name}.gguf`, import.meta.url)))]);
    assert.equal(code, 0, errors.join("\n"));
    const want = new Set(native("tests/digest", "few").split("\n"));
    assert.ok(out.length > 10);
    assert.deepEqual(out.filter((line) => !line.startsWith("samples are chosen") && !want.has(line)), []);
    const args = ["-q", "-p", "Once upon a time", "-n", "60", "-s", "1", "--temp", "0.8"];
    const said = await run("llm-cli", args);
    assert.equal([...said.out, said.rest].join("\n"), native("llm-cli", ...args));
});

/** Loads a model in the page and continues a text; source: an address, or a file that was picked. */
const write = (source, options) => tab.eval(async (source, options) => {
    const { Model } = await import("/web/ggml-lite/index.mjs");
    const model = await Model.load(source ?? document.querySelector("#large").files[0], options);
    let text = "";
    for await (const piece of model.generate("Once upon a time", { maxTokens: 20, seed: 1, sampling: { temperature: 0.8 } })) text += piece;
    const [{ length }, again] = [await model.logits([1, 2]), await model.decode(await model.encode("a fox"))];
    const { addressBits, nThreads, nVocab } = model;
    model.close();
    return { text, addressBits, nThreads, isWhole: length === nVocab, again };
}, source, options);

const texts = (file) => execFileSync(join(here, "llm-cli"), ["-q", "-m", file, "-p", "Once upon a time", "-n", "20", "-s", "1", "--temp", "0.8"],
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trimEnd();

test("the package has the bits of the program with any number of threads", async () => {
    const want = texts(join(models, "stories-chat.gguf"));
    for (const nThreads of [1, 3]) {
        const found = await write("/models/stories-chat.gguf", { addressBits, nThreads, cache: false });
        assert.deepEqual(found, { text: found.text, addressBits, nThreads, isWhole: true, again: found.again });
        assert.equal("Once upon a time" + found.text, want);
        assert.match(found.again, /a fox$/);
    }
});

test("an error of the library has its message", async () => {
    await assert.rejects(write("/web/index.html", { addressBits, cache: false }), /index.html: .*not a GGUF file/);
});

test("a picked file tells how far it is, and loading it can be ended; what is missing is said", { skip: !isWide || isFirefox }, async () => {
    const said = await tab.eval(async () => {
        const { Model } = await import("/web/ggml-lite/index.mjs");
        const bytes = await (await fetch("/models/stories-chat.gguf")).arrayBuffer(), big = new File([bytes, new Uint8Array(3 << 28)], "big.gguf");
        const told = [], own = new AbortController();
        const ended = await Model.load(big, { addressBits: 64, signal: own.signal, progress: (done, total) => {
            told.push([done, total]);
            if (told.length === 2) own.abort("enough");
        } }).then(() => "loaded", (e) => e);
        const large = new File([new Uint8Array(1 << 29), new Uint8Array(1 << 29), new Uint8Array(1 << 29), new Uint8Array(1 << 29)], "large.gguf");
        const narrow = await Model.load(large, { addressBits: 32 }).catch((e) => e.message);
        return { told, ended, narrow, size: big.size };
    });
    assert.equal(said.ended, "enough");
    assert.ok(said.told[1][0] < said.size && said.told[1][1] === said.size, JSON.stringify(said.told));
    assert.match(said.narrow, /2147483648 bytes, too many for addresses of 32 bits/);
});

test("a model of more than 4 GiB gets such addresses", { skip: !isWide || !large }, async () => {
    await tab.eval(() => document.body.insertAdjacentHTML("beforeend", "<input type=file id=large>")); // the page opens what is chosen in its own
    await tab.chooseFile("#large", large);
    const found = await write(null, { nCtx: 256, nUbatch: 64 });
    assert.equal(found.addressBits, 64);
    assert.equal("Once upon a time" + found.text, texts(large));
});
