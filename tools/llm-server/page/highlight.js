// Colours for code: splits a piece of code into [class, text] pairs. It knows comments, strings, numbers and keywords of
// common languages, not their grammar. A state that goes from piece to piece says what is unfinished, so that code
// that arrives line by line is coloured once.

import { work } from './inline.js';

const words = (s) => new Set(s.split(' '));
const C_WORDS =
    'auto bool break case char const continue default do double else enum extern false float for goto if ' +
    'inline int long nullptr NULL register return short signed sizeof static struct switch true typedef union unsigned ' +
    'void volatile while';
const C_BLOCKS = [['/*', '*/', 'comment']];
const TEMPLATE = ['`', '`', 'string'];
const TRIPLES = [
    ['"""', '"""', 'string'],
    ["'''", "'''", 'string'],
];

/** words: keywords; line: beginnings of comments up to the end of the line; blocks: [begin, end, class]: may span
 * lines; quotes: of strings within a line. */
const C = { words: words(C_WORDS), line: ['//'], blocks: C_BLOCKS, quotes: '"\'' };
const JS = {
    words: words(
        'async await break case catch class const continue debugger default delete do else enum export ' +
            'extends false finally for from function if import in instanceof interface let new null of return static super ' +
            'switch this throw true try type typeof undefined var void while with yield',
    ),
    line: ['//'],
    blocks: [...C_BLOCKS, TEMPLATE],
    quotes: '"\'',
};
const PYTHON = {
    words: words(
        'and as assert async await break class continue def del elif else except False finally for ' +
            'from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield',
    ),
    line: ['#'],
    blocks: TRIPLES,
    quotes: '"\'',
};
const SHELL = {
    words: words(
        'case do done echo elif else esac exit export fi for function if in local read return set ' +
            'shift then trap unset until while',
    ),
    line: ['#'],
    blocks: [],
    quotes: '"\'',
};
const MARKUP = { words: words(''), line: [], blocks: [['<!--', '-->', 'comment']], quotes: '"\'', markup: true };
const DATA = { words: words('true false null yes no on off'), line: ['#'], blocks: [], quotes: '"\'', keys: true };

const plus = (base, more) => ({ ...base, words: new Set([...base.words, ...more.split(' ')]) });
const LANGUAGES = {
    c: C,
    python: PYTHON,
    javascript: JS,
    bash: SHELL,
    html: MARKUP,
    yaml: DATA,
    json: { ...DATA, line: [] },
    cpp: plus(
        C,
        'catch class constexpr delete explicit friend namespace new noexcept operator override private protected ' +
            'public template this throw try typename using virtual',
    ),
    java: plus(
        C,
        'abstract boolean byte catch class extends final finally implements import instanceof interface new ' +
            'null package private protected public super this throw throws try var record',
    ),
    go: plus(
        { ...C, blocks: [...C_BLOCKS, TEMPLATE] },
        'chan defer fallthrough func go import interface map nil package ' +
            'range select string type var error byte rune int32 int64 uint',
    ),
    rust: plus(
        C,
        'as async await crate dyn fn impl in let loop match mod move mut pub ref self Self str String trait type ' +
            'unsafe use where Some None Ok Err i32 i64 u8 u32 u64 usize f32 f64 Option Result Vec',
    ),
    kotlin: plus(C, 'class fun val var when object is in null override private public import package data this'),
    swift: plus(C, 'class func let var guard import in init nil protocol self some where extension'),
    php: plus(C, 'array as class echo elseif foreach fn function new null private protected public use namespace'),
    sql: {
        words: words(
            'add all alter and as asc between by case create default delete desc distinct drop else end exists ' +
                'from group having in index inner insert into is join key left like limit not null on or order outer primary ' +
                'references right select set table then union unique update values when where with',
        ),
        line: ['--'],
        blocks: C_BLOCKS,
        quotes: '\'"',
        anyCase: true,
    },
    lua: {
        words: words(
            'and break do else elseif end false for function if in local nil not or repeat return then true ' +
                'until while',
        ),
        line: ['--'],
        blocks: [['--[[', ']]', 'comment']],
        quotes: '"\'',
    },
    ruby: {
        words: words(
            'begin class def do else elsif end ensure false for if in module nil not or require rescue return ' +
                'self then true unless until when while yield',
        ),
        line: ['#'],
        blocks: [],
        quotes: '"\'',
    },
    css: { words: words('important inherit initial none auto'), line: [], blocks: C_BLOCKS, quotes: '"\'' },
    diff: { diff: true },
};
const ALIASES = {
    'c++': 'cpp',
    h: 'c',
    cc: 'cpp',
    hpp: 'cpp',
    cs: 'java',
    'c#': 'java',
    csharp: 'java',
    js: 'javascript',
    jsx: 'javascript',
    ts: 'javascript',
    tsx: 'javascript',
    typescript: 'javascript',
    mjs: 'javascript',
    py: 'python',
    python3: 'python',
    sh: 'bash',
    shell: 'bash',
    zsh: 'bash',
    console: 'bash',
    xml: 'html',
    svg: 'html',
    vue: 'html',
    yml: 'yaml',
    toml: 'yaml',
    ini: 'yaml',
    jsonc: 'json',
    json5: 'json',
    rs: 'rust',
    kt: 'kotlin',
    golang: 'go',
    rb: 'ruby',
    scss: 'css',
    patch: 'diff',
    postgresql: 'sql',
    sqlite: 'sql',
    mysql: 'sql',
    cuda: 'cpp',
    glsl: 'c',
    dockerfile: 'bash',
    makefile: 'bash',
    scala: 'java',
    dart: 'java',
};

