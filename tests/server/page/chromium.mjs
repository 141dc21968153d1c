// Drives a headless Chromium over the DevTools protocol, through a pipe: real clicks, real keys, screenshots. No dependency.

import { writeFileSync } from 'node:fs';
import { Browser, DrivenTab, findProgram } from './driver.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The program, or null if there is none. */
export function findChromium() {
    return findProgram(process.env.CHROMIUM ? [process.env.CHROMIUM] : NAMES);
}

export class Chromium extends Browser {
    static async launch() {
        const browser = new Chromium();
        const options = [
            '--headless=new',
            '--remote-debugging-pipe',
            '--no-first-run',
            '--disable-gpu',
            '--mute-audio',
            '--use-fake-device-for-media-stream', // a microphone that beeps, which pages may use
            '--use-fake-ui-for-media-stream',
            '--disable-background-networking',
            '--disable-component-update',
            '--disable-sync',
            '--hide-scrollbars',
            '--user-data-dir=' + browser.dir,
            '--disable-dev-shm-usage',
        ];
        if (process.getuid?.() === 0) {
            options.push('--no-sandbox'); // Chromium refuses to run as root with it
        }
        browser.start(findChromium(), [...options, 'about:blank'], ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']);
        browser.receive(browser.process.stdio[4]);
        return browser;
    }

    receive(pipe) {
        let rest = Buffer.alloc(0);
        pipe.on('data', (data) => {
            rest = Buffer.concat([rest, data]);
            for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
                this.message(JSON.parse(rest.subarray(0, end).toString()));
            }
        });
    }

    send(method, params = {}, sessionId = undefined) {
        return this.call(method, { params, sessionId }, (text) => this.process.stdio[3].write(text + '\0'));
    }

    /** A new tab. Tabs of one context share their storage; `context` is what newContext() gave. */
    async newTab(url, { context, width = 1280, height = 800, dark = false, mobile = false } = {}) {
        const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId: context });
        const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
        const tab = new Tab(this, targetId, sessionId);
        await tab.start({ width, height, dark, mobile });
        await tab.goto(url);
        return tab;
    }

    /** An own storage, as of a new browser. */
    async newContext() {
        return (await this.send('Target.createBrowserContext')).browserContextId;
    }

    close() {
        return this.end('Browser.close');
    }
}

const KEYS = {
    Enter: 13,
    Escape: 27,
    Tab: 9,
    Backspace: 8,
    Delete: 46,
    ArrowLeft: 37,
    ArrowUp: 38,
    ArrowRight: 39,
    ArrowDown: 40,
    Home: 36,
    End: 35,
    F2: 113,
};
const MODIFIERS = { Alt: 1, Control: 2, Meta: 4, Shift: 8 };

export class Tab extends DrivenTab {
    constructor(browser, target, session) {
        super();
        Object.assign(this, { browser, target, session });
        this.requests = []; // URLs
        browser.listeners.add((m) => m.sessionId === session && this.event(m.method, m.params));
    }

    send(method, params) {
        return this.browser.send(method, params, this.session);
    }

    async start({ width, height, dark, mobile }) {
        await Promise.all(['Page', 'Runtime', 'Log', 'Network', 'DOM'].map((domain) => this.send(domain + '.enable')));
        await this.send('Emulation.setFocusEmulationEnabled', { enabled: true }); // a tab behind another is as quick
        await Promise.all([this.resize(width, height, mobile), this.dark(dark)]);
    }

    resize(width, height, mobile = false) {
        this.send('Emulation.setTouchEmulationEnabled', { enabled: mobile });
        return this.send('Emulation.setDeviceMetricsOverride', {
            width,
            height,
            deviceScaleFactor: mobile ? 2 : 1,
            mobile,
        });
    }

    dark(on) {
        return this.send('Emulation.setEmulatedMedia', {
            features: [{ name: 'prefers-color-scheme', value: on ? 'dark' : 'light' }],
        });
    }

    event(method, params) {
        if (method === 'Runtime.exceptionThrown') {
            const { exceptionDetails: d } = params;
            this.problems.push(d.exception?.description ?? d.text);
        } else if (method === 'Log.entryAdded' && params.entry.level === 'error') {
            this.problems.push(`${params.entry.text} ${params.entry.url ?? ''}`);
        } else if (method === 'Runtime.consoleAPICalled' && params.type === 'error') {
            this.problems.push(params.args.map((a) => a.value ?? a.description).join(' '));
        } else if (method === 'Network.requestWillBeSent') {
            this.requests.push(params.request.url);
        } else if (method === 'Page.loadEventFired') {
            this.loaded?.();
        }
    }

    async goto(url) {
        const loaded = new Promise((resolve) => (this.loaded = resolve));
        await this.send('Page.navigate', { url });
        await loaded;
    }

    async reload() {
        const loaded = new Promise((resolve) => (this.loaded = resolve));
        await this.send('Page.reload');
        await loaded;
    }

    /** Evaluates f(...args) in the page and returns its JSON value. */
    async eval(f, ...args) {
        const expression = `(${f})(...${JSON.stringify(args)})`;
        const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
            expression,
            awaitPromise: true,
            returnByValue: true,
        });
        if (exceptionDetails) {
            throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        }
        return result.value;
    }

    /** Moves the mouse to a place in the window, and presses and releases its button there if `clicks`. */
    async mouse(at, clicks) {
        const mouse = { ...at, button: 'left', clickCount: 1 };
        await this.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at });
        if (clicks) {
            await this.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...mouse });
            await this.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...mouse });
        }
    }

    /** Presses keys: "Enter", "Shift+Enter", "Control+k". */
    async press(...chords) {
        for (const chord of chords) {
            const parts = chord === '+' ? ['+'] : chord.split('+'),
                key = parts.pop();
            const modifiers = parts.reduce((sum, m) => sum + MODIFIERS[m], 0),
                letter = key.length === 1;
            const text = letter && !(modifiers & 7) ? key : key === 'Enter' ? '\r' : undefined;
            const code = KEYS[key] ?? (/[a-z0-9]/i.test(key) ? key.toUpperCase().charCodeAt(0) : 0);
            const event = {
                key,
                modifiers,
                text,
                windowsVirtualKeyCode: code,
                code: letter ? 'Key' + key.toUpperCase() : key,
            };
            await this.send('Input.dispatchKeyEvent', {
                type: text === undefined ? 'rawKeyDown' : 'keyDown',
                ...event,
            });
            await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
        }
    }

    async screenshot(path) {
        const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
        writeFileSync(path, Buffer.from(data, 'base64'));
    }

    /** Gives a file to an <input type=file>. */
    async chooseFile(selector, path) {
        const { root } = await this.send('DOM.getDocument');
        const { nodeId } = await this.send('DOM.querySelector', { nodeId: root.nodeId, selector });
        await this.send('DOM.setFileInputFiles', { nodeId, files: [path] });
    }

    close() {
        return this.browser.send('Target.closeTarget', { targetId: this.target });
    }
}
