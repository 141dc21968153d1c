// unit.page.markdown: Markdown becomes the right elements, however the text arrives; hostile text is harmless and takes
// linear time, counted in steps of the page and of markdown-it. GGL_SEED=N: the first seed of the random tests.

import assert from 'node:assert/strict';
import test from 'node:test';
import { FakeDocument, randomFrom } from './fake_dom.mjs';
import { pageModule, stepsOf } from './page.mjs';

const { Markdown } = await pageModule('stream.js'),
    { safeUrl } = await pageModule('markdown.js');

const SEED = Number(process.env.GGL_SEED ?? 1);

/** Renders text given in pieces; returns {root, steps}: steps are changes of the document. */
function render(...pieces) {
    const document = new FakeDocument(),
        root = document.createElement('div');
    const markdown = new Markdown(root, document);
    pieces.forEach((piece) => markdown.write(piece));
    markdown.end();
    return { root, steps: document.steps };
}

function check(text, outline) {
    const { root } = render(text);
    assert.equal(root.outline(), `div(${outline})`);
}

const line = (text) => `span class=line(${text ? JSON.stringify(text) : 'br()'})`; // of code
const LINK = ' rel=noopener noreferrer target=_blank';

test('blocks', () => {
    check('one\ntwo\n\nthree', 'p("one"br()"two")p("three")');
    check('# A\n### B ##\n#no', 'h2 class=level1("A")h4 class=level3("B")p("#no")');
    check('A\n===\nB\n---', 'h2 class=level1("A")h3 class=level2("B")');
    check('a\n\n---\n***\n_ _ _', 'p("a")hr()hr()hr()');
    check('> a\n> > b\nlazy\n\nc', 'blockquote(p("a")blockquote(p("b"br()"lazy")))p("c")');
    check('<b>x</b> &lt; &#65; &bad; \\*', 'p("<b>x</b> < A &bad; *")');
});

test('lists', () => {
    check('- a\n  - b\n    - c\n- d', 'ul(li(p("a")ul(li(p("b")ul(li(p("c"))))))li(p("d")))');
    check('1. a\n2. b\n\n\n3. c', 'ol class=loose(li(p("a"))li(p("b"))li(p("c")))');
    check('7) a\n8) b', 'ol start=7(li(p("a"))li(p("b")))');
    check('1. a\n   - three columns\n2. b', 'ol(li(p("a")ul(li(p("three columns"))))li(p("b")))');
    check('- a\n\n  b\n- c', 'ul class=loose(li(p("a")p("b"))li(p("c")))');
    check('1. x\n\n   y\n2. z', 'ol class=loose(li(p("x")p("y"))li(p("z")))');
    check(
        '- [x] a\n- [ ] b',
        'ul(li class=task(input type=checkbox disabled= aria-label=done checked=()p("a"))' +
            'li class=task(input type=checkbox disabled= aria-label=to do()p("b")))',
    );
    check('in 1980. a\n1986. b', 'p("in 1980. a"br()"1986. b")');
    check('- a\n* b', 'ul(li(p("a")))ul(li(p("b")))');
    check('10. a\n11. b\n    c', 'ol start=10(li(p("a"))li(p("b"br()"c")))');
});

test('code', () => {
    const code = (lang, inside) =>
        `div class=code(div class=code-bar(span("${lang || 'text'}")button class=copy-code type=button("Copy"))` +
        `pre tabindex=0 role=region aria-label=${lang || 'plain'} code(code(${inside})))`;
    check('```\na\n\n b *c*\n```\nd', code('', line('a') + line('') + line(' b *c*')) + 'p("d")');
    check('~~~x y\n```\n~~~~', code('x', line('```')));
    check('- ```\n  a\n    b\n  ```', `ul(li(${code('', line('a') + line('  b'))}))`);
    check('```\n\ttab', code('', line('\ttab')));
    check('``a`b`` and `c', 'p(code("a`b")" and `c")');
});