/** The rules of a language by the name after the fence, or null. */
export function language(name) {
    const key = Object.hasOwn(ALIASES, name) ? ALIASES[name] : name;
    return Object.hasOwn(LANGUAGES, key) ? LANGUAGES[key] : null;
}

const WORD = /[\p{L}_$@][\p{L}\p{N}_$-]*/uy,
    NUMBER = /(?:0[xX][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*/y;
const STRINGS = { '"': /"(?:[^"\\\n]|\\.)*"?/y, "'": /'(?:[^'\\\n]|\\.)*'?/y };
const OTHER = /[^\p{L}\p{N}_$@"'`/#<\-*]+|[^]/uy;

/** Splits text; `state` is what the last piece returned, '' at first. Returns {parts: [[class, text]..], state}. */
export function highlight(text, rules, state) {
    if (!rules) {
        return { parts: [['', text]], state: '' };
    }
    if (rules.diff) {
        const kinds = { '+': 'added', '-': 'removed', '@': 'keyword' };
        return { parts: [[kinds[text[0]] ?? '', text]], state: '' };
    }
    return new Painter(text, rules).run(state);
}

class Painter {
    constructor(text, rules) {
        this.s = text;
        this.rules = rules;
        this.i = 0;
        this.parts = [];
    }

    run(state) {
        if (state) {
            state = this.blockEnd(
                this.rules.blocks.find((b) => b[0] === state),
                0,
            );
        }
        while (this.i < this.s.length) {
            work.steps++;
            const block = this.rules.blocks.find((b) => this.s.startsWith(b[0], this.i));
            if (block) {
                state = this.blockEnd(block, block[0].length);
            } else if (!this.comment() && !this.string() && !this.number() && !this.word()) {
                this.take('', OTHER);
            }
        }
        return { parts: this.parts, state };
    }

    /** Takes the rest of a block that may go on in the next piece; returns the new state. */
    blockEnd(block, from) {
        const end = this.s.indexOf(block[1], this.i + from);
        this.push(block[2], end < 0 ? this.s.length : end + block[1].length);
        return end < 0 ? block[0] : '';
    }

    push(kind, end) {
        const text = this.s.slice(this.i, end),
            last = this.parts.at(-1);
        work.steps += text.length >> 3;
        if (last && last[0] === kind) {
            last[1] += text;
        } else {
            this.parts.push([kind, text]);
        }
        this.i = end;
        return true;
    }

    take(kind, pattern) {
        pattern.lastIndex = this.i;
        return pattern.test(this.s) && this.push(kind, pattern.lastIndex);
    }

    comment() {
        const begins = this.rules.line.some((c) => this.s.startsWith(c, this.i));
        if (!begins || (this.s[this.i] === '#' && /\S/.test(this.s[this.i - 1] ?? ' '))) {
            return false;
        }
        const newline = this.s.indexOf('\n', this.i);
        return this.push('comment', newline < 0 ? this.s.length : newline);
    }

    string() {
        const c = this.s[this.i];
        if (!this.rules.quotes.includes(c) || !this.take(this.isKey() ? 'name' : 'string', STRINGS[c])) {
            return false;
        }
        return true;
    }

    /** True if a string that begins here is a key: `"name": ..`. */
    isKey() {
        if (!this.rules.keys) {
            return false;
        }
        const pattern = STRINGS[this.s[this.i]];
        pattern.lastIndex = this.i;
        return pattern.test(this.s) && /^\s*:/.test(this.s.slice(pattern.lastIndex, pattern.lastIndex + 8));
    }

    number() {
        return this.take('number', NUMBER);
    }

    word() {
        WORD.lastIndex = this.i;
        const found = WORD.exec(this.s);
        if (!found) {
            return false;
        }
        const word = found[0],
            end = this.i + word.length,
            after = this.s[end] ?? '',
            { rules } = this;
        let kind = '';
        if (rules.words.has(rules.anyCase ? word.toLowerCase() : word) || (rules.markup && this.isTag())) {
            kind = 'keyword';
        } else if ((rules.keys && after === ':') || (rules.markup && after === '=') || (!rules.keys && after === '(')) {
            kind = 'name';
        }
        return this.push(kind, end);
    }

    isTag() {
        return this.s[this.i - 1] === '<' || this.s.slice(this.i - 2, this.i) === '</';
    }
}
