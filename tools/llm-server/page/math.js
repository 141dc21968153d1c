// Formulas in Markdown: \(..\) and $..$ within a text, \[..\] and $$..$$ also as blocks. KaTeX draws them, if the build
// found it; else, or if it cannot read a formula, they are shown as they are written.

import katex from './katex.js';

const LONG = 2000; // characters; a longer formula is text
const TALL = 60; // lines of a block
const CLOSERS = { '\\(': '\\)', '\\[': '\\]', $$: '$$', $: '$' };

/** Teaches a MarkdownIt to read formulas: tokens of type 'math', whose content is the formula with its marks. */
export function readMath(md) {
    md.inline.ruler.before('escape', 'math', inlineMath);
    md.block.ruler.before('fence', 'math', blockMath, { alt: ['paragraph', 'blockquote', 'list'] });
}

function inlineMath(state, silent) {
    const { src, pos, posMax } = state,
        two = src.slice(pos, pos + 2);
    const open = CLOSERS[two] ? two : src[pos] === '$' ? '$' : '';
    const end = !open ? -1 : open === '$' ? dollarEnd(src, pos, posMax) : closerOf(state, open);
    if (end < 0) {
        return false;
    }
    if (!silent) {
        push(state, src.slice(pos, end), open);
    }
    state.pos = end;
    return true;
}

/** The end of the formula that begins with `open`, or -1. What is not found once is not looked for again. */
function closerOf(state, open) {
    const { src, pos, posMax, env } = state,
        close = CLOSERS[open];
    if (env.noMath?.[close] === src) {
        return -1;
    }
    const at = src.indexOf(close, pos + 2);
    if (at < 0) {
        (env.noMath ??= {})[close] = src;
    }
    return at < 0 || at + 2 > posMax || at - pos > LONG ? -1 : at + 2;
}

/** Money is no formula: neither a blank after the first `$` nor before the last, no digit after it, all in one line. */
function dollarEnd(src, pos, posMax) {
    if (/[\s$]/.test(src[pos + 1] ?? ' ') || /[\w$\\]/.test(src[pos - 1] ?? ' ')) {
        return -1;
    }
    for (let i = pos + 1; i < posMax && i - pos < 300 && src[i] !== '\n'; i++) {
        if (src[i] === '\\') {
            i++;
        } else if (src[i] === '$') {
            return /\s/.test(src[i - 1]) || /[\d$\w]/.test(src[i + 1] ?? ' ') ? -1 : i + 1;
        }
    }
    return -1;
}

/** Lines from one that begins with `$$` or `\[` to one that ends with its counterpart; a blank line is in none. A block
 * that is not closed yet is one, too, so that what a line is does not change when a later one arrives. */
function blockMath(state, startLine, endLine, silent) {
    const open = lineOf(state, startLine).slice(0, 2);
    if ((open !== '$$' && open !== '\\[') || state.sCount[startLine] - state.blkIndent >= 4) {
        return false;
    }
    const lines = [];
    let closed = false;
    for (let line = startLine; line < endLine && !closed; line++) {
        const text = lineOf(state, line).trimEnd();
        if (!text || lines.length === TALL || (line > startLine && state.sCount[line] < state.blkIndent)) {
            return false;
        }
        lines.push(text);
        const at = text.indexOf(CLOSERS[open], lines.length > 1 ? 0 : 2);
        closed = at >= 0;
        if (closed && at < text.length - 2) {
            return false;
        }
    }
    if (silent) {
        return closed && state.eMarks[startLine + lines.length - 1] < state.src.length; // with its last line complete
    }
    const token = push(state, lines.join('\n'), closed ? open : '');
    token.block = true;
    token.map = [startLine, startLine + lines.length];
    state.line = startLine + lines.length;
    return true;
}

function lineOf(state, line) {
    return state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);
}

/** markup: the opening mark; '': the formula is not complete. */
function push(state, content, markup) {
    const token = state.push('math', '', 0);
    Object.assign(token, { content, markup });
    return token;
}

/** Draws a formula, given with its marks, into an element; false: it is shown as it is written. */
export function drawMath(element, { content, markup }) {
    const n = markup.length,
        formula = content.slice(n, content.length - n);
    element.setAttribute('role', 'math');
    element.setAttribute('aria-label', formula);
    try {
        if (!katex || !markup || content.length > LONG) {
            throw new Error('not drawn');
        }
        const displayMode = markup === '$$' || markup === '\\[';
        element.className = 'formula';
        katex.render(formula, element, { displayMode, output: 'html', strict: 'ignore', maxSize: 20, maxExpand: 200 });
    } catch {
        element.className = 'math';
        element.replaceChildren(content);
    }
}