test('tables', () => {
    const table = (head, ...rows) =>
        `div class=table tabindex=0(table(thead(tr(${head}))tbody(${rows.map((r) => `tr(${r})`).join('')})))`;
    check(
        '| a | b |\n|---|--:|\n| *1* | 2 |\n| 3 \\| 4 | 5 | 6 |\n\nx',
        table('th("a")th class=right("b")', 'td(em("1"))td class=right("2")', 'td("3 | 4")td class=right("5")') +
            'p("x")',
    );
    check(
        'text\na|b\n:-:|-\nc|d\nend',
        'p("text")' + table('th class=center("a")th("b")', 'td class=center("c")td("d")') + 'p("end")',
    );
    check('a|b\n---', 'h3 class=level2("a|b")');
    check('a|b|c\n-|-', 'p("a|b|c"br()"-|-")');
});

test('emphasis', () => {
    check(
        '*a* **b** ***c*** ~~d~~ _e_ __f__',
        'p(em("a")" "strong("b")" "em(strong("c"))" "del("d")" "em("e")" "strong("f"))',
    );
    check('snake_case_name 2 * 3 * 4 **open', 'p("snake_case_name 2 * 3 * 4 **open")');
    check('*a **b** c*', 'p(em("a "strong("b")" c"))');
    check('**a*b**', 'p(strong("a*b"))');
    check('*[a*](http://b)', `p("*"a href=http://b${LINK}("a*"))`);
});

test('links', () => {
    check('[a *b*](http://c "d")', `p(a href=http://c${LINK} title=d("a "em("b")))`);
    check(
        '<https://a.b> https://c.d/e_(f). (https://g)',
        `p(a href=https://a.b${LINK}("https://a.b")" "a href=https://c.d/e_(f)${LINK}` +
            `("https://c.d/e_(f)")". ("a href=https://g${LINK}("https://g")")")`,
    );
    check('![cat](http://c/at.png)', `p(a href=http://c/at.png${LINK}("cat"))`);
    check('[![x](http://i)](http://l)', `p(a href=http://l${LINK}(span("x")))`);
    check(
        '[a](javascript:alert(1)) [b](data:text/html,x) [c](/etc)',
        'p(span class=no-link("a")" "span class=no-link("b")" "span class=no-link("c"))',
    );
    check('[a [b](http://c) d](/e)', `p("[a "a href=http://c${LINK}("b")" d](/e)")`);
    check('[a](<http://b c>) [d] [e](f g)', 'p(span class=no-link("a")" [d] [e](f g)")');
});

/** A formula that KaTeX does not draw, as here, where it has no document. */
function math(open, formula, close, tag = 'span') {
    return `${tag} role=math aria-label=${formula} class=math(${JSON.stringify(open + formula + close)})`;
}

test('formulas', () => {
    check(
        '\\(a_1 * b_2 * c\\) and $$x_i*y_i*$$ for $5',
        `p(${math('\\(', 'a_1 * b_2 * c', '\\)')}" and "${math('$$', 'x_i*y_i*', '$$')}" for $5")`,
    );
    check('$a_1$, $5 and $6, a$b$ $ c$ $d\\$e$', `p(${math('$', 'a_1', '$')}", $5 and $6, a$b$ $ c$ "${math('$', 'd\\$e', '$')})`);
    check('a\n\\[\nx\n= y\n\\]\nb', 'p("a")' + math('\\[', '\nx\n= y\n', '\\]', 'div') + 'p("b")');
    check('- $$\n  - x\n  $$', `ul(li(${math('$$', '\n- x\n', '$$', 'div')}))`);
    check('$$\na *b*\n\nc *d*', 'p("$$"br()"a "em("b"))p("c "em("d"))');
    check('$$ open *a*', 'div role=math aria-label=$$ open *a* class=math("$$ open *a*")');
});

