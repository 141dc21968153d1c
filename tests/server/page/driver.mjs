// What the drivers of Chromium (chromium.mjs) and of Firefox (firefox.mjs) have in common: numbered calls, and what a test asks of a tab.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PATIENCE = 60000; // milliseconds until a condition that does not come true fails the test

/** The first of these programs that runs, or null. */
export function findProgram(names) {
    return names.find((name) => spawnSync(name, ['--version']).status === 0) ?? null;
}

/** A browser with a new profile in `dir`. A subclass starts it, and gives message() what it sends. */
export class Browser {
    dir = mkdtempSync(join(tmpdir(), 'page-test-'));
    waiting = new Map();
    listeners = new Set();
    next = 1;
    hasEnded = false;

    /** Starts the program. If it ends, so does all that waits for an answer. */
    start(program, options, stdio) {
        this.process = spawn(program, options, { stdio });
        this.ended = new Promise((resolve) =>
            this.process.on('exit', () => {
                this.hasEnded = true;
                this.waiting.forEach(({ method, reject }) => reject(new Error(`${method}: the browser ended`)));
                resolve();
            }),
        );
        this.process.stdio.forEach((pipe) => pipe?.on('error', () => {})); // it may end while something is written
    }

    /** Sends a command by write(text); returns the promise of its result. */
    call(method, rest, write) {
        if (this.hasEnded) {
            return Promise.reject(new Error(`${method}: the browser ended`));
        }
        const id = this.next++;
        write(JSON.stringify({ id, method, ...rest }));
        return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, method }));
    }

    message(message) {
        const waiting = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if (waiting && message.error) {
            waiting.reject(new Error(`${waiting.method}: ${message.error.message}`));
        } else if (waiting) {
            waiting.resolve(message.result);
        } else {
            this.listeners.forEach((f) => f(message));
        }
    }

    /** Ends the browser by this command, and removes its profile. */
    async end(method) {
        this.send(method).catch(() => {});
        await this.ended;
        rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    }
}

/** A tab. A subclass has eval(f, ...args), mouse(at, clicks) and press(...chords). */
export class DrivenTab {
    problems = []; // exceptions, console errors, violations of the policy

    /** Waits until f(...args) in the page is true, and returns its value. */
    async until(f, ...args) {
        for (const end = Date.now() + PATIENCE; ;) {
            const value = await this.eval(f, ...args);
            if (value) {
                return value;
            }
            if (Date.now() > end) {
                const shown = await this.eval(() => document.body.innerText.slice(0, 1500));
                throw new Error(
                    `waited in vain for ${f} ${JSON.stringify(args)}; problems: ${this.problems}; the page:\n${shown}`,
                );
            }
            await new Promise((resolve) => setTimeout(resolve, 30));
        }
    }

    text(selector) {
        return this.eval((s) => document.querySelector(s)?.innerText ?? null, selector);
    }

    count(selector) {
        return this.eval((s) => document.querySelectorAll(s).length, selector);
    }

    /** Clicks an element as a user does: it must be visible, and nothing may lie over it. */
    async click(selector, nth = 0) {
        const at = await this.until(
            (s, n) => {
                const element = [...document.querySelectorAll(s)].at(n);
                if (!element || element.disabled) {
                    return null;
                }
                element.scrollIntoView({ block: 'nearest' });
                const box = element.getBoundingClientRect(),
                    x = box.x + box.width / 2,
                    y = box.y + box.height / 2;
                const hit = document.elementFromPoint(x, y);
                return box.width &&
                    (element === hit || element.contains(hit) || hit?.closest('label')?.contains(element))
                    ? { x, y }
                    : null;
            },
            selector,
            nth,
        );
        await this.mouse(at, true);
    }

    /** Moves the mouse onto an element. */
    async hover(selector) {
        const at = await this.eval((s) => {
            const box = document.querySelector(s).getBoundingClientRect();
            return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
        }, selector);
        await this.mouse(at, false);
    }

    /** Types text, character by character. */
    async type(text) {
        for (const c of text) {
            await (c === '\n' ? this.press('Shift+Enter') : this.press(c));
        }
    }
}
