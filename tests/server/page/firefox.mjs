// Drives a headless Firefox over WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/): what chromium.mjs does, as far as tests in both need it.
// It needs a global WebSocket: node 22 or later, or node 20.10 with --experimental-websocket.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser, DrivenTab, findProgram } from './driver.mjs';

const NAMES = ['firefox', 'firefox-esr'];
// Firefox calls its maker's servers when it starts; these keep it from that.
const PREFERENCES = {
    'app.normandy.enabled': false,
    'datareporting.policy.dataSubmissionEnabled': false,
    'network.captive-portal-service.enabled': false,
    'network.connectivity-service.enabled': false,
    'services.settings.server': 'data:,#remote-settings-dummy/v1',
};

/** The program, or null if there is none. */
export function findFirefox() {
    return findProgram(process.env.FIREFOX ? [process.env.FIREFOX] : NAMES);
}

export class Firefox extends Browser {
    static async launch() {
        const browser = new Firefox();
        const lines = Object.entries(PREFERENCES).map((p) => `user_pref(${JSON.stringify(p[0])}, ${JSON.stringify(p[1])});\n`);
        writeFileSync(join(browser.dir, 'user.js'), lines.join(''));
        const options = ['--headless', '--no-remote', '--profile', browser.dir, '--remote-debugging-port=0', 'about:blank'];
        browser.start(findFirefox(), options, ['ignore', 'ignore', 'pipe']);
        const address = await new Promise((resolve, reject) => {
            let said = '';
            browser.process.stderr.on('data', (data) => {
                said += data;
                const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
                found && resolve(found[1]);
            });
            browser.process.on('exit', () => reject(new Error('Firefox ends: ' + said)));
        });
        browser.socket = new WebSocket(address + '/session');
        browser.socket.onmessage = (event) => browser.message(JSON.parse(event.data));
        await new Promise((resolve, reject) => {
            browser.socket.onopen = resolve;
            browser.socket.onerror = () => reject(new Error('no connection to ' + address));
        });
        await browser.send('session.new', { capabilities: {} });
        await browser.send('session.subscribe', { events: ['log.entryAdded'] });
        return browser;
    }

    send(method, params = {}) {
        return this.call(method, { params }, (text) => this.socket.send(text));
    }

    /** A new tab. Tabs of one context share their storage; `context` is what newContext() gave. */
    async newTab(url, { context } = {}) {
        const created = await this.send('browsingContext.create', { type: 'tab', userContext: context });
        const tab = new Tab(this, created.context);
        await tab.goto(url);
        return tab;
    }

    /** An own storage, as of a new browser. */
    async newContext() {
        return (await this.send('browser.createUserContext')).userContext;
    }

    close() {
        return this.end('browser.close');
    }
}

const KEYS = { Enter: '\uE007', Escape: '\uE00C', Tab: '\uE004', Backspace: '\uE003', Alt: '\uE00A', Control: '\uE009', Meta: '\uE03D', Shift: '\uE008' };

class Tab extends DrivenTab {
    constructor(browser, context) {
        super();
        Object.assign(this, { browser, context });
        browser.listeners.add(({ method, params }) => {
            if (method === 'log.entryAdded' && params.level === 'error' && params.source.context === context) {
                this.problems.push(params.text);
            }
        });
    }

    send(method, params) {
        return this.browser.send(method, { context: this.context, ...params });
    }

    goto(url) {
        return this.send('browsingContext.navigate', { url, wait: 'complete' });
    }

    /** Evaluates f(...args) in the page and returns its JSON value. */
    async eval(f, ...args) {
        const { result, exceptionDetails } = await this.browser.send('script.callFunction', {
            functionDeclaration: `async (args) => JSON.stringify(await (${f})(...JSON.parse(args)))`,
            arguments: [{ type: 'string', value: JSON.stringify(args) }],
            target: { context: this.context },
            awaitPromise: true,
        });
        if (exceptionDetails) {
            throw new Error(exceptionDetails.text);
        }
        return result.value && JSON.parse(result.value);
    }

    /** Moves the mouse to a place in the window, and presses and releases its button there if `clicks`. */
    mouse({ x, y }, clicks) {
        const actions = [{ type: 'pointerMove', x: Math.round(x), y: Math.round(y) }];
        if (clicks) {
            actions.push({ type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 });
        }
        return this.send('input.performActions', { actions: [{ type: 'pointer', id: 'mouse', actions }] });
    }

    /** Presses keys: "Enter", "Shift+Enter", "Control+k". */
    async press(...chords) {
        for (const chord of chords) {
            const keys = (chord === '+' ? ['+'] : chord.split('+')).map((key) => KEYS[key] ?? key);
            const actions = [...keys.map((value) => ({ type: 'keyDown', value })), ...keys.reverse().map((value) => ({ type: 'keyUp', value }))];
            await this.send('input.performActions', { actions: [{ type: 'key', id: 'keys', actions }] });
        }
    }

    /** Gives a file to an <input type=file>. */
    async chooseFile(selector, path) {
        const { nodes } = await this.send('browsingContext.locateNodes', { locator: { type: 'css', value: selector } });
        await this.send('input.setFiles', { element: { sharedId: nodes[0].sharedId }, files: [path] });
    }

    close() {
        return this.send('browsingContext.close');
    }
}
