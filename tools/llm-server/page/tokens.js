// An answer's tokens, coloured by probability. A click, or the arrow keys, show what else was likely.

import { el } from './dom.js';

const CLASSES = 10; // p0 (unlikely) to p9

/** A probability for people. */
export function percent(logprob) {
    const p = Math.exp(logprob) * 100;
    return p >= 99.95
        ? '100 %'
        : p >= 10
          ? p.toFixed(1) + ' %'
          : p >= 0.1
            ? p.toFixed(2) + ' %'
            : p > 0
              ? '< 0.1 %'
              : '0 %';
}

/** A token with white space made visible. */
export function visible(token) {
    return token.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replace(/^ | $/g, '␣') || '∅';
}

export class TokenView {
    constructor() {
        this.tokens = [];
        this.selected = -1;
        this.text = el('div', {
            class: 'token-text',
            role: 'listbox',
            'aria-label': 'Tokens',
            tabIndex: 0,
            onclick: (event) => this.select([...this.text.children].indexOf(event.target.closest('.token'))),
            onkeydown: (event) => this.key(event),
            onfocus: () => this.select(Math.max(0, this.selected)),
        });
        this.detail = el('div', { class: 'token-detail', 'aria-live': 'polite' });
        this.element = el('div', { class: 'tokens' }, this.text, this.detail);
    }

    /** Shows tokens; those that are shown already stay. */
    show(tokens) {
        for (let k = this.tokens.length; k < tokens.length; k++) {
            this.text.append(this.span(tokens[k]));
        }
        this.tokens = tokens.slice();
        this.detail.hidden = this.selected < 0;
    }

    span([text, logprob]) {
        const level = Math.max(0, Math.min(CLASSES - 1, Math.floor(Math.exp(logprob) * CLASSES)));
        return el(
            'span',
            { class: `token p${level}`, role: 'option', 'aria-selected': 'false', title: percent(logprob) },
            text,
        );
    }

    select(k) {
        if (k < 0 || k >= this.tokens.length) {
            return;
        }
        this.text.children[this.selected]?.setAttribute('aria-selected', 'false');
        this.selected = k;
        const span = this.text.children[k];
        span.setAttribute('aria-selected', 'true');
        span.scrollIntoView({ block: 'nearest' });
        const [text, logprob, top] = this.tokens[k];
        const among = top.some((t) => t[0] === text) ? top : [[text, logprob], ...top];
        const rows = [...among].sort((a, b) => b[1] - a[1]).map((t) => row(t, t[0] === text));
        this.detail.replaceChildren(
            el('p', {}, `Token ${k + 1} of ${this.tokens.length}`),
            el('table', {}, el('tbody', {}, ...rows)),
        );
        this.detail.hidden = false;
    }

    key(event) {
        const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
        const step = steps[event.key];
        if (step !== undefined) {
            this.select(Math.max(0, Math.min(this.tokens.length - 1, this.selected + step)));
            event.preventDefault();
            event.stopPropagation();
        }
    }
}

function row([text, logprob], chosen) {
    const bar = el('meter', { min: 0, max: 1, value: Math.exp(logprob) });
    return el(
        'tr',
        { class: chosen ? 'chosen' : '' },
        el('th', { scope: 'row' }, el('code', {}, visible(text))),
        el('td', {}, percent(logprob)),
        el('td', {}, bar),
    );
}
