// Files from the network. In a browser that has a file system of its own (OPFS), they are kept there; NAME.complete is beside those that
// have arrived whole, and says under which mark of the server (ETag).
import { Kept, Parts, Picked } from "./files-memory.mjs";

const FOLDER = "ggml-lite";

async function folder() {
    if (!globalThis.navigator?.storage?.getDirectory || !globalThis.FileSystemFileHandle?.prototype.createSyncAccessHandle) return null;
    try {
        return await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
    } catch {
        return null; // as in private windows of some browsers
    }
}

/** Returns a handle to write a file by; null: another page has one, and there is only one at a time. */
async function openToWrite(dir, name) {
    try {
        return await (await dir.getFileHandle(name, { create: true })).createSyncAccessHandle();
    } catch {
        return null;
    }
}

/** Returns a file that was kept; null: it is not there. While another page has its handle, it is read as a file that somebody picked. */
async function openKept(dir, name) {
    try {
        const file = await dir.getFileHandle(name);
        const handle = await file.createSyncAccessHandle().catch(() => null);
        return handle ? new Kept(handle) : new Picked(await file.getFile());
    } catch {
        return null;
    }
}

async function mark(dir, name) {
    try {
        return await (await (await dir.getFileHandle(name + ".complete")).getFile()).text();
    } catch {
        return null;
    }
}

/** Reads all of a response; each part goes to `put`. */
async function read(response, url, put, progress, signal) {
    const total = Number(response.headers.get("content-length")) || 0;
    const reader = response.body.getReader();
    let done = 0;
    for (;;) {
        signal?.throwIfAborted(); // parts may have arrived before
        const { value, done: isEnd } = await reader.read().catch((e) => {
            throw e.name === "AbortError" ? e : new Error(`${url}: the connection ended after ${done}${total ? ` of ${total}` : ""} bytes (${e.cause?.message ?? e.message}); try again`);
        });
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
    signal?.throwIfAborted();
    const dir = cache ? await folder() : null;
    const name = encodeURIComponent(url).slice(-200);
    let response;
    try {
        response = await fetch(url, { signal });
    } catch (e) {
        if (e.name === "AbortError") throw e;
        const kept = dir && (await mark(dir, name)) !== null ? await openKept(dir, name) : null; // without a network
        if (!kept) throw new Error(`${url}: cannot be fetched (${e.cause?.message ?? e.message})`);
        return kept;
    }
    if (!response.ok) throw new Error(`${url}: the server answers ${response.status} ${response.statusText}`);
    const version = `${response.headers.get("etag") ?? response.headers.get("last-modified") ?? ""} ${response.headers.get("content-length") ?? ""}`;
    const kept = dir && version.trim() && (await mark(dir, name)) === version ? await openKept(dir, name) : null;
    if (kept) {
        response.body.cancel().catch(() => {});
        return kept;
    }
    // Who has the handle may change the file and its mark; before that, the file may be what another page reads.
    const handle = dir && await openToWrite(dir, name);
    if (!handle) {
        const parts = [];
        await read(response, url, (part) => parts.push(part), progress, signal);
        return new Parts(parts);
    }
    try {
        await dir.removeEntry(name + ".complete").catch(() => {});
        handle.truncate(0);
        await read(response, url, (part, at) => {
            if (handle.write(part, { at }) !== part.length) throw new Error(`${url}: the browser has no room to keep it; pass cache: false`);
        }, progress, signal);
        handle.flush();
        const complete = await openToWrite(dir, name + ".complete"); // without it the file is fetched again the next time
        complete?.truncate(0);
        complete?.write(new TextEncoder().encode(version), { at: 0 });
        complete?.close();
    } catch (e) {
        handle.close();
        await dir.removeEntry(name).catch(() => {});
        throw e.name === "QuotaExceededError" ? new Error(`${url}: the browser has no room to keep it; pass cache: false`) : e;
    }
    return new Kept(handle);
}
