// A service worker, so that the page can use several threads on any host of files: memory is shared only on a page that comes with these headers,
// which few hosts send, and by workers that come with them, too. page.mjs registers it. Other pages in this folder stay as they are.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(clients.claim()));

const own = new URL("./", location).pathname;
const isPage = (r) => r.mode === "navigate" && [own, own + "index.html"].includes(new URL(r.url).pathname);
const isWorker = (r) => r.destination === "worker" && new URL(r.url).pathname.startsWith(own + "ggml-lite/");

async function isolated(request) {
    const r = await fetch(request);
    if (r.status < 200 || [204, 205, 304].includes(r.status)) return r; // a redirection, which the browser follows; or no contents
    const headers = new Headers(r.headers);
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    headers.set("Cross-Origin-Embedder-Policy", "require-corp");
    return new Response(r.body, { status: r.status, statusText: r.statusText, headers });
}

addEventListener("fetch", (e) => {
    const isOurs = new URL(e.request.url).origin === location.origin;
    if (isOurs && (isPage(e.request) || isWorker(e.request))) e.respondWith(isolated(e.request));
});
