// e2e.page.browser: the page in headless Chromium, by real clicks and keys, against mock.mjs.
//   GGL_PAGE_URL=http://127.0.0.1:8080/   runs only the tests named "any server: ..", against that server
//   GGL_PAGE_SHOTS=DIR                    writes screenshots there

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Chromium } from './chromium.mjs';
import { startMock } from './mock.mjs';
import { PAGE, hasLibrary } from './page.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const REAL = process.env.GGL_PAGE_URL ?? '',
    SHOTS = process.env.GGL_PAGE_SHOTS ?? '';
const SAMPLE = readFileSync(join(HERE, 'sample.md'), 'utf8');
const FINISHED = (n) =>
    document.querySelectorAll('.assistant .speed:not(:empty)').length >= n && document.querySelector('#stop').hidden;

let browser, folder;

before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'page-files-'));
    browser = await Chromium.launch();
    if (SHOTS) {
        mkdirSync(SHOTS, { recursive: true });
    }
});

after(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
});

/** A tab of a new browser on the page; `expected`: patterns of problems that belong to the test. */
async function openPage(mock, options = {}) {
    const tab = await browser.newTab(mock.url, { context: await browser.newContext(), ...options });
    tab.origin = new URL(mock.url).origin;
    await tab.until(() => document.querySelector('#server-facts')?.textContent);
    return tab;
}

/** Nothing went wrong in the page, and nothing was fetched from elsewhere. */
async function checkClean(tab, ...expected) {
    const problems = tab.problems.filter((p) => !expected.some((e) => e.test(p)));
    assert.deepEqual(problems, []);
    assert.deepEqual(
        tab.requests.filter((url) => !url.startsWith(tab.origin) && !url.startsWith('data:') && !url.startsWith('blob:')),
        [],
    );
    await tab.close();
}

async function say(tab, text, answers = 1) {
    await tab.click('#text');
    await tab.type(text);
    await tab.press('Enter');
    await tab.until(FINISHED, answers);
}

/** Waits until the end of an answer is stored, or this part of it, a moment after it is shown; a reload before loses it. */
function stored(tab, part = '') {
    return tab.until(
        (wanted) =>
            new Promise((resolve) => {
                const open = indexedDB.open('llm-server');
                open.onsuccess = () => {
                    const all = open.result.transaction('conversations').objectStore('conversations').getAll();
                    all.onsuccess = () =>
                        resolve(
                            all.result.some((talk) =>
                                Object.values(talk.messages).some((m) => (wanted ? m.content.includes(wanted) : m.finish)),
                            ),
                        );
                    open.result.close();
                };
            }),
        part,
    );
}

async function shot(tab, name) {
    if (SHOTS) {
        await tab.screenshot(join(SHOTS, name + '.png'));
    }
}

const NONE = REAL ? 'this needs the mock server' : false,
    RICH = await hasLibrary('markdown-it'),
    tests = [];

/** A test f(mock), with a server of its own; `skip`: why not. */
function test(name, f, skip = false) {
    tests.push([name, { skip }, async () => {
        const mock = REAL ? { url: REAL, close() {} } : await startMock(PAGE, SAMPLE);
        await f(mock);
        await mock.close();
    }]);
}
const only = (name, f) => test(name, f, NONE);
/** Tests of what the page does with a library. Tests of texts are named "text: .."; they are run on the plain page, too. */
const rich = async (name, f, library = 'markdown-it') =>
    test('text: ' + name, f, NONE || ((await hasLibrary(library)) ? false : `this page has no ${library}`));

test('any server: a question is answered, with its speed, and both survive a reload', async (mock) => {
    const tab = await openPage(mock);
    await shot(tab, 'empty');
    assert.equal(await tab.eval(() => document.activeElement.id), 'text');
    await tab.click('#open-settings');
    await tab.click('#set-max_tokens');
    await tab.type('24');
    await tab.click('#close-settings');
    await say(tab, 'Tell me a story');
    assert.match(await tab.text('.assistant .speed'), /tokens\/s · first token after [\d.]+ s · \d+ tokens?/);
    const answer = await tab.text('.assistant .body');
    assert.ok(answer.length > 0);
    assert.equal(await tab.text('.user .body'), 'Tell me a story');
    await stored(tab);
    await tab.reload();
    await tab.until(FINISHED, 1);
    assert.equal(await tab.text('.assistant .body'), answer);
    assert.equal(await tab.text('#talks li'), 'Tell me a story');
    await checkClean(tab);
});

test('any server: tokens and their probabilities', async (mock) => {
    const tab = await openPage(mock);
    await tab.click('#open-settings');
    await tab.click('#probabilities');
    await tab.click('#set-max_tokens');
    await tab.type('16');
    await tab.click('#close-settings');
    await say(tab, 'Once upon a time');
    await tab.click('[data-do="tokens"]');
    const n = await tab.count('.token');
    assert.ok(n > 0);
    await tab.click('.token', Math.min(2, n - 1));
    await tab.until(() => document.querySelectorAll('.token-detail tr').length > 1);
    assert.equal(await tab.count('.token-detail .chosen'), 1);
    assert.match(await tab.text('.token-detail .chosen'), /%/);
    await shot(tab, 'tokens');
    await tab.press('ArrowLeft');
    await tab.until(
        (k) => document.querySelector('.token-detail p').textContent.startsWith(`Token ${k} of`),
        Math.min(2, n - 1) || 1,
    );
    await tab.click('[data-do="tokens"]');
    assert.equal(await tab.count('.token'), 0);
    await checkClean(tab);
});

