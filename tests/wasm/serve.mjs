// A host of static files for tests in a browser, and the browser that GGL_WASM_BROWSER names: chromium (the default) or firefox.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { Chromium } from "../server/page/chromium.mjs";
import { Firefox } from "../server/page/firefox.mjs";

const TYPES = { ".html": "text/html", ".mjs": "text/javascript", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

export const launch = () => ({ chromium: Chromium, firefox: Firefox })[process.env.GGL_WASM_BROWSER ?? "chromium"].launch();

/** Serves the file that toFile(path) names, with headers(path) besides those of its kind. Returns the server, and the address of its root. */
export async function serve(toFile, headers) {
    const server = createServer(async (request, response) => {
        const path = request.url === "/" ? "/index.html" : request.url;
        try {
            const bytes = await readFile(toFile(path));
            response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream", "content-length": bytes.length, ...headers(path) });
            response.end(request.method === "HEAD" ? undefined : bytes);
        } catch {
            response.writeHead(404).end();
        }
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { server, at: `http://127.0.0.1:${server.address().port}/` };
}
