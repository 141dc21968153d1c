// unit.page.highlight: coloured code is the same code, whatever it is, in linear time; and the colours are those of the language.

import assert from 'node:assert/strict';
import test from 'node:test';
import { highlight, language } from '../../../tools/llm-server/page/highlight.js';
import { work } from '../../../tools/llm-server/page/inline.js';
import { randomFrom } from './fake_dom.mjs';

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
    const rules = language(name),
        parts = [];
    let state = '';
    for (const line of code.match(/[^\n]*\n|[^\n]+/g)) {
        const painted = highlight(line, rules, state);
        state = painted.state;
        parts.push(...painted.parts.filter(([kind]) => kind).map(([kind, text]) => `${kind}:${text.trim()}`));
    }
    return parts.join(' ');
}

test('colours of languages', () => {
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
    assert.equal(colours('sh', 'echo $x # y\na#b'), 'keyword:echo comment:# y');
    assert.equal(
        colours('html', '<a href="b">c</a><!-- d\ne -->'),
        'keyword:a name:href string:"b" keyword:a comment:<!-- d comment:e -->',
    );
    assert.equal(colours('sql', 'SELECT a from b -- c'), 'keyword:SELECT keyword:from comment:-- c');
    assert.equal(colours('diff', '+a\n-b\n c'), 'added:+a removed:-b');
    assert.equal(colours('js', 'let s = `a\nb`;'), 'keyword:let string:`a string:b`');
});

test('unknown languages have no colours, and no name finds what is not a language', () => {
    for (const name of ['', 'klingon', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
        assert.equal(language(name), null, name);
        assert.deepEqual(highlight('a "b"', language(name), ''), { parts: [['', 'a "b"']], state: '' });
    }
});

test('random code keeps every character, in linear time', () => {
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
            name = random.pick(NAMES),
            rules = language(name);
        let state = '';
        for (let k = 0; k < 4; k++) {
            const text = Array.from({ length: random(40) }, () => random.pick(scraps)).join('');
            const painted = highlight(text, rules, state);
            assert.equal(painted.parts.map((p) => p[1]).join(''), text, `seed ${seed}, ${name}`);
            state = painted.state;
        }
    }
    for (const name of NAMES) {
        for (const scrap of scraps) {
            const before = work.steps;
            highlight(scrap.repeat(8192 / scrap.length), language(name), '');
            assert.ok(work.steps - before < 5 * 8192, `${name} ${scrap}: ${work.steps - before} steps`);
        }
    }
});