test('any server: stop, answer again, branches', async (mock) => {
    const tab = await openPage(mock);
    await tab.click('#text');
    await tab.type(REAL ? 'Tell me a long story.' : 'endless');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.assistant .body').innerText.length > 5);
    await tab.press('Escape');
    await tab.until(FINISHED, 1);
    if (!REAL) {
        // a real server's model may have ended by itself
        assert.match(await tab.text('.assistant .note'), /Stopped/);
        for (const end = Date.now() + 5000; mock.closed === 0 && Date.now() < end;) {
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
        assert.equal(mock.closed, 1, 'the server was told');
    }
    const first = await tab.text('.assistant .body');
    await tab.click('[data-do="regenerate"]');
    await tab.until(
        () =>
            document.querySelector('.count')?.textContent === '2/2' &&
            document.querySelector('.assistant .body').innerText,
    );
    await (REAL ? tab.press('Escape') : tab.click('#stop')); // a real one may have ended already
    await tab.until(FINISHED, 1);
    await tab.click('[data-do="previous"]');
    await tab.until(() => document.querySelector('.count').textContent === '1/2');
    assert.equal(await tab.text('.assistant .body'), first);
    assert.equal(await tab.eval(() => document.activeElement.dataset.do ?? document.activeElement.tagName), 'ARTICLE');
    await tab.press('ArrowRight');
    await tab.until(() => document.querySelector('.count').textContent === '2/2');
    await checkClean(tab);
});

test('any server: every setting is accepted, and the same seed gives the same answer', async (mock) => {
    const tab = await openPage(mock);
    await tab.press('Control+,');
    const typed = {
        temperature: '0.9',
        top_p: '0.9',
        top_k: '30',
        min_p: '0.01',
        repeat_penalty: '1.1',
        presence_penalty: '0.1',
    };
    for (const [name, value] of Object.entries({ ...typed, frequency_penalty: '0.1', max_tokens: '12', seed: '42' })) {
        await tab.click('#set-' + name);
        await tab.type(value);
    }
    await tab.click('#system');
    await tab.type('You tell stories.');
    await tab.click('#stops');
    await tab.type('ZZZ');
    await tab.click('#probabilities');
    await tab.click('#close-settings');
    await say(tab, 'Tell me a story');
    assert.equal(await tab.count('.failed'), 0);
    const answer = await tab.text('.assistant .body');
    await tab.click('[data-do="regenerate"]');
    await tab.until(
        () => document.querySelector('.count')?.textContent === '2/2' && document.querySelector('#stop').hidden,
    );
    assert.equal(await tab.text('.assistant .body'), answer);
    await checkClean(tab);
});

only('the request has what is set, and nothing else', async (mock) => {
    const tab = await openPage(mock);
    await tab.press('Control+,');
    await tab.click('#system');
    await tab.type('Be brief.');
    await tab.click('#set-temperature');
    await tab.type('0.3');
    await tab.click('#set-top_p');
    await tab.type('7');
    assert.match(await tab.text('#set-top_p-help'), /has to be from 0 to 1/);
    await tab.click('#set-seed');
    await tab.type('42');
    await tab.click('#stops');
    await tab.type('END\n##');
    await tab.click('#make-default');
    await shot(tab, 'settings');
    await say(tab, 'one');
    assert.deepEqual(mock.requests.at(-1), {
        model: 'mock-model',
        messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: 'one' },
        ],
        temperature: 0.3,
        seed: 42,
        stream: true,
        stream_options: { include_usage: true },
        stop: ['END', '##'],
    });
    await tab.press('Control+Shift+O');
    await tab.until(() => document.querySelectorAll('.message').length === 0);
    await say(tab, 'two');
    assert.equal(mock.requests.at(-1).messages[0].content, 'Be brief.');
    await tab.click('#reset');
    await say(tab, 'three', 2);
    assert.deepEqual(
        mock.requests.at(-1).messages.map((m) => m.content),
        ['two', '2: two', 'three'],
    );
    assert.equal(mock.requests.at(-1).temperature, undefined);
    assert.equal(await tab.eval(() => document.querySelector('#set-temperature').placeholder), '0.8');
    await checkClean(tab);
});

await rich('Markdown is shown as elements', async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'sample');
    for (const selector of [
        'h3',
        'em',
        'strong',
        'ol ul li',
        'table td.right',
        'blockquote',
        'hr',
        'li.task input',
        'a[href^="https://en."]',
    ]) {
        assert.ok(await tab.count('.md ' + selector), selector);
    }
    assert.equal(
        await tab.eval(() => [...document.querySelectorAll('.md a')].every((a) => a.rel.includes('noopener'))),
        true,
    );
    const [code] = SAMPLE.match(/(?<=```c\n)[^]*?(?=```)/);
    assert.equal(
        await tab.eval(() => {
            getSelection().selectAllChildren(document.querySelector('pre code'));
            return getSelection().toString();
        }),
        code.trimEnd(),
        'code that is selected is copied as it is',
    );
    await tab.eval(() => document.querySelector('#scroll').scrollTo(0, 0));
    await shot(tab, 'markdown-light');
    await tab.click('#theme');
    await tab.click('#theme');
    assert.equal(await tab.eval(() => document.documentElement.dataset.theme), 'dark');
    await shot(tab, 'markdown-dark');
    await stored(tab);
    await tab.reload();
    await tab.until(FINISHED, 1);
    assert.equal(await tab.eval(() => getComputedStyle(document.body).colorScheme), 'dark');
    await checkClean(tab);
});

const colours = async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'sample');
    const keywords = () => [...document.querySelectorAll('pre')].map((e) => e.querySelectorAll('.keyword').length > 2);
    assert.deepEqual(await tab.eval(keywords), [true, true]);
    await checkClean(tab);
};
await rich('code has colours', colours, 'highlight-js');

const FORMULAS = String.raw`A \(\frac{a}{b}\), $x_i$ for $5:

$$
\sum_{k=1}^n \sqrt{k}
$$

\[ \begin{matrix} 1 & 2 \\ 3 & 4 \end{matrix} \]

$$\nonsense{$$`;

