// A worker that is one more thread of a module of WebAssembly (threads.mjs): it waits for what it is to run, again and again.
import { host } from "./threads.mjs";
import { isWide, Wasi } from "./wasi.mjs";

const isNode = typeof process === "object" && Boolean(process.versions?.node);

async function serve({ module, memory, stack, k }, ready) {
    const wasi = new Wasi({ wide: isWide(module) });
    wasi.memory = memory;
    const imports = { ...wasi.imports(), env: { memory } };
    for (const { module: from, name, kind } of WebAssembly.Module.imports(module))
        if (kind === "function" && !imports[from]?.[name])
            (imports[from] ??= {})[name] = () => {
                throw new Error(`a thread calls ${name}`);
            };
    const instance = await WebAssembly.instantiate(module, imports);
    instance.exports.__stack_pointer.value = stack;
    ready();
    host(instance).serve(k);
}

/** Serves until an error ends it, which is thrown outside of the promise, so that it is one of this worker and its owner hears of it. */
function run(data, ready) {
    return serve(data, ready).catch((e) => {
        setTimeout(() => {
            throw e;
        });
    });
}

if (isNode)
    import("node:worker_threads").then(async ({ parentPort, workerData }) => {
        if (!workerData) return parentPort.once("message", (data) => run(data, () => parentPort.postMessage("ready")));
        await serve(workerData, () => {}).catch(async (e) => { // of a program
            // The program waits for this thread, and would do so forever.
            (await import("node:fs")).writeSync(2, `a thread of the program: ${e.stack}\n`);
            process.kill(process.pid, "SIGKILL");
        });
    });
else self.onmessage = (e) => run(e.data, () => self.postMessage("ready"));
