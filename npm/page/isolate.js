// A service worker, so that the page can use several threads on any host of files: memory is shared only on a page that comes with these headers,
// which few hosts send. page.mjs registers it.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(clients.claim()));

async function isolated(request) {
    const r = await fetch(request);
    if (r.status === 0) return r; // a redirection, which the browser follows
    const headers = new Headers(r.headers);
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    headers.set("Cross-Origin-Embedder-Policy", "require-corp");
    return new Response(r.body, { status: r.status, statusText: r.statusText, headers });
}

addEventListener("fetch", (e) => {
    if (new URL(e.request.url).origin === location.origin && e.request.method === "GET" && !(e.request.cache === "only-if-cached" && e.request.mode !== "same-origin"))
        e.respondWith(isolated(e.request));
});
