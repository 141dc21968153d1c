// unit.page.code: coloured code is the same code, whatever it is, in linear time, and so is code that arrives in pieces; the
// colours are those of the language. GGL_SEED=N: the first seed of the random tests.

import assert from 'node:assert/strict';
import test from 'node:test';
import { FakeDocument, randomFrom } from './fake_dom.mjs';
import { hasLibrary, pageModule, stepsOf } from './page.mjs';

const { CodeBox, codeText, knows, paint } = await pageModule('code.js'),
    skip = (await hasLibrary('highlight-js')) ? false : 'this page has no highlight.js';

const SEED = Number(process.env.GGL_SEED ?? 1);
const NAMES = [
    'c',
    'c++',
    'js',
    'ts',
    'python',
    'bash',
    'html',
    'yaml',
    'json',
    'go',
    'rust',
    'sql',
    'lua',
    'ruby',
    'css',
    'diff',
    'java',
    'php',
];

/** The classes of a code's parts: "keyword:int name:f". */
function colours(name, code) {
    const parts = [];
    let state = null;
    for (const line of code.match(/[^\n]*\n|[^\n]+/g)) {
        const painted = paint(line, name, state);
        state = painted.state;
        parts.push(...painted.parts.filter(([kind]) => kind).map(([kind, text]) => `${kind}:${text.trim()}`));
    }
    return parts.join(' ');
}

test('colours of languages', { skip }, () => {
    assert.equal(
        colours('c', 'int f(void) { return 0x1F; } // "end"'),
        'keyword:int name:f keyword:void keyword:return number:0x1F comment:// "end"',
    );
    assert.equal(
        colours('c', 'a /* b\nint c */ "d\\"e" \'f\''),
        'comment:/* b comment:int c */ string:"d\\"e" string:\'f\'',
    );
    assert.equal(
        colours('python', 'def f(x):\n  """a\n  b"""\n  return None # c'),
        'keyword:def name:f string:"""a string:b""" keyword:return keyword:None comment:# c',
    );
    assert.equal(
        colours('json', '{"a": "b", "c": [1.5e3, true]}'),
        'name:"a" string:"b" name:"c" number:1.5e3 keyword:true',
    );
    assert.equal(colours('sh', 'echo "x" # y'), 'keyword:echo string:"x" comment:# y');
    assert.equal(
        colours('html', '<a href="b">c</a><!-- d\ne -->'),
        'name:a name:href string:"b" name:a comment:<!-- d comment:e -->',
    );
    assert.equal(colours('sql', 'SELECT a from b -- c'), 'keyword:SELECT keyword:from comment:-- c');
    assert.equal(colours('diff', '+a\n-b\n c'), 'added:+a removed:-b');
    assert.equal(colours('js', 'let s = `a\nb`;'), 'keyword:let string:`a string:b`');
    NAMES.forEach((name) => assert.ok(knows(name), name));
});

test('unknown languages have no colours, and no name finds what is not a language', () => {
    for (const name of ['', 'klingon', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
        assert.equal(knows(name), false, name);
        assert.deepEqual(paint('a "b"', name, null), { parts: [['', 'a "b"']], state: null });
    }
});

test('a box shows its code, however it arrives', () => {
    for (let seed = SEED; seed < SEED + 300; seed++) {
        const random = randomFrom(seed);
        const code = Array.from({ length: 1 + random(20) }, () => random.pick(['int x; ', '/* ', '*/', '\n', '"'])).join('');
        const whole = new CodeBox(new FakeDocument(), 'c'),
            parts = new CodeBox(new FakeDocument(), 'c');
        whole.show(code);
        for (let n = 0; n < code.length; n += 1 + random(9)) {
            parts.show(code.slice(0, n));
        }
        parts.show(code);
        assert.equal(parts.element.outline(), whole.element.outline(), `seed ${seed}`);
        assert.equal(codeText(whole.code), code);
        parts.show('other');
        assert.equal(codeText(parts.code), 'other');
    }
});

test('random code keeps every character, in linear time', { skip }, () => {
    const scraps = [
        '"',
        "'",
        '`',
        '/*',
        '*/',
        '//',
        '#',
        '--',
        '<!--',
        '-->',
        '"""',
        "'''",
        '\\',
        '\n',
        ' ',
        'int',
        'x1',
        '0x',
        '1e',
        '1.',
        '.',
        '$',
        '@',
        '<a',
        '=',
        ':',
        '日',
        '🙂',
        '\ud83d',
        '[[',
        ']]',
        '--[[',
        '-',
        '+',
    ];
    for (let seed = SEED; seed < SEED + 2000; seed++) {
        const random = randomFrom(seed),
            name = random.pick(NAMES);
        let state = null;
        for (let k = 0; k < 4; k++) {
            const text = Array.from({ length: random(40) }, () => random.pick(scraps)).join('');
            const painted = paint(text, name, state);
            assert.equal(painted.parts.map((p) => p[1]).join(''), text, `seed ${seed}, ${name}`);
            state = painted.state;
        }
    }
    for (const name of NAMES) {
        for (const scrap of scraps) {
            const line = scrap.repeat(990 / scrap.length).replaceAll('\n', ' ') + '\n';
            const steps = stepsOf(() => {
                for (let k = 0, state = null; k < 8; k++) {
                    state = paint(line, name, state).state;
                }
            });
            assert.ok(steps < 100 * 8 * 990, `${name} ${scrap}: ${steps} steps`);
        }
    }
});