test('harmless URLs only', () => {
    for (const bad of [
        'javascript:x',
        'JavaScript:x',
        ' javascript:x',
        'java\nscript:x',
        'data:x',
        'vbscript:x',
        'file:///x',
        '//x',
        'x',
        '',
        'http://',
        'blob:http://x',
        'ftp://x',
        'https://a b',
        '\u0001http://x',
    ]) {
        assert.equal(safeUrl(bad), null, JSON.stringify(bad));
    }
    for (const good of ['http://x', 'HTTPS://x/y?z#w', 'mailto:a@b']) {
        assert.equal(safeUrl(good), good);
    }
});

// -- a generator that knows what its text means: it writes a random tree as Markdown and as the outline that is expected

const WORDS = ['heap', 'of', 'straw', 'Ünï', 'co∂e', '日本', '42', 'x<y', 'a&b', '🙂'];

function phrase(random, depth = 0) {
    const parts = Array.from({ length: 1 + random(3) }, () => inlinePart(random, depth));
    return {
        text: parts.map((p) => p.text).join(' '),
        nodes: parts.flatMap((p, k) => (k ? ['t: ', ...p.nodes] : p.nodes)),
    };
}

function inlinePart(random, depth) {
    const word = random.pick(WORDS),
        kind = random(depth < 2 ? 9 : 3);
    const wrap = (mark, tag) => {
        const inner = phrase(random, depth + 2);
        return { text: mark + inner.text + mark, nodes: [`${tag}(${outlineOf(inner.nodes)})`] };
    };
    switch (kind) {
        case 3:
            return wrap('*', 'em');
        case 4:
            return wrap('**', 'strong');
        case 5:
            return wrap('~~', 'del');
        case 6:
            return { text: '`' + word + ' *' + '`', nodes: [`code(${JSON.stringify(word + ' *')})`] };
        case 7: {
            const inner = phrase(random, depth + 2);
            return {
                text: `[${inner.text}](https://x.org/${depth})`,
                nodes: [`a href=https://x.org/${depth}${LINK}(${outlineOf(inner.nodes)})`],
            };
        }
        case 8:
            return { text: '\\*' + word, nodes: ['t:*' + word] };
        default:
            return { text: word, nodes: ['t:' + word] };
    }
}

/** Nodes as an outline; those that begin with "t:" are text, and adjacent ones are joined. */
function outlineOf(nodes) {
    let out = '',
        text = '';
    for (const node of [...nodes, '']) {
        if (node.startsWith('t:')) {
            text += node.slice(2);
        } else {
            out += (text && JSON.stringify(text)) + node;
            text = '';
        }
    }
    return out;
}

/** A random block: {lines, outline}. */
function block(random, depth) {
    const kind = random(depth < 3 ? 8 : 4);
    const inner = phrase(random),
        inside = outlineOf(inner.nodes);
    if (kind === 0) {
        const level = 1 + random(6);
        return {
            lines: ['#'.repeat(level) + ' ' + inner.text],
            outline: `h${Math.min(6, level + 1)} class=level${level}(${inside})`,
        };
    }
    if (kind === 1) {
        const code = Array.from({ length: random(4) }, () =>
            random.pick(['', '  x = *y*;', '# no', '- no', '> no', '\tz', '`a`']),
        );
        const pieces = code.map(line).join('');
        return {
            lines: ['```', ...code, '```'],
            outline:
                'div class=code(div class=code-bar(span("text")button class=copy-code type=button("Copy"))' +
                `pre tabindex=0 role=region aria-label=plain code(code(${pieces})))`,
        };
    }
    if (kind === 4) {
        const { lines, outline } = blocks(random, depth + 1);
        return { lines: lines.map((l) => '> ' + l), outline: `blockquote(${outline})` };
    }
    if (kind >= 5 && kind < 7) {
        return list(random, depth, kind === 5);
    }
    return { lines: [inner.text], outline: `p(${inside})`, hasText: true };
}