const formulas = async (mock) => {
    mock.options.texts = { formulas: FORMULAS };
    const tab = await openPage(mock);
    await say(tab, 'formulas');
    assert.equal(await tab.count('.formula .katex'), 4);
    assert.equal(await tab.text('.math'), String.raw`$$\nonsense{$$`);
    const labels = () => [...document.querySelectorAll('[role=math]')].map((e) => e.getAttribute('aria-label'));
    assert.deepEqual((await tab.eval(labels)).slice(0, 2), [String.raw`\frac{a}{b}`, 'x_i']);
    await tab.until(() => document.fonts.check('16px KaTeX_Math')); // from this server, as checkClean() sees
    await shot(tab, 'formulas');
    await checkClean(tab);
};
await rich('formulas are drawn, and what is none stays as it is written', formulas, 'katex');

const HOSTILE = [
    '<script>hacked = 1</script><img src=x onerror="hacked = 2"><svg onload="hacked = 3"><style>* { display: none }</style>',
    '<math><mtext><table><mglyph><style><img src=x onerror="hacked = 4"></style></mglyph></table></mtext></math>',
    '<form id=send name=send><input id=text name=attributes></form><a id=thread name=scroll href="javascript:hacked = 5">x</a>',
    '<iframe srcdoc="<script>parent.hacked = 6</script>"></iframe><base href="//x.org/"><meta http-equiv=refresh content="0">',
    '[x](javascript:hacked=7) [x](data:text/html,x) ![x](https://x.org/x.png) ![x](data:image/svg+xml,x) <javascript:hacked=8>',
    '```html"><img src=x onerror="hacked = 9">\n<img src=x onerror="hacked = 10">\n</code></pre><script>hacked = 11</script>\n```',
    '| <svg onload="hacked = 12"> |\n|-|\n| <img src=x onerror="hacked = 13"> |',
    String.raw`$\href{javascript:hacked=14}{x}$ $$\htmlStyle{position:fixed}{x}$$ $\includegraphics{https://x.org/x.png}$`,
    String.raw`$\def\a{\a\a}\a$ $\rule{9999em}{9999em}$ $\unicode{<img src=x>}$ $\text{<script>hacked = 15</script>}$`,
    '[ref][1] [ref]\n\n[1]: javascript:hacked=16\n[ref]: javascript:hacked=17',
];

only('text: an answer brings no markup, link, request or id onto the page', async (mock) => {
    mock.options.texts = { hostile: HOSTILE.join('\n\n') };
    const tab = await openPage(mock);
    const ids = await tab.count('[id], [name]');
    await say(tab, 'hostile');
    const found = await tab.eval(() => {
        const all = [...document.querySelectorAll('.assistant .body *')];
        const usual = /^(DIV|P|BR|SPAN|A|CODE|PRE|BUTTON|TABLE|THEAD|TBODY|TR|TH|TD|EM|STRONG)$/;
        const inFormula = (e) => /^(svg|path)$/.test(e.tagName) && e.closest('.formula');
        const attributes = (e) => [...e.attributes].map((a) => a.name).filter((n) => /^on|^src|^id$|^name$/.test(n));
        return {
            tags: all.filter((e) => !usual.test(e.tagName) && !inFormula(e)).map((e) => e.outerHTML),
            attributes: all.flatMap(attributes),
            links: all.map((e) => e.href).filter((url) => url !== undefined && !/^(https?|mailto):/.test(url)),
            wide: all.filter((e) => e.offsetWidth > 5000 || getComputedStyle(e).position === 'fixed').length,
            hacked: window.hacked ?? null,
        };
    });
    assert.deepEqual(found, { tags: [], attributes: [], links: [], wide: 0, hacked: null });
    assert.equal(await tab.count('.user [id], [id]:not(.user *), [name]'), ids);
    assert.match(await tab.text('.assistant .body'), /<script>hacked = 1<\/script>/);
    await shot(tab, 'hostile');
    await checkClean(tab);
});

only('text: what an answer has shown is not made again when more of it arrives', async (mock) => {
    const part = (k) => `## Part ${k}

Some *words* and \`code\` with a [link](https://x.org/${k}), in a **sentence** that is not short.

- one ${k}
- two **${k}**

| a | b |
|---|---|
| ${k} | 2 |

\`\`\`c
int x${k} = ${k}; // a comment
\`\`\`

`;
    mock.options.texts = { parts: Array.from({ length: 12 }, (_, k) => part(k)).join('') };
    const tab = await openPage(mock);
    await tab.eval(() => {
        window.count = (node) => 1 + [...node.childNodes].reduce((sum, kid) => sum + window.count(kid), 0);
        window.made = 0;
        const observer = new MutationObserver((changes) => {
            const inBody = changes.filter((change) => change.target.closest?.('.body'));
            inBody.forEach(({ addedNodes }) => addedNodes.forEach((node) => (window.made += window.count(node))));
        });
        observer.observe(document.querySelector('#thread'), { childList: true, subtree: true });
    });
    await say(tab, 'parts');
    const made = await tab.eval(() => window.made),
        there = await tab.eval(() => window.count(document.querySelector('.assistant .body')));
    console.log(`# ${made} nodes were made for ${there}`);
    assert.ok(there > 12 * 12 && made < 3 * there, `${made} nodes were made for ${there}`);
    await checkClean(tab);
});

only('text: what is pasted from the clipboard is what was copied', async (mock) => {
    const tab = await openPage(mock); // the only test that copies: all tabs share the clipboard
    await browser
        .send('Browser.grantPermissions', { permissions: ['clipboardReadWrite', 'clipboardSanitizedWrite'] })
        .catch(() => {});
    await say(tab, 'say *stars* and `code`');
    await tab.click('[data-do="copy"]', -1);
    await tab.until(() => document.querySelector('.actions .done'));
    const paste = async () => {
        await tab.click('#text');
        await tab.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'v', modifiers: 2, commands: ['paste'] });
    };
    await paste();
    await tab.until(() => document.querySelector('#text').value === '*stars* and `code`');
    await tab.eval(() => (document.querySelector('#text').value = ''));
    await tab.press('Control+Shift+O');
    await say(tab, 'sample');
    await tab.click('.copy-code');
    await tab.until(() => document.querySelector('.copy-code.done')?.textContent === 'Copied');
    await paste();
    await tab.until(
        (code) => document.querySelector('#text').value === code,
        SAMPLE.match(/(?<=```c\n)[^]*?(?=```)/)[0],
    );
    await checkClean(tab);
});

