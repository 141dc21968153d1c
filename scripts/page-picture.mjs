// A picture of llm-server's page with one conversation: page-picture.mjs PROGRAM FILE.png; scripts/pictures.py calls it.

import { spawn } from 'node:child_process';
import { Chromium, findChromium } from '../tests/server/page/chromium.mjs';

const [program, file] = process.argv.slice(2);
const QUESTION = 'Tell me a story about a fox.';

/** Starts the server on a free port; gives its address. */
function start() {
    const server = spawn(program, ['-m', 'builtin:chat', '--port', '0', '--seed', '3'], { stdio: ['ignore', 'pipe', 'pipe'] });
    const url = new Promise((resolve, reject) => {
        const look = (data) => {
            const found = String(data).match(/http:\/\/127[0-9.]*:[0-9]+/);
            if (found) {
                resolve(found[0]);
            }
        };
        server.stdout.on('data', look);
        server.stderr.on('data', look);
        server.on('exit', (code) => reject(new Error(`${program} ended with ${code}`)));
    });
    return { server, url };
}

if (!findChromium()) {
    console.error('page-picture: Chromium is not installed (Debian: chromium)');
    process.exit(1);
}
const { server, url } = start();
const browser = await Chromium.launch();
try {
    const tab = await browser.newTab((await url) + '/', { width: 1000, height: 560 });
    await tab.until(() => document.querySelector('#server-facts')?.textContent);
    await tab.click('#text');
    await tab.type(QUESTION);
    await tab.press('Enter');
    await tab.until(() => document.querySelectorAll('.assistant .speed:not(:empty)').length && document.querySelector('#stop').hidden);
    await new Promise((resolve) => setTimeout(resolve, 500)); // what fades has faded
    await tab.screenshot(file);
} finally {
    await browser.close();
    server.removeAllListeners('exit');
    server.kill();
}
