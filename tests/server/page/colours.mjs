// unit.page.colours: text can be read on every ground it stands on, in both themes: a contrast of 4.5 (WCAG 2, AA).

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

const CSS = readFileSync(new URL('../../../tools/llm-server/page/style.css', import.meta.url), 'utf8');

/** The variables of the block that begins with `selector`. */
function variables(selector) {
    const block = CSS.slice(CSS.indexOf(selector)).match(/{([^}]*)}/)[1];
    return Object.fromEntries([...block.matchAll(/--([\w-]+): *(#[0-9a-f]+|transparent);/g)].map((m) => [m[1], m[2]]));
}

const LIGHT = variables(':root {');
const DARK = variables(':root[data-theme="dark"] {');

/** The relative luminance of #rgb or #rrggbb. */
function luminance(colour) {
    const digits = colour.length === 4 ? colour.replace(/[0-9a-f]/g, '$&$&') : colour;
    const [r, g, b] = digits.match(/[0-9a-f]{2}/g).map((x) => {
        const v = parseInt(x, 16) / 255;
        return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
}

const PAIRS = [
    ...['page', 'side', 'raised', 'soft', 'wash', 'code', 'p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8'].map(
        (g) => ['text', g],
    ),
    ...['page', 'side', 'raised', 'soft', 'code'].map((g) => ['quiet', g]),
    ...['page', 'wash'].map((g) => ['accent', g]),
    ...['comment', 'string', 'number', 'keyword', 'name', 'added', 'removed'].map((c) => [c, 'code']),
    ...['bad-wash', 'side', 'raised'].map((g) => ['bad', g]),
    ['on-accent', 'accent'],
];

test('contrast of 21 is that of black and white', () => {
    assert.equal(contrast('#000', '#ffffff'), 21);
});

for (const [name, theme] of Object.entries({ LIGHT, DARK })) {
    test(`${name}: text on its grounds`, () => {
        const poor = PAIRS.map(([a, b]) => [a, b, contrast(theme[a], theme[b])]).filter((p) => p[2] < 4.5);
        assert.deepEqual(poor, []);
        assert.ok(contrast(theme['strong-line'], theme.page) >= 3, 'borders of fields');
        assert.ok(contrast(theme.accent, theme.page) >= 3, 'the ring around what has the focus');
    });
}

test('the dark theme of the system is the one that the button chooses', () => {
    assert.deepEqual(variables(':root:not([data-theme="light"]) {'), DARK);
    assert.deepEqual(Object.keys(LIGHT).sort(), Object.keys(DARK).sort());
});