only('edit and branch', async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'one');
    await say(tab, 'two', 2);
    await tab.click('.user [data-do="edit"]', 0);
    await tab.press('End');
    await tab.type('!');
    await shot(tab, 'edit');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.user .body').textContent === 'one!');
    await tab.until(FINISHED, 1);
    assert.equal(await tab.text('.assistant .body'), '1: one!');
    assert.equal(await tab.count('.message'), 2);
    await tab.click('.user [data-do="previous"]');
    await tab.until(() => document.querySelectorAll('.message').length === 4);
    // an answer is edited without being written again, and Escape keeps the old one
    await tab.click('.assistant [data-do="edit"]', 1);
    await tab.type('x');
    await tab.press('Escape');
    assert.equal(await tab.count('.editor'), 0);
    await tab.click('.assistant [data-do="edit"]', 1);
    await tab.type('My own words. ');
    await tab.press('Control+Enter');
    await tab.until(() =>
        [...document.querySelectorAll('.assistant .body')].at(-1).textContent.includes('My own words.'),
    );
    const requests = mock.requests.length;
    await say(tab, 'three', 2);
    assert.equal(mock.requests.length, requests + 1);
    assert.match(mock.requests.at(-1).messages[3].content, /My own words/);
    await checkClean(tab);
});

only('delete and undo', async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'one');
    await tab.until(
        () => document.querySelector('#talks [aria-current]') && (document.querySelector('#talks .open').kept = true),
    );
    await say(tab, 'two', 2);
    await tab.click('.user [data-do="delete"]', 1);
    await tab.until(() => document.querySelectorAll('.message').length === 2);
    await tab.click('.notice button');
    await tab.until(() => document.querySelectorAll('.message').length === 4);
    assert.equal(
        await tab.eval(() => document.querySelector('#talks .open').kept),
        true,
        'the list is not drawn again',
    );
    await tab.click('#talks .more');
    await tab.press('ArrowDown', 'ArrowDown', 'Enter');
    await tab.until(() => document.querySelectorAll('#talks li').length === 0);
    assert.equal(await tab.count('.message'), 0);
    await tab.click('.notice button');
    await tab.until(() => document.querySelectorAll('.message').length === 4);
    await checkClean(tab);
});

only('by keyboard alone', async (mock) => {
    const tab = await openPage(mock);
    await tab.type('say hello');
    await tab.press('Enter');
    await tab.until(FINISHED, 1);
    await tab.press('ArrowUp');
    await tab.until(() => document.activeElement.closest('.editor'));
    await tab.press('Control+a');
    await tab.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'a', modifiers: 2, commands: ['selectAll'] });
    await tab.type('say goodbye');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.assistant .body')?.innerText === 'goodbye');
    await tab.until(FINISHED, 1);
    await tab.press('Alt+ArrowUp');
    assert.equal(await tab.eval(() => document.activeElement.className), 'message assistant');
    await tab.press('r');
    await tab.until(() => document.querySelector('.assistant .count')?.textContent === '2/2');
    await tab.until(FINISHED, 1);
    await tab.press('Alt+ArrowUp', 'Alt+ArrowUp', 'ArrowLeft');
    await tab.until(() => document.querySelector('.user .body').textContent === 'say hello');
    await tab.press('/');
    assert.equal(await tab.eval(() => document.activeElement.id), 'text');
    await tab.type('a\nb');
    assert.equal(await tab.eval(() => document.activeElement.value), 'a\nb');
    await tab.press('Control+k');
    assert.equal(await tab.eval(() => document.activeElement.id), 'search');
    await tab.press('ArrowDown', 'F2');
    await tab.until(() => document.querySelector('#rename').open);
    await tab.type('A title');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('#talks li')?.innerText.trim() === 'A title');
    await tab.until(() => document.querySelector('#title').textContent === 'A title');
    await tab.press('?');
    await tab.until(() => document.querySelector('#help').open);
    await shot(tab, 'help');
    await tab.press('Escape');
    await tab.until(() => !document.querySelector('#help').open);
    await checkClean(tab);
});

only('every control has a name, and the focus is seen', async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'one');
    const nameless = await tab.eval(() =>
        [...document.querySelectorAll('button, input, textarea, select, a')]
            .filter(
                (e) =>
                    !(e.hidden || e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.type === 'file'),
            )
            .map((e) => e.outerHTML),
    );
    assert.deepEqual(nameless, []);
    const seen = new Set();
    for (let k = 0; k < 40; k++) {
        await tab.press('Tab');
        const at = await tab.eval(() => {
            const e = document.activeElement,
                style = getComputedStyle(e),
                ring = getComputedStyle(e.closest('.field') ?? e);
            return {
                name: e.id || e.dataset.do || e.className || e.tagName,
                visible: style.outlineStyle !== 'none' || ring.boxShadow !== 'none',
            };
        });
        assert.ok(at.visible || at.name === 'BODY', `the focus on ${at.name} is not seen`);
        seen.add(at.name);
    }
    for (const name of ['text', 'new', 'search', 'open-settings', 'theme', 'copy', 'edit', 'regenerate', 'delete']) {
        assert.ok(seen.has(name), `Tab reaches ${name}; it reached ${[...seen]}`);
    }
    await checkClean(tab);
});

