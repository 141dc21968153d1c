// Runs a program for WASI, with the files of this machine: node npm/run.mjs PROGRAM.wasm ARGUMENTS..
import { WASI } from "node:wasi";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const [program, ...args] = process.argv.slice(2);
if (!program) {
    console.error("usage: node run.mjs PROGRAM.wasm ARGUMENTS..");
    process.exit(2);
}
// PWD: where relative paths begin
const wasi = new WASI({
    version: "preview1",
    args: [resolve(program), ...args],
    env: { ...process.env, PWD: process.cwd() },
    preopens: { "/": "/" },
    returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
