// A page that runs a model in the browser: choose one, and talk.
import { Model } from "./ggml-lite/index.mjs";

const $ = (id) => document.getElementById(id);
const show = (id, is = true) => ($(id).hidden = !is);

let model = null, messages = [], running = null, isBusy = false; // whether somebody has chosen a model

function fail(e) {
    $("bad").textContent = e.message;
    show("bad");
}

// --- threads ---

/** Loads the page again, once, by a service worker that isolates it. Without one, models have one thread. */
async function isolate() {
    if (globalThis.crossOriginIsolated || !navigator.serviceWorker || sessionStorage.getItem("isolated")) return;
    await navigator.serviceWorker.register("./isolate.js");
    await navigator.serviceWorker.ready;
    if (isBusy) return; // with one thread; the next visit has more
    sessionStorage.setItem("isolated", "tried"); // so that a browser that does not isolate it is asked once
    location.reload();
}
isolate().catch(() => {}); // a browser without service workers, or without their storage

// --- choosing a model ---

async function load(source, name) {
    isBusy = true;
    for (const button of $("choose").querySelectorAll("button")) button.disabled = true;
    show("bad", false);
    $("state").textContent = `Loading ${name} ..`;
    try {
        model = await Model.load(source, {
            progress: (done, total) => {
                show("progress");
                $("progress").max = total || 1;
                $("progress").value = done;
            },
        });
        $("model-name").textContent = name;
        for (const id of ["thread", "ask", "other", "new"]) show(id);
        show("choose", false);
        begin();
    } catch (e) {
        fail(e);
    }
    for (const button of $("choose").querySelectorAll("button")) button.disabled = false;
    show("progress", false);
    $("state").textContent = "";
}

function begin() {
    running?.abort();
    messages = [];
    $("thread").replaceChildren();
    show("bad", false);
    $("text").placeholder = model.hasChat ? "Write a message" : "Begin a text; the model continues it";
    $("text").focus();
}

$("builtin").onclick = () => load("builtin:chat", "built-in model");
$("pick").onclick = () => $("file").click();
$("file").onchange = () => {
    const file = $("file").files[0];
    $("file").value = "";
    if (file) load(file, file.name);
};
$("fetch").onsubmit = (e) => {
    e.preventDefault();
    const url = new URL($("address").value);
    load(url, decodeURIComponent(url.pathname.split("/").pop()) || url.host);
};
$("other").onclick = () => {
    running?.abort();
    model.close();
    model = null;
    for (const id of ["thread", "ask", "other", "new"]) show(id, false);
    $("model-name").textContent = "";
    show("choose");
};
$("new").onclick = begin;

// --- the conversation ---

function add(role, text) {
    const p = document.createElement("p");
    p.className = `said ${role}`;
    p.textContent = text;
    $("thread").append(p);
    return p;
}

function follow() {
    scrollTo(0, document.documentElement.scrollHeight);
}

async function answer(text) {
    const own = (running = new AbortController()), asked = model;
    show("send", false);
    show("stop");
    show("bad", false);
    const p = add(asked.hasChat ? "user" : "assistant", text), to = asked.hasChat ? add("assistant", "") : p;
    let said = "";
    try {
        const options = { signal: own.signal, maxTokens: asked.hasChat ? 0 : 256, seed: Math.floor(Math.random() * 2 ** 32) };
        if (asked.hasChat) messages.push({ role: "user", content: text });
        for await (const piece of asked.hasChat ? asked.chat(messages, options) : asked.generate(text, options)) {
            to.append(said || !asked.hasChat ? piece : piece.trimStart());
            said += piece;
            follow();
        }
        const run = asked.lastRun, speed = document.createElement("p");
        speed.className = "speed";
        speed.textContent = `${run.tokens} tokens, ${(run.tokens / Math.max(run.seconds, 1e-6)).toFixed(1)} per second`;
        $("thread").append(speed);
    } catch (e) {
        if (e.name !== "AbortError") fail(e);
    }
    if (running === own) {
        if (asked.hasChat) said ? messages.push({ role: "assistant", content: said }) : messages.pop();
        running = null;
        show("send");
        show("stop", false);
    }
    follow();
}

$("stop").onclick = () => running?.abort();
$("ask").onsubmit = (e) => {
    e.preventDefault();
    const text = $("text").value.trim();
    if (!text || running) return;
    $("text").value = "";
    answer(text);
};
$("text").onkeydown = (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    $("ask").requestSubmit();
};