function list(random, depth, ordered) {
    const items = Array.from({ length: 2 + random(2) }, () => blocks(random, depth + 1)),
        marker = random.pick(['-', '+']);
    const lines = items.flatMap((item, k) => {
        const mark = ordered ? `${k + 1}. ` : marker + ' ';
        return [
            ...(k ? [''] : []),
            ...item.lines.map((l, j) => (j === 0 ? mark + l : l && ' '.repeat(mark.length) + l)),
        ];
    });
    const loose = items.some((item) => item.hasText) ? ' class=loose' : '';
    return {
        lines,
        outline: `${ordered ? 'ol' : 'ul'}${loose}(${items.map((i) => `li(${i.outline})`).join('')})`,
        list: true,
    };
}

function blocks(random, depth) {
    const lines = [];
    let outline = '',
        hasText = false,
        lastList = false;
    for (let n = 1 + random(3); n > 0; n--) {
        const next = block(random, depth);
        if (next.list && lastList) {
            continue; // two lists in a row would be one
        }
        lines.push(...(lines.length ? [''] : []), ...next.lines);
        outline += next.outline;
        hasText ||= next.hasText === true;
        lastList = Boolean(next.list);
    }
    return { lines, outline, hasText };
}

test('random documents mean what their generator meant, in pieces and whole', () => {
    for (let seed = SEED; seed < SEED + 400; seed++) {
        const random = randomFrom(seed),
            { lines, outline } = blocks(random, 0),
            text = lines.join(random.pick(['\n', '\r\n']));
        assert.equal(render(text).root.outline(), `div(${outline})`, `seed ${seed}:\n${text}`);
        assert.equal(
            render(...cut(text, random, 12)).root.outline(),
            `div(${outline})`,
            `seed ${seed}, in pieces:\n${text}`,
        );
    }
});

function cut(text, random, most) {
    const pieces = [];
    for (let i = 0; i < text.length;) {
        const n = 1 + random(most);
        pieces.push(text.slice(i, i + n));
        i += n;
    }
    return pieces;
}

// -- hostile text

const ALLOWED = {
    div: ['class', 'tabindex', 'role', 'aria-label'],
    p: [],
    br: [],
    hr: [],
    blockquote: [],
    ul: ['class'],
    ol: ['class', 'start'],
    li: ['class'],
    input: ['type', 'disabled', 'checked', 'aria-label'],
    pre: ['tabindex', 'role', 'aria-label'],
    code: [],
    span: ['class', 'role', 'aria-label'],
    em: [],
    strong: [],
    del: [],
    button: ['class', 'type'],
    table: [],
    thead: [],
    tbody: [],
    tr: [],
    th: ['class'],
    td: ['class'],
    a: ['href', 'rel', 'target', 'title'],
    h2: ['class'],
    h3: ['class'],
    h4: ['class'],
    h5: ['class'],
    h6: ['class'],
};

function checkHarmless(root, text) {
    root.walk((element, depth) => {
        assert.ok(ALLOWED[element.tag], `element ${element.tag} from ${JSON.stringify(text.slice(0, 200))}`);
        for (const [name, value] of Object.entries(element.attributes)) {
            assert.ok(ALLOWED[element.tag].includes(name), `${element.tag} ${name}`);
            if (name === 'href') {
                assert.match(value, /^(https?:\/\/|mailto:)/i);
            }
            if (name === 'class') {
                assert.match(value, /^[a-z0-9-]*$/);
            }
            if (name === 'role') {
                assert.match(value, /^(math|region)$/);
            }
        }
        assert.ok(depth < 250, 'the elements are nested too deeply');
    });
}

const SCRAPS = [
    '*',
    '**',
    '_',
    '`',
    '```',
    '~~~',
    '~~',
    '[',
    ']',
    '(',
    ')',
    '](',
    '![',
    '<',
    '>',
    '\n',
    '\n\n',
    '\n- ',
    '\n1. ',
    '\n> ',
    '\n# ',
    '|',
    '\n|-|-|\n',
    '---',
    '  ',
    '\t',
    '    ',
    '\\',
    '&',
    '&#x41;',
    '&#0;',
    '$$',
    '\\(',
    '\\)',
    'http://',
    'https://a.b',
    'javascript:',
    '<script>',
    '</script>',
    '<img src=x onerror=y>',
    'word',
    'é',
    '\ud83d',
    '\udc00',
    '\u0000',
    '\u202e',
    '"',
    "'",
    '\r',
    '\r\n',
    '[a](javascript:b)',
    '[a](http://b "c")',
    '{',
    '}',
    '\n```js\n',
    '/*',
    '*/',
    '"""',
    '- [x] ',
];

