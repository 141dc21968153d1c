// The page without a server, in a headless browser (serve.mjs). GGL_WASM_TEST: FOLDER_OF_PAGE:LLM_CLI:FOLDER_OF_MODELS
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { launch, serve } from "./serve.mjs";

const [folder, cli, models] = process.env.GGL_WASM_TEST.split(":");
let server, browser, at, asked = 0, version = 1;

before(async () => {
    ({ server, at } = await serve((path) => {
        if (path !== "/model.gguf") return join(folder, path);
        asked++;
        return join(models, "stories-chat.gguf");
    }, () => ({ etag: `"${version}"` })));
    browser = await launch();
});

after(async () => {
    await browser?.close();
    server?.close();
});

/** The page, after it has loaded itself again for threads, and its script has run. */
async function openPage() {
    const tab = await browser.newTab(at);
    await tab.until(() => globalThis.crossOriginIsolated && typeof document.querySelector("#builtin")?.onclick === "function");
    return tab;
}

async function talk(tab) {
    await tab.until(() => !document.querySelector("#ask").hidden);
    await tab.click("#text");
    await tab.type("Tell me a story about a fox.");
    await tab.press("Enter");
    await tab.until(() => document.querySelector(".speed"));
    assert.match(await tab.text(".speed"), /^\d+ tokens, [\d.]+ per second$/);
    assert.ok((await tab.text(".said.assistant")).length > 50);
    assert.ok(await tab.eval(() => document.querySelector("#bad").hidden));
}

test("the built-in model answers, and the conversation begins anew", async () => {
    const tab = await openPage();
    await tab.click("#builtin");
    await talk(tab);
    await tab.click("#new");
    assert.equal(await tab.count(".said"), 0);
    await tab.click("#other");
    await tab.until(() => !document.querySelector("#choose").hidden);
    assert.deepEqual(tab.problems, []);
    await tab.close();
});

test("the page becomes one with threads, and they change no bit", async () => {
    const tab = await openPage();
    const texts = await tab.eval(async () => {
        const { Model } = await import("./ggml-lite/index.mjs"), texts = [];
        for (const nThreads of [1, 3]) {
            const model = await Model.load("builtin:stories", { nThreads });
            let text = `${model.nThreads} `;
            for await (const piece of model.generate("Once upon a time", { maxTokens: 40, seed: 1 })) text += piece;
            model.close();
            texts.push(text);
        }
        return texts;
    });
    assert.equal(texts[1], texts[0].replace("1 ", "3 "));
    await tab.close();
});

test("a page that is not isolated has one thread, and says so", async () => {
    const tab = await browser.newTab(at + "ggml-lite/options.mjs", { context: await browser.newContext() });
    const said = await tab.eval(async () => {
        const { Model } = await import("./index.mjs");
        const model = await Model.load("builtin:stories"), n = model.nThreads;
        model.close();
        return [globalThis.crossOriginIsolated, n, await Model.load("builtin:stories", { nThreads: 2 }).catch((e) => e.message)];
    });
    assert.deepEqual(said.slice(0, 2), [false, 1]);
    assert.match(said[2], /nThreads is 2, but this page has one/);
    await tab.close();
});

test("a picked file answers; one that is no model is an error", async () => {
    const tab = await openPage();
    await tab.chooseFile("#file", join(folder, "style.css"));
    await tab.until(() => /^style.css: .*not a GGUF file/.test(document.querySelector("#bad").textContent));
    await tab.chooseFile("#file", join(models, "stories-chat.gguf"));
    await talk(tab);
    assert.equal(await tab.text("#model-name"), "stories-chat.gguf");
    await tab.close();
});

test("a file from the network is kept, and has the bits of the program", async () => {
    const tab = await openPage();
    const run = () => tab.eval(async (url) => {
        const { Model } = await import("./ggml-lite/index.mjs");
        let text = "";
        const told = [], model = await Model.load(url, { progress: (done) => told.push(done) });
        for await (const piece of model.generate("Once upon a time", { maxTokens: 40, seed: 1, sampling: { temperature: 0.8 } })) text += piece;
        model.close();
        const dir = await (await navigator.storage.getDirectory()).getDirectoryHandle("ggml-lite"), names = [];
        for await (const name of dir.keys()) names.push(name);
        return { text, told, names };
    }, at + "model.gguf");
    const first = await run(), second = await run();
    const want = execFileSync(cli, ["-q", "-m", join(models, "stories-chat.gguf"), "-p", "Once upon a time", "-n", "40", "-s", "1", "--temp", "0.8"],
        { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    assert.equal("Once upon a time" + first.text, want.trimEnd());
    assert.equal(second.text, first.text);
    assert.equal(first.names.length, 2);
    assert.equal(asked, 2);
    await tab.close();
});

test("a kept file that another page has open is read beside it, and stays as it is", async () => {
    const tab = await openPage();
    await tab.eval(async (url) => {
        const { Model } = await import("./ggml-lite/index.mjs");
        const name = encodeURIComponent(url), say = (code) => URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
        const folder = async () => (await navigator.storage.getDirectory()).getDirectoryHandle("ggml-lite");
        window.load = async () => {
            let text = "";
            const model = await Model.load(url);
            for await (const piece of model.generate("Once upon a time", { maxTokens: 20, seed: 1 })) text += piece;
            model.close();
            return text;
        };
        window.mark = async () => (await (await (await folder()).getFileHandle(name + ".complete")).getFile()).text();
        window.hold = () => new Promise((resolve, reject) => {
            window.holder = new Worker(say(`(async () => {
                const dir = await (await navigator.storage.getDirectory()).getDirectoryHandle("ggml-lite");
                self.handle = await (await dir.getFileHandle(${JSON.stringify(name)})).createSyncAccessHandle();
                self.onmessage = () => { handle.close(); postMessage("closed"); };
                postMessage("open");
            })().catch((e) => postMessage(String(e)))`));
            holder.onmessage = (e) => (e.data === "open" ? resolve() : reject(new Error(e.data)));
        });
        window.release = () => new Promise((resolve) => {
            holder.onmessage = () => resolve(holder.terminate());
            holder.postMessage("close");
        });
    }, at + "model.gguf");
    const load = () => tab.eval(() => window.load()), mark = () => tab.eval(() => window.mark());
    const want = await load();
    assert.match(await mark(), /^"1" /);
    await tab.eval(() => window.hold());
    assert.equal(await load(), want); // the same version: the file that is held
    version = 2;
    assert.equal(await load(), want); // another version: from the network
    assert.match(await mark(), /^"1" /);
    await tab.eval(() => window.release());
    assert.deepEqual(await tab.eval(() => Promise.all([window.load(), window.load()])), [want, want]); // both find another version
    assert.match(await mark(), /^"2" /);
    await tab.close();
});

test("a long text stops", async () => {
    const tab = await openPage();
    const found = await tab.eval(async () => {
        const { Model } = await import("./ggml-lite/index.mjs");
        const model = await Model.load("builtin:stories"), stop = new AbortController();
        let n = 0, name = "";
        try {
            for await (const piece of model.generate("Once", { signal: stop.signal })) if (piece && ++n === 3) stop.abort();
        } catch (e) {
            name = e.name;
        }
        model.close();
        return name;
    });
    assert.equal(found, "AbortError");
    await tab.close();
});
