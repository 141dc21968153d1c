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

/** Makes an instance, which has not run anything yet, one that can use n threads, if there is memory for them; returns how many it can use. The first is
 * the caller's. start(data) starts another one, a worker of thread.mjs with this data; its promise is waited for. */
export async function startThreads(module, instance, n, start) {
    const { add } = host(instance), started = [];
    let usable = 1;
    for (let k = 0; k < POOLS * (n - 1); k++) {
        const able = Math.min(k + 2, n), stack = add(able);
        if (!stack) break;
        usable = able;
        started.push(start({ module, memory: instance.exports.memory, stack, k }));
    }
    await Promise.all(started);
    return usable;
}