test('random scraps are harmless; arriving in pieces changes nothing', () => {
    for (let seed = SEED; seed < SEED + 1000; seed++) {
        const random = randomFrom(seed),
            text = Array.from({ length: 1 + random(60) }, () => random.pick(SCRAPS)).join('');
        const { root } = render(text);
        checkHarmless(root, text);
        // a carriage return at the end of a piece is not yet a line's end; so pieces of one character are the hard case
        assert.equal(
            render(...cut(text, random, 3)).root.outline(),
            root.outline(),
            `seed ${seed}: ${JSON.stringify(text)}`,
        );
    }
});

test('no letter is lost or moved', () => {
    // everything that is a letter in the text is in the page, in order, but for the parts of links that are not shown
    for (let seed = SEED; seed < SEED + 2000; seed++) {
        const random = randomFrom(seed),
            scraps = SCRAPS.filter((s) => !/[()&`~|$]|\[x/.test(s));
        const text = Array.from(
            { length: 1 + random(60) },
            (_, k) => random.pick(scraps) + (k % 3 ? '' : 'w' + k),
        ).join('');
        const letters = (s) => s.replace(/[^\p{L}]/gu, '');
        const shown = render(text).root;
        assert.equal(letters(shown.textContent), letters(text), `seed ${seed}: ${JSON.stringify(text)}`);
    }
});

test('unpaired marks and lines of code stay', () => {
    check(
        '```\n`',
        'div class=code(div class=code-bar(span("text")button class=copy-code type=button("Copy"))' +
            'pre tabindex=0 role=region aria-label=plain code(code(span class=line("`"))))',
    );
    check('a ]( b', 'p("a ]( b")');
});

const HOSTILE = [
    '*',
    '**a',
    '*a ',
    '_',
    '`',
    '`a``b',
    '[',
    '](',
    '[a](',
    '[](',
    '[a](b',
    '![',
    '![a](http://b',
    '<',
    '<a',
    '&',
    '>',
    '> ',
    '- ',
    '1. ',
    '|',
    '|-',
    '# ',
    '#',
    '\\',
    '\\(',
    '$$',
    'http://',
    'http://.',
    'https://a(',
    '~~',
    '~~a',
    ' ',
    '\t',
    '\n',
    '- \n',
    '\n>',
    '\n- a\n  ',
    '\n|',
    '|a|b|\n|-|-|\n',
    '```\n',
    '\n\n',
    '[a](http://b "',
    '[a](<',
    '*a **b ',
    'a*',
    '<!--',
    '"',
    '(((',
    '\u200d',
    '\r',
];

/** [first half, second half] of a text; what the first opens, the second closes or seems to close. */
const HALVES = [
    ['*a ', 'b* '],
    ['*a ', 'b_ '],
    ['**a ', 'b* '],
    ['[', ']'],
    ['[', '](b)'],
    ['![', '](http://b)'],
    ['[a](', ')'],
    ['- ', '\na'],
    ['> ', '\n> a'],
    ['`a ', '``b '],
    ['\\( ', '\\] '],
];

test('time is linear, at once and in pieces', () => {
    // the costliest paragraphs are as long as those that are still parsed; more of them cost no more each
    for (const [scrap, other] of [...HOSTILE.map((h) => [h, h]), ...HALVES]) {
        const half = (s) => s.repeat(Math.floor(2000 / s.length));
        const paragraph = (half(scrap) + half(other)).replaceAll('\n\n', '\n') + '\n\n',
            pieces = paragraph.repeat(3).match(/[^]{1,1000}/g);
        const whole = (half(scrap) + half(other)).repeat(10);
        checkHarmless(render(whole).root, scrap);
        const steps = [() => render(whole), () => render(...pieces)].map((f) => stepsOf(f));
        const each = [steps[0] / whole.length, steps[1] / paragraph.length / 3];
        assert.ok(each[0] < 300, `${JSON.stringify(scrap)} at once: ${each[0]} steps for each character`);
        assert.ok(each[1] < 8000, `${JSON.stringify(scrap)} in pieces: ${each[1]} steps for each character`);
    }
});

test('a hundred thousand marks, deep nesting and long lines change the page no more often than they have lines', () => {
    for (const text of ['['.repeat(1e5), '*a'.repeat(1e5), '> '.repeat(5e4), '- '.repeat(5e4) + 'a', '$'.repeat(1e5), '`a'.repeat(1e5), '<div>'.repeat(2e4)]) {
        const { root, steps } = render(text);
        checkHarmless(root, text);
        assert.ok(steps < 1000, `${text.slice(0, 5)}: ${steps} steps`);
        const lost = [...text].filter((c) => c === text[0]).length - [...root.textContent].filter((c) => c === text[0]).length;
        assert.ok(lost <= 24, `${text.slice(0, 5)}: ${lost} are lost`); // the marks of quotes and lists
    }
});

const ESCAPES = [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<svg onload=alert(1)><use href="data:image/svg+xml,x"/></svg>',
    '<math><mi xlink:href="javascript:alert(1)">x</mi></math>',
    '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
    '<style>* { background: url(http://x) }</style>',
    '<a href="javascript:alert(1)" style="position:fixed">x</a>',
    '<form id=send name=documentElement><input name=attributes></form>',
    '<iframe srcdoc="<script>alert(1)</script>"></iframe><object data="data:text/html,x"></object><base href=//x>',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<template><img src=x onerror=alert(1)></template><!-- --><![CDATA[x]]>',
    '[x](JaVaScRiPt:alert(1)) [x](&#106;avascript:alert(1)) [x](java\tscript:alert(1)) [x](\u0001javascript:alert(1))',
    '[x](data:text/html;base64,PHNjcmlwdD4=) ![x](data:image/svg+xml,<svg/onload=alert(1)>) <javascript:alert(1)> <data:x>',
    '[x](vbscript:x) [x](file:///etc/passwd) [x](//x.org) [x](blob:http://x) [x][1]\n\n[1]: javascript:alert(1)',
    '[x](https://x.org "\" onclick=alert(1) \"") [x](https://x.org/"onclick=alert(1))',
    '```html"><script>alert(1)</script>\n</code><img src=x onerror=alert(1)>\n```',
    '| <b onclick=alert(1)> |\n|-|\n| <svg/onload=alert(1)> |',
    '- [x] <input autofocus onfocus=alert(1)>\n1. <style>@import "//x"</style>',
    '$\\href{javascript:alert(1)}{x}$ $$\\htmlStyle{position:fixed}{x}$$ \\(\\includegraphics{http://x}\\)',
];

test('markup of an answer is text, and links of it lead to the web only', () => {
    for (const text of ESCAPES) {
        checkHarmless(render(text).root, text);
        checkHarmless(render(...text).root, text);
    }
    check('<b id=x>y</b> <svg onload=z>', 'p("<b id=x>y</b> <svg onload=z>")');
});

test('the code of a long answer is drawn once', () => {
    const cost = (lines) => {
        const text = '```js\n' + 'let x = "a"; /* b\n c */ f(1);\n'.repeat(lines),
            pieces = text.match(/[^]{1,16}/g);
        let changes;
        const steps = stepsOf(() => (changes = render(...pieces).steps));
        return [changes / text.length, steps / text.length];
    };
    const small = cost(100),
        large = cost(1000);
    assert.ok(large[0] < small[0] * 1.2, `${small[0]}, then ${large[0]} changes of the page for each character`);
    assert.ok(large[1] < small[1] * 1.2, `${small[1]}, then ${large[1]} steps for each character`);
});
