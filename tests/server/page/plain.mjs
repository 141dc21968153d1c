// unit.page.plain: without libraries, a text is shown as it is written, in lines and boxes of code, however it arrives.

import assert from 'node:assert/strict';
import test from 'node:test';
import { FakeDocument, randomFrom } from './fake_dom.mjs';
import { pageModule } from './page.mjs';

const { Plain } = await pageModule('plain.js');

function render(...pieces) {
    const root = new FakeDocument().createElement('div'),
        plain = new Plain(root, root.document);
    pieces.forEach((piece) => plain.write(piece));
    plain.end();
    return root;
}

test('lines and code', () => {
    const line = (text) => `div class=plain(${text})`;
    assert.equal(render('# a *b*\n\n<b>').outline(), `div(${line('"# a *b*"')}${line('br()')}${line('"<b>"')})`);
    const root = render('a\n```c x\nint  y;\n\n``\n```\n  b');
    assert.deepEqual(
        root.children.map((e) => e.attributes.class),
        ['plain', 'code', 'plain'],
    );
    const lines = root.children[1].children[1].children[0].children;
    assert.deepEqual(lines.map((e) => e.textContent), ['int  y;', '', '``']);
    assert.equal(root.children[2].textContent, '  b');
});

test('random texts are shown whole, and the same in pieces', () => {
    for (let seed = 1; seed < 500; seed++) {
        const random = randomFrom(seed),
            scraps = ['a', ' ', '\n', '\n```\n', '`', '\n~~~x\n', '<script>', '\r\n', '\n````\n'];
        const pieces = Array.from({ length: random(30) }, () => random.pick(scraps));
        const root = render(...pieces),
            text = pieces.join('');
        assert.equal(root.outline(), render(text).outline(), `seed ${seed}: ${JSON.stringify(text)}`);
        root.walk(({ tag }) => assert.match(tag, /^(div|br|span|pre|code|button)$/));
        const letters = (s) => s.replace(/[^a]/g, '');
        assert.equal(letters(root.textContent), letters(text));
    }
});

test('each line of a long text is made once', () => {
    const cost = (n) => render(...'some words\n'.repeat(n).match(/[^]{1,8}/g)).document.steps / n;
    assert.ok(cost(2000) < cost(200) * 1.1);
});
