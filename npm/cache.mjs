// Files from the network. In a browser that has a file system of its own (OPFS), they are kept there; NAME.complete is beside those that
// have arrived whole, and says under which mark of the server (ETag).
import { Kept, Parts } from "./files-memory.mjs";

const FOLDER = "ggml-lite";

async function folder() {
    if (!globalThis.navigator?.storage?.getDirectory || !globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) return null;
    try {
        return await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
    } catch {
        return null; // as in private windows of some browsers
    }
}

async function open(dir, name) {
    return (await dir.getFileHandle(name, { create: true })).createSyncAccessHandle();
}

async function mark(dir, name) {
    try {
        return await (await (await dir.getFileHandle(name + ".complete")).getFile()).text();
    } catch {
        return null;
    }
}

/** Reads all of a response; each part goes to `put`. */
async function read(response, url, put, progress) {
    const total = Number(response.headers.get("content-length")) || 0;
    const reader = response.body.getReader();
    let done = 0;
    for (;;) {
        const { value, done: isEnd } = await reader.read();
        if (isEnd) break;
        put(value, done);
        done += value.length;
        progress(done, Math.max(total, done));
    }
    if (total && done !== total && !response.headers.get("content-encoding"))
        throw new Error(`${url}: ${done} of ${total} bytes arrived; try again`);
}

/** Returns the file at an address, for a program to read. */
export async function download(url, { cache = true, progress, signal }) {
    const dir = cache ? await folder() : null;
    const name = encodeURIComponent(url).slice(-200);
    let response;
    try {
        response = await fetch(url, { signal });
    } catch (e) {
        const kept = dir && e.name !== "AbortError" && (await mark(dir, name)) !== null; // without a network
        if (!kept) throw e.name === "AbortError" ? e : new Error(`${url}: cannot be fetched (${e.cause?.message ?? e.message})`);
        return new Kept(await open(dir, name));
    }
    if (!response.ok) throw new Error(`${url}: the server answers ${response.status} ${response.statusText}`);
    if (!dir) {
        const parts = [];
        await read(response, url, (part) => parts.push(part), progress);
        return new Parts(parts);
    }
    const version = `${response.headers.get("etag") ?? response.headers.get("last-modified") ?? ""} ${response.headers.get("content-length") ?? ""}`;
    if (version.trim() && (await mark(dir, name)) === version) {
        response.body.cancel();
        return new Kept(await open(dir, name));
    }
    await dir.removeEntry(name + ".complete").catch(() => {});
    const handle = await open(dir, name);
    try {
        handle.truncate(0);
        await read(response, url, (part, at) => {
            if (handle.write(part, { at }) !== part.length) throw new Error(`${url}: the browser has no room to keep it`);
        }, progress);
        handle.flush();
        const complete = await open(dir, name + ".complete");
        complete.truncate(0);
        complete.write(new TextEncoder().encode(version), { at: 0 });
        complete.close();
    } catch (e) {
        handle.close();
        await dir.removeEntry(name).catch(() => {});
        throw e.name === "QuotaExceededError" ? new Error(`${url}: the browser has no room to keep it; pass cache: false`) : e;
    }
    return new Kept(handle);
}