only('thoughts are folded, calls of tools and limits are said', async (mock) => {
    const tab = await openPage(mock);
    await say(tab, 'think');
    assert.equal(await tab.eval(() => document.querySelector('.thoughts').open), false);
    assert.match(await tab.text('.thoughts summary'), /Thought for/);
    await tab.click('.thoughts summary');
    assert.match(await tab.text('.thoughts'), RICH ? /First I consider it/ : /First I \*consider\* it/);
    assert.equal(await tab.count('.thoughts em'), RICH ? 1 : 0);
    await say(tab, 'call', 2);
    assert.match(await tab.text('.message:last-child .note'), /clock\({"zone":"UTC"}\)/);
    await checkClean(tab);
});

only('errors are shown, and the question can be sent again', async (mock) => {
    const tab = await openPage(mock);
    await tab.type('refuse');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.failed'));
    assert.match(await tab.text('.failed'), /The server refuses this <b>request<\/b>\./);
    await tab.press('Control+Shift+O');
    await tab.until(() => !document.querySelector('.message'));
    await tab.type('break');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.failed'));
    assert.match(await tab.text('.failed'), /The model broke/);
    assert.equal(await tab.text('.assistant .body'), 'A good beginning');
    await shot(tab, 'error');
    await tab.click('.failed button');
    await tab.until(() => document.querySelector('#stop').hidden && document.querySelector('.failed'));
    assert.equal(await tab.count('.message'), 2);
    await tab.press('Control+Shift+O');
    await tab.until(() => !document.querySelector('.message'));
    await tab.type('cut');
    await tab.press('Enter');
    await tab.until(() =>
        document.querySelector('.failed')?.innerText.includes('The connection ended before the answer did.'),
    );
    assert.equal(await tab.text('.assistant .body'), 'A good beginning');
    await checkClean(tab, /400/, /ERR_|Failed to load/);
});

only('a server that needs a key', async (mock) => {
    const locked = await startMock(PAGE, SAMPLE, { key: 'secret' });
    const tab = await browser.newTab(locked.url, { context: await browser.newContext() });
    tab.origin = new URL(locked.url).origin;
    await tab.until(() => document.querySelector('#key').open);
    await tab.type('wrong');
    await tab.press('Enter');
    await tab.until(
        () => !document.querySelector('#key').open || document.querySelector('#key-value').value !== 'wrongx',
    );
    await tab.until(() => document.querySelector('#key').open);
    await tab.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'a', modifiers: 2, commands: ['selectAll'] });
    await tab.type('secret');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('#model-name').textContent === 'mock-model');
    await say(tab, 'say open');
    assert.equal(await tab.text('.assistant .body'), 'open');
    await tab.reload();
    await tab.until(() => document.querySelector('#model-name').textContent === 'mock-model');
    locked.options.key = 'changed';
    await tab.type('say again');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('#key').open);
    await tab.type('changed');
    await tab.press('Enter');
    await tab.until(() => [...document.querySelectorAll('.assistant .body')].at(-1)?.innerText === 'again');
    await checkClean(tab, /401/);
    await locked.close();
});

only('several models can be chosen from', async (mock) => {
    mock.options.models = ['small', 'large'];
    mock.options.unloaded = ['large'];
    const tab = await openPage(mock);
    assert.equal(await tab.text('#model'), 'small\nlarge (not loaded)');
    assert.equal(mock.props, 'small');
    await tab.eval(() => document.querySelector('#model').focus());
    await tab.press('ArrowDown');
    await tab.until(() => document.querySelector('#server-facts').textContent === 'large');
    assert.equal(mock.props, 'small'); // to ask for a model would load it
    mock.options.unloaded = [];
    await say(tab, 'one');
    assert.equal(mock.requests.at(-1).model, 'large');
    await tab.until(() => document.querySelector('#context').textContent.endsWith('of 8,192 tokens'));
    assert.equal(await tab.text('#model'), 'small\nlarge');
    await tab.reload();
    await tab.until(() => document.querySelector('#model').value === 'large'); // it is remembered
    mock.options.models = undefined;
    await checkClean(tab);
});

