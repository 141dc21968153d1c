// Where the page is that the tests run: GGL_PAGE_DIR, or what the release build made of tools/llm-server/page.

import { existsSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const BUILT = fileURLToPath(new URL('../../../build/release/tools/llm-server/page/files', import.meta.url));

export const PAGE = resolve(process.env.GGL_PAGE_DIR ?? BUILT);
if (!existsSync(join(PAGE, 'app.js'))) {
    throw new Error(`${PAGE} has no page; configure the build, or name its folder by GGL_PAGE_DIR`);
}

/** True if the page has this library, whose module is NAME.js. */
export async function hasLibrary(name) {
    return (await pageModule(name + '.js')).default !== null;
}

export function pageModule(name) {
    return import(pathToFileURL(join(PAGE, name)).href);
}

let session = null;

/** How many blocks of the page's code f() runs, those of its libraries included: the same number on every machine. */
export function stepsOf(f) {
    const ask = (method, parameters) => {
        let answer;
        session.post(method, parameters, (error, result) => (answer = result));
        return answer;
    };
    if (!session) {
        session = new Session();
        session.connect();
        ask('Profiler.enable');
        ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    }
    ask('Profiler.takePreciseCoverage'); // resets the counts
    f();
    const scripts = ask('Profiler.takePreciseCoverage').result.filter((s) => s.url.startsWith(pathToFileURL(PAGE).href));
    return scripts
        .flatMap((s) => s.functions)
        .flatMap((fn) => fn.ranges)
        .reduce((sum, range) => sum + range.count, 0);
}
