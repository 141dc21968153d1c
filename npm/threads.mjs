// Threads of a module of WebAssembly that shares its memory (base/os_thread_wasm.c): workers with the same module and memory (thread.mjs), which wait
// for what they are to run.
const isNode = typeof process === "object" && Boolean(process.versions?.node);
const PAGE = 65536, FIRST = 64 * 1024 * 1024; // --initial-memory of cmake/wasm.cmake
const MOST_CORES = 16;
const POOLS = 2; // a program may have two sets of threads, such as those of two models: one set sleeps while the other computes

/** Whether memory can be shared: in node, and on pages that are isolated from others. */
export function canShare() {
    return typeof SharedArrayBuffer === "function" && (isNode || globalThis.crossOriginIsolated === true);
}

/** How many threads are best: of many logical cores, two each are usually one. */
export async function usualThreads() {
    if (!canShare()) return 1;
    const cores = isNode ? (await import("node:os")).availableParallelism?.() ?? 1 : navigator.hardwareConcurrency || 1;
    return cores <= 4 ? cores : Math.min(Math.ceil(cores / 2), MOST_CORES);
}

/** Memory that can grow to `least` bytes or more, as far as the machine lets it: a phone's browser refuses 4 GiB of addresses. wide: for modules whose
 * addresses have 64 bits. */
export function sharedMemory(least = FIRST, wide = false) {
    const toPages = (n) => (wide ? BigInt(n) : n), kind = wide ? { address: "i64" } : {};
    for (let most = wide ? 262144 : 65536; ; most /= 2)
        try {
            return new WebAssembly.Memory({ initial: toPages(FIRST / PAGE), maximum: toPages(most), shared: true, ...kind });
        } catch (e) {
            if ((most / 2) * PAGE < least) throw e;
        }
}

/** The module's own functions for threads, which it does not export. */
export function host({ exports }) {
    const at = exports.ggl_os_threads_host.value, Address = typeof at === "bigint" ? BigUint64Array : Uint32Array;
    const [add, serve] = new Address(exports.memory.buffer, Number(at), 2);
    return { add: exports.__indirect_function_table.get(add), serve: exports.__indirect_function_table.get(serve) };
}

/** Starts a worker; resolves when it waits for work. onPort gets a port on which it tells of an error after that. */
async function startWorker(data, onPort) {
    const channel = onPort && new MessageChannel();
    if (channel) data.port = channel.port2;
    const transfer = channel ? [channel.port2] : [];
    const url = new URL("./thread.mjs", import.meta.url);
    const node = isNode && (await import("node:worker_threads"));
    await new Promise((resolve, reject) => {
        if (isNode) {
            const thread = new node.Worker(url, { workerData: data, transferList: transfer });
            thread.once("message", resolve);
            thread.on("error", reject);
            thread.unref(); // it never ends
            if (data.isProgram) resolve(); // which can begin before its threads are there
        } else {
            const worker = new Worker(url, { type: "module" });
            worker.onmessage = resolve;
            worker.onerror = (e) => reject(new Error(e.message || `${url}: the worker cannot be started`));
            worker.postMessage(data, transfer);
        }
    });
    if (channel) onPort(channel.port1); // a worker that could not be started has told its error already
}

/** Makes an instance, which has not run anything yet, one that can use n threads, if there is memory for them; returns how many it can use. The first is
 * the caller's. options: isProgram: the process is nothing else, and ends with an error of a thread; onPort: gets a port for each thread, on which such an
 * error comes as a text. The caller may wait for the thread by then and hear nothing, so somebody else should listen. */
export async function startThreads(module, instance, n, { isProgram = false, onPort } = {}) {
    const { add } = host(instance), started = [];
    let usable = 1;
    for (let k = 0; k < POOLS * (n - 1); k++) {
        const able = Math.min(k + 2, n), stack = add(able);
        if (!stack) break;
        usable = able;
        started.push(startWorker({ module, memory: instance.exports.memory, stack, k, isProgram }, onPort));
    }
    await Promise.all(started);
    return usable;
}