only('search, export, import', async (mock) => {
    const context = await browser.newContext(),
        tab = await openPage(mock, { context });
    await browser.send('Browser.setDownloadBehavior', {
        behavior: 'allow',
        downloadPath: folder,
        browserContextId: context,
    });
    await say(tab, 'apples are red');
    await tab.click('#new');
    await say(tab, 'pears are green');
    await tab.until(() => document.querySelectorAll('#talks li').length === 2);
    await tab.click('#search');
    await tab.type('apples');
    await tab.until(() => document.querySelectorAll('#talks li').length === 1);
    await tab.click('#talks .open');
    await tab.until(() => document.querySelector('.user .body')?.textContent === 'apples are red');
    await tab.click('#export');
    let name;
    for (
        const end = Date.now() + 10000;
        !(name = readdirSync(folder).find((f) => f.endsWith('.json'))) && Date.now() < end;
    ) {
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await checkClean(tab);
    const fresh = await openPage(mock);
    await fresh.chooseFile('#file', join(folder, name));
    await fresh.until(() => document.querySelectorAll('#talks li').length === 2);
    await fresh.click('#talks .open', 1);
    await fresh.until(() => document.querySelectorAll('.message').length === 2);
    writeFileSync(join(folder, 'wrong.txt'), '{"format": 1}');
    await fresh.chooseFile('#file', join(folder, 'wrong.txt'));
    await fresh.until(() => document.querySelector('.notice.error')?.innerText.includes('not exported by this page'));
    await checkClean(fresh);
});

only('a reload in the middle of an answer keeps what has arrived', async (mock) => {
    const tab = await openPage(mock);
    await tab.type('endless');
    await tab.press('Enter');
    await tab.until(() => document.querySelector('.assistant .body').innerText.includes('line 60'));
    assert.match(await tab.text('.assistant .speed'), /tokens/);
    await stored(tab, 'line 60'); // it is saved each second
    await tab.reload();
    await tab.until(() => /not complete/.test(document.querySelector('.assistant .note')?.innerText));
    assert.match(await tab.text('.assistant .body'), /line 60/);
    await checkClean(tab);
});

only('two tabs', async (mock) => {
    const context = await browser.newContext(),
        a = await openPage(mock, { context });
    await say(a, 'begin');
    const url = await a.eval(() => location.href),
        b = await browser.newTab(url, { context });
    await b.until(FINISHED, 1);
    await say(a, 'from a', 2);
    await b.until(() => document.querySelectorAll('.message').length === 4); // the other tab follows
    mock.options.delay = 500; // so that both are answered at once
    await a.click('.assistant [data-do="regenerate"]');
    await b.click('.assistant [data-do="regenerate"]');
    const three = () =>
        document.querySelector('#stop').hidden &&
        document.querySelector('.assistant .count')?.textContent.match(/.[/]3$/)?.input;
    assert.deepEqual([await a.until(three), await b.until(three)], ['2/3', '3/3'], 'each tab shows its own answer');
    mock.options.delay = 2;
    await a.click('#talks .more');
    await a.press('ArrowDown', 'ArrowDown', 'Enter');
    await b.until(() => document.querySelectorAll('.message').length === 0 && document.querySelector('.notice'));
    assert.match(await b.text('.notice'), /deleted in another tab/);
    await b.close();
    await checkClean(a);
});

only('storage that is full is said', async (mock) => {
    const tab = await openPage(mock);
    await tab.send('Storage.overrideQuotaForOrigin', { origin: new URL(mock.url).origin, quotaSize: 1 });
    await say(tab, 'one');
    await tab.until(() => document.querySelector('.notice.error')?.innerText.includes('storage is full'));
    assert.equal(await tab.count('.message'), 2);
    await checkClean(tab);
});

only('text: a long answer does not freeze the page, and scrolling away is respected', async (mock) => {
    const tab = await openPage(mock);
    await tab.eval(() => {
        window.longest = 0;
        let last = performance.now();
        const tick = () => {
            const now = performance.now();
            window.longest = Math.max(window.longest, now - last);
            last = now;
            requestAnimationFrame(tick);
        };
        tick();
    });
    mock.options.delay = 20;
    await tab.click('#text');
    await tab.type('long 4500'); // 260 KB
    await tab.press('Enter');
    await tab.until(() => document.querySelectorAll('.code code > span').length > 500);
    await tab.eval(() => {
        document.querySelector('#scroll').scrollTo(0, 0);
        for (const end = performance.now() + 400; performance.now() < end; ) {
            // a busy page may show new text before it hears that the reader has scrolled
        }
    });
    await tab.until(() => !document.querySelector('#to-end').hidden);
    await tab.until(FINISHED, 1);
    mock.options.delay = 2;
    assert.equal(await tab.count('.code code > span'), 4500);
    assert.ok(
        await tab.eval(() => document.querySelector('#scroll').scrollTop < 100),
        'the page stays where the reader is',
    );
    console.log(`# the longest frame took ${Math.round(await tab.eval(() => window.longest))} ms`);
    await shot(tab, 'long-code');
    await tab.click('#to-end');
    await tab.until(() => document.querySelector('#to-end').hidden);
    await checkClean(tab);
});

/** Bytes of a WAV file in JavaScript of a page: 8000 samples a second, 8 bits. */
function smallWav() {
    const data = Buffer.alloc(800, 128),
        head = Buffer.alloc(44);
    head.write('RIFF');
    head.writeUInt32LE(36 + data.length, 4);
    head.write('WAVEfmt ', 8);
    [[16, 16], [24, 8000], [28, 8000], [40, data.length]].forEach(([at, x]) => head.writeUInt32LE(x, at));
    [[20, 1], [22, 1], [32, 1], [34, 8]].forEach(([at, x]) => head.writeUInt16LE(x, at));
    head.write('data', 36);
    return Buffer.concat([head, data]);
}

/** A red picture of 40 x 30 pixels, as a file. */
function pictureFile() {
    const path = join(folder, 'red.png');
    writeFileSync(
        path,
        Buffer.from(
            'iVBORw0KGgoAAAANSUhEUgAAACgAAAAeCAIAAADRv8uKAAAAK0lEQVR42u3NMQ0AAAgDsCmZf1GIQQYcTfo3056IWCwWi8VisVgsFov/xgsV3yDM6pKOHAAAAABJRU5ErkJggg==',
            'base64',
        ),
    );
    return path;
}

/** Pastes or drops a picture of w x h pixels, of a type. */
function giveImage(tab, name, w, h, type = 'image/png') {
    return tab.eval(
        async (event, width, height, kind) => {
            const canvas = Object.assign(document.createElement('canvas'), { width, height });
            canvas.getContext('2d').fillRect(0, 0, width, height);
            const blob = await new Promise((resolve) => canvas.toBlob(resolve, kind));
            const data = new DataTransfer();
            data.items.add(new File([blob], 'a.' + kind.split('/')[1], { type: kind }));
            const target = document.querySelector('#text');
            target.dispatchEvent(
                event === 'paste'
                    ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
                    : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
            );
        },
        name,
        w,
        h,
        type,
    );
}

only('pictures are chosen, pasted and dropped, shown, sent and kept', async (mock) => {
    mock.options.sees = ['mock-model'];
    const tab = await openPage(mock);
    const thumbs = (n) => tab.until((wanted) => document.querySelectorAll('#pictures li').length === wanted, n);
    await tab.chooseFile('#picture-file', pictureFile());
    await thumbs(1);
    await giveImage(tab, 'paste', 300, 20);
    await thumbs(2);
    await giveImage(tab, 'drop', 5000, 40);
    await thumbs(3);
    await giveImage(tab, 'drop', 10, 10);
    await thumbs(4);
    await tab.click('#pictures button', 3);
    await thumbs(3);
    await shot(tab, 'pictures');
    await say(tab, 'say What a picture');
    assert.equal(await tab.count('#pictures li'), 0);
    assert.equal(await tab.count('.user .picture'), 3);
    const sent = mock.requests.at(-1).messages.at(-1).content;
    assert.deepEqual(sent.map((part) => part.type), ['image_url', 'image_url', 'image_url', 'text']);
    assert.equal(sent[0].image_url.url, 'data:image/png;base64,' + readFileSync(pictureFile()).toString('base64'));
    assert.match(sent[1].image_url.url, /^data:image\/png;base64,/);
    assert.match(sent[2].image_url.url, /^data:image\/jpeg;base64,/); // it was too large
    const size = await tab.eval(() => [...document.querySelectorAll('.user .picture img')].map((i) => [i.naturalWidth, i.naturalHeight]));
    assert.deepEqual(size, [[40, 30], [300, 20], [2048, 16]]);
    await stored(tab);
    await tab.reload();
    await tab.until(FINISHED, 1);
    assert.equal(await tab.count('.user .picture'), 3);
    await tab.click('.user .picture');
    assert.equal(await tab.count('.user .picture.large'), 1);
    // a question of pictures alone; an edited one keeps them
    await tab.chooseFile('#picture-file', pictureFile());
    await thumbs(1);
    await tab.click('#text');
    await tab.press('Enter');
    await tab.until(FINISHED, 2);
    assert.deepEqual(mock.requests.at(-1).messages.at(-1).content.map((part) => part.type), ['image_url']);
    assert.equal(mock.requests.at(-1).messages[0].content.length, 4);
    await shot(tab, 'pictures-shown');
    await checkClean(tab);
});

only('a model that sees no pictures is offered none', async (mock) => {
    const tab = await openPage(mock);
    assert.equal(await tab.eval(() => document.querySelector('#picture').hidden), true);
    await giveImage(tab, 'paste', 10, 10);
    await tab.until(() => document.querySelector('.notice')?.textContent.includes('sees no pictures'));
    assert.equal(await tab.count('#pictures li'), 0);
    await checkClean(tab);
});

only('sounds are chosen, pasted and dropped, shown, sent and kept', async (mock) => {
    mock.options.listens = true;
    const path = join(folder, 'talk.wav');
    writeFileSync(path, smallWav());
    const tab = await openPage(mock);
    const items = (n) => tab.until((wanted) => document.querySelectorAll('#pictures li').length === wanted, n);
    await tab.until(() => !document.querySelector('#picture').hidden);
    assert.equal(await tab.eval(() => document.querySelector('#picture').title), 'Add a sound; or drop or paste one');
    await tab.chooseFile('#picture-file', path);
    await items(1);
    const drop = (name, type, size) =>
        tab.eval(
            (bytes, file, kind) => {
                const data = new DataTransfer();
                data.items.add(new File([Uint8Array.from(bytes)], file, { type: kind }));
                document.querySelector('#text').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
            },
            [...smallWav().subarray(0, size)],
            name,
            type,
        );
    await drop('other.mp3', 'audio/mpeg'); // becomes a WAV file of the rate that models hear
    await items(2);
    await drop('third.wav', 'audio/wav');
    await items(3);
    await tab.click('#pictures button', 2);
    await items(2);
    await drop('damaged.wav', 'audio/wav', 30);
    await tab.until(() => document.querySelector('.notice')?.textContent.includes('damaged.wav cannot be read as a sound'));
    await giveImage(tab, 'paste', 10, 10);
    await tab.until(() => document.querySelector('#notices')?.textContent.includes('sees no pictures'));
    await shot(tab, 'sounds');
    await say(tab, 'say What a sound');
    assert.equal(await tab.count('#pictures li'), 0);
    const sent = mock.requests.at(-1).messages.at(-1).content;
    assert.deepEqual(sent.map((part) => part.type), ['input_audio', 'input_audio', 'text']);
    assert.deepEqual(sent[0].input_audio, { data: smallWav().toString('base64'), format: 'wav' });
    const made = Buffer.from(sent[1].input_audio.data, 'base64');
    assert.deepEqual([made.toString('latin1', 0, 4), made.readUInt32LE(24)], ['RIFF', 16000]);
    await stored(tab);
    await tab.reload();
    await tab.until(FINISHED, 1);
    await tab.until(() => [...document.querySelectorAll('.user audio')].map((a) => Math.round(a.duration * 10)).join() === '1,1');
    assert.deepEqual(await tab.eval(() => [...document.querySelectorAll('.user figcaption')].map((c) => c.textContent)), ['talk.wav', 'other.mp3']);
    await shot(tab, 'sounds-shown');
    await checkClean(tab);
});

only('a sound file is written down, with times', async (mock) => {
    mock.options.models = ['hears'];
    mock.options.hears = ['hears'];
    mock.options.heard = {
        text: 'Hello <b>you</b>',
        segments: [
            { start: 0, end: 1.4, text: ' Hello' },
            { start: 65, end: 66, text: ' <b>you</b>' },
        ],
    };
    const path = join(folder, 'talk.wav');
    writeFileSync(path, smallWav());
    const tab = await openPage(mock);
    assert.equal(await tab.eval(() => document.querySelector('#text').placeholder), 'Record, or choose a sound file');
    assert.ok(await tab.eval(() => document.querySelector('#sound').offsetParent), 'the button is there');
    await tab.chooseFile('#sound-file', path);
    await tab.until(() => document.querySelectorAll('#heard li').length === 2);
    assert.deepEqual(
        await tab.eval(() => [...document.querySelectorAll('#heard li')].map((li) => li.innerText.replace(/\s+/g, ' '))),
        ['0:00 – 0:01 Hello', '1:05 – 1:06 <b>you</b>'],
    );
    assert.equal(await tab.eval(() => document.querySelector('#text').value), '');
    const request = mock.requests.at(-1);
    assert.deepEqual(request, { sound: smallWav(), model: undefined, format: 'verbose_json' });
    await shot(tab, 'heard');
    await tab.click('#close-heard');
    assert.ok(await tab.eval(() => document.querySelector('#heard').hidden));
    mock.options.heard = { text: ' ', segments: [] };
    await tab.chooseFile('#sound-file', path);
    await tab.until(() => document.querySelector('#notices')?.textContent.includes('Nothing was said'));
    writeFileSync(path, 'no sound'); // the browser cannot make one of it, either
    await tab.chooseFile('#sound-file', path);
    await tab.until(() => document.querySelector('#notices').textContent.includes('file: is no sound'));
    await checkClean(tab, /400 \(Bad Request\)/);
});

only('a recording becomes text in the message', async (mock) => {
    mock.options.models = ['chat', 'hears'];
    mock.options.hears = ['hears'];
    mock.options.heard = { text: 'what I say', segments: [{ start: 0, end: 1, text: ' what I say' }] };
    const tab = await openPage(mock);
    await tab.click('#text');
    await tab.type('Write down:');
    await tab.click('#record');
    await tab.until(() => document.querySelector('#sound-state').textContent.startsWith('Recording, 0:01'));
    assert.equal(await tab.eval(() => document.querySelector('#record').title), 'Stop recording, and write it down');
    assert.ok(await tab.eval(() => document.querySelector('#sound').disabled));
    await shot(tab, 'recording');
    await tab.click('#record');
    await tab.until(() => document.querySelector('#text').value === 'Write down: what I say');
    assert.equal(mock.requests.length, 1);
    const { sound, model } = mock.requests[0];
    assert.equal(model, 'hears');
    assert.deepEqual([sound.readUInt16LE(22), sound.readUInt32LE(24), sound.readUInt16LE(34)], [1, 16000, 16]);
    assert.equal(sound.readUInt32LE(40), sound.length - 44);
    assert.ok(sound.length > 16000, 'more than half a second');
    assert.ok(sound.subarray(44).some((x) => x !== 0), 'the microphone was heard');
    assert.ok(await tab.eval(() => document.querySelector('#heard').hidden));

    await tab.click('#record'); // and is thrown away
    await tab.until(() => document.querySelector('#record').classList.contains('recording'));
    await tab.press('Escape');
    await tab.until(() => document.querySelector('#sound-state').textContent === '');
    assert.equal(mock.requests.length, 1);

    await tab.eval(() => {
        const { mediaDevices } = navigator; // who presses again while the browser asks opens no second microphone
        window.asked = 0;
        mediaDevices.getUserMedia = async (what) => {
            window.asked++;
            await new Promise((resolve) => (window.allow = resolve));
            delete mediaDevices.getUserMedia;
            return mediaDevices.getUserMedia(what);
        };
    });
    await tab.click('#record');
    await tab.click('#record');
    assert.equal(await tab.eval(() => window.asked), 1);
    await tab.eval(() => window.allow());
    await tab.until(() => document.querySelector('#record').classList.contains('recording'));
    await tab.press('Escape');
    await tab.until(() => document.querySelector('#sound-state').textContent === '');
    assert.equal(mock.requests.length, 1);

    mock.options.heard = null; // it takes for ever
    await tab.click('#record');
    await tab.until(() => document.querySelector('#sound-state').textContent.startsWith('Recording, 0:01'));
    await tab.click('#record');
    await tab.until(() => document.querySelector('#sound-state').textContent.startsWith('The sound is being'));
    const { closed } = mock;
    await tab.click('#record');
    await tab.until(() => document.querySelector('#sound-state').textContent === '');
    for (let k = 0; mock.closed === closed && k < 1000; k++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(mock.closed, closed + 1, 'the server knows that nobody waits');
    assert.equal(await tab.eval(() => document.querySelector('#text').value), 'Write down: what I say');

    await tab.eval(() => Object.defineProperty(navigator, 'mediaDevices', { value: undefined })); // as at http:// elsewhere
    await tab.click('#record');
    await tab.until(() => document.querySelector('#notices').textContent.includes('only at http://localhost'));
    await checkClean(tab);
});

only('without a model that hears, there are no buttons for sounds', async (mock) => {
    const tab = await openPage(mock);
    assert.deepEqual(await tab.eval(() => ['#record', '#sound'].map((s) => document.querySelector(s).hidden)), [true, true]);
    assert.equal(await tab.eval(() => document.querySelector('#text').placeholder), 'Message');
    await checkClean(tab);
});

only('on a phone', async (mock) => {
    const tab = await openPage(mock, { width: 360, height: 740, mobile: true });
    assert.equal(await tab.eval(() => getComputedStyle(document.querySelector('#sidebar')).display), 'none');
    await say(tab, 'sample');
    await tab.eval(() => document.querySelector('#scroll').scrollTo(0, 0));
    await shot(tab, 'phone');
    const wide = await tab.eval(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `the page is ${wide} pixels wide`);
    assert.ok(
        await tab.eval(
            () => document.querySelector('#scroll').scrollWidth <= document.querySelector('#scroll').clientWidth,
        ),
        'only code and tables scroll sideways',
    );
    const small = await tab.eval(() =>
        [...document.querySelectorAll('button')]
            .filter((b) => b.offsetParent && (b.offsetWidth < 32 || b.offsetHeight < 30))
            .map((b) => b.outerHTML),
    );
    assert.deepEqual(small, [], 'buttons are large enough for fingers');
    await tab.click('#open-sidebar');
    await tab.until(() => getComputedStyle(document.querySelector('#sidebar')).display === 'flex');
    await shot(tab, 'phone-sidebar');
    await tab.click('#talks .open');
    await tab.until(() => getComputedStyle(document.querySelector('#sidebar')).display === 'none');
    await tab.click('#open-settings');
    await shot(tab, 'phone-settings');
    await tab.click('#close-settings');
    await checkClean(tab);
});

// one after another: side by side they take longer, because every tab draws
describe('the page', () => {
    tests.forEach((test) => it(...test));
});
