// unit.page.model: events of streams, answers, settings and conversations.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Answer, promptText, speedText } from '../../../tools/llm-server/page/answer.js';
import {
    NUMBERS,
    cleanSettings,
    contextSize,
    readNumber,
    requestFields,
    serverDefault,
} from '../../../tools/llm-server/page/fields.js';
import { EventStream } from '../../../tools/llm-server/page/sse.js';
import { percent, visible } from '../../../tools/llm-server/page/tokens.js';
import { Run } from '../../../tools/llm-server/page/run.js';
import * as tree from '../../../tools/llm-server/page/tree.js';
import { randomFrom } from './fake_dom.mjs';

const SEED = Number(process.env.GGL_SEED ?? 1);

test('events are the same however the stream is cut', () => {
    for (let seed = SEED; seed < SEED + 1000; seed++) {
        const random = randomFrom(seed),
            newline = random.pick(['\n', '\r\n', '\r']),
            expected = [];
        let text = '';
        for (let n = random(6); n > 0; n--) {
            const lines = Array.from({ length: 1 + random(3) }, () => random.pick(['a', '', ' b: c', '{"x":1}', 'é']));
            expected.push(lines.join('\n'));
            text += random.pick(['', ': a comment' + newline, 'event: x' + newline, newline]);
            text +=
                lines
                    .map(
                        (l) =>
                            random.pick(['data:', 'data: ']).slice(0, l.startsWith(' ') ? 6 : undefined) + l + newline,
                    )
                    .join('') + newline;
        }
        // a first blank is removed, so a line that begins with one needs the other
        text = text.replaceAll('data: b', 'data:  b');
        const stream = new EventStream(),
            events = [];
        for (let i = 0; i < text.length;) {
            const n = 1 + random(9);
            events.push(...stream.push(text.slice(i, i + n)));
            i += n;
        }
        events.push(...stream.end());
        assert.deepEqual(events, expected, `seed ${seed}: ${JSON.stringify(text)}`);
    }
});

test('an answer adds up its chunks', () => {
    let now = 0;
    const answer = new Answer(() => now);
    const delta = (d, at, more = {}) => {
        now = at;
        answer.add({ choices: [{ index: 0, delta: d, ...more }] });
    };
    delta({ role: 'assistant' }, 50);
    delta({ reasoning_content: 'hm' }, 500);
    delta({ content: 'a' }, 2500, {
        logprobs: { content: [{ token: 'a', logprob: -0.5, top_logprobs: [{ token: 'b', logprob: -1 }] }] },
    });
    delta({ content: '\ufffd' }, 3000, {
        logprobs: { content: [{ token: '\ufffd', logprob: null, bytes: [226, 130], top_logprobs: [] }] },
    });
    delta({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '{' } }] }, 3000);
    delta({ tool_calls: [{ index: 0, function: { arguments: '}' } }] }, 3500);
    delta({}, 9000, { finish_reason: 'stop' });
    assert.deepEqual([answer.content, answer.reasoning, answer.finish], ['a\ufffd', 'hm', 'stop']);
    assert.deepEqual(answer.calls, [{ name: 'f', arguments: '{}' }]);
    assert.deepEqual(answer.tokens, [
        ['a', -0.5, [['b', -1]]],
        ['<E2><82>', -9999, []],
    ]);
    const measured = answer.stats();
    assert.deepEqual([measured.first, measured.thought, measured.n, measured.perSecond], [0.5, 2, 5, 4 / 3]);
    answer.add({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 9, total_tokens: 16 } });
    assert.deepEqual([answer.stats().n, answer.stats().prompt, answer.stats().total], [9, 7, 16]);
    answer.add({ timings: { prompt_n: 2, prompt_per_second: 300, predicted_n: 10, predicted_per_second: 45.67 } });
    assert.equal(speedText(answer.stats()), '45.7 tokens/s · first token after 0.50 s · 10 tokens');
    assert.equal(promptText(answer.stats()), 'Prompt: 7 tokens, of which 2 had to be read, at 300 tokens/s');
    assert.equal(speedText(new Answer(() => 0).stats()), '');
});

test('settings', () => {
    const [temperature] = NUMBERS,
        seed = NUMBERS.find((f) => f.name === 'seed');
    assert.deepEqual(readNumber(temperature, ' 0,7 '), { value: 0.7 });
    assert.deepEqual(readNumber(temperature, ''), { value: null });
    assert.match(readNumber(temperature, 'warm').error, /^Temperature has to be a number/);
    assert.match(readNumber(temperature, '11').error, /from 0 to 10/);
    assert.match(readNumber(seed, '1.5').error, /whole number/);
    const wild = {
        temperature: 0.5,
        top_k: 'x',
        min_p: 7,
        seed: 1.5,
        stop: ['a', '', 3],
        top_logprobs: 5,
        system: 'S',
        evil: 1,
    };
    assert.deepEqual(cleanSettings(wild), { system: 'S', temperature: 0.5, stop: ['a'], top_logprobs: 5 });
    assert.deepEqual(requestFields(wild), {
        temperature: 0.5,
        stream: true,
        stream_options: { include_usage: true },
        stop: ['a'],
        logprobs: true,
        top_logprobs: 5,
    });
    assert.deepEqual(cleanSettings({ reasons: 'off' }), {});
    assert.equal(requestFields({ reasons: true }).enable_thinking, true);
    assert.equal(requestFields({ reasons: true }).reasoning_budget_tokens, undefined);
    assert.equal(requestFields({ reasons: false }).enable_thinking, false);
    assert.equal(requestFields({ reasons: false }).reasoning_budget_tokens, 0);
    assert.deepEqual(requestFields({}), { stream: true, stream_options: { include_usage: true } });
    for (const junk of [null, undefined, 3, 'x', []]) {
        assert.deepEqual(cleanSettings(junk), {});
    }
    const props = {
        default_generation_settings: {
            n_ctx: 512,
            params: { temperature: 0.800000011920929, n_predict: -1, seed: 4294967295 },
        },
    };
    const shown = (p) =>
        ['temperature', 'max_tokens', 'seed', 'top_k'].map((n) =>
            serverDefault(
                NUMBERS.find((f) => f.name === n),
                p,
            ),
        );
    assert.deepEqual(shown(props), ['0.8', '', '', '']);
    assert.deepEqual(shown({ default_generation_settings: { temperature: 1, top_k: 40 } }), ['1', '', '', '40']);
    assert.deepEqual([contextSize(props), contextSize({}), contextSize(null)], [512, null, null]);
});

test('tokens and probabilities are written for people', () => {
    assert.deepEqual([' the', 'a b', '\n', '\t x ', ''].map(visible), ['␣the', 'a b', '⏎', '⇥ x␣', '∅']);
    assert.deepEqual([0, -0.7, -5, -9, -9999].map(percent), ['100 %', '49.7 %', '0.67 %', '< 0.1 %', '0 %']);
});

const texts = (talk) =>
    tree
        .path(talk)
        .map((p) => p.message.content)
        .join(' ');

test('branches', () => {
    const talk = tree.newConversation({ system: 'S' });
    const a = tree.addMessage(talk, tree.ROOT, 'user', 'a'),
        b = tree.addMessage(talk, a.id, 'assistant', 'b');
    tree.addMessage(talk, b.id, 'user', 'c');
    const b2 = tree.addMessage(talk, a.id, 'assistant', 'b2');
    assert.equal(texts(talk), 'a b2');
    assert.deepEqual(
        tree.path(talk).map((p) => [p.index, p.siblings.length]),
        [
            [0, 1],
            [1, 2],
        ],
    );
    assert.equal(tree.stepBranch(talk, b2.id, 1), null);
    assert.equal(tree.stepBranch(talk, b2.id, -1).id, b.id);
    assert.equal(texts(talk), 'a b c');
    assert.deepEqual(tree.requestMessages(talk, b.id), [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
    ]);
    const gone = tree.deleteMessage(talk, b.id);
    assert.deepEqual([gone.length, texts(talk)], [2, 'a b2']);
    tree.restoreMessages(talk, gone);
    assert.equal(texts(talk), 'a b c');
    tree.deleteMessage(talk, a.id);
    assert.deepEqual([texts(talk), tree.titleOf(talk)], ['', 'New conversation']);
});

/** Changes a conversation in one of the ways in which the page does. */
function change(talk, random) {
    const all = Object.values(talk.messages).filter((m) => !m.gone);
    const some = all.length ? random.pick(all) : null,
        kind = random(6);
    if (kind < 2 || !some) {
        tree.addMessage(talk, some?.id ?? tree.ROOT, random.pick(['user', 'assistant']), 'm' + random(1000));
    } else if (kind === 2) {
        tree.changeMessage(some, { content: 'changed' + random(1000) });
    } else if (kind === 3) {
        const gone = tree.deleteMessage(talk, some.id);
        if (random(2)) {
            tree.restoreMessages(talk, gone);
        }
    } else if (kind === 4) {
        tree.stepBranch(talk, some.id, random.pick([1, -1]));
    } else {
        tree.setField(talk, random.pick(['title', 'settings']), random.pick(['x', 'y']));
    }
}

test('copies that were changed in several tabs merge to the same, in any order, and nothing is lost', () => {
    for (let seed = SEED; seed < SEED + 300; seed++) {
        const random = randomFrom(seed),
            base = tree.newConversation({});
        for (let n = random(6); n > 0; n--) {
            change(base, random);
        }
        const tabs = [0, 1, 2].map(() => structuredClone(base));
        for (let n = random(30); n > 0; n--) {
            change(random.pick(tabs), random);
        }
        const merged = (...order) =>
            order.reduce((sum, k) => tree.merge(sum, structuredClone(tabs[k])), structuredClone(base));
        const expected = merged(0, 1, 2);
        for (const order of [
            [2, 1, 0],
            [1, 1, 0, 2, 0],
            [2, 0, 1],
        ]) {
            assert.deepEqual(merged(...order), expected, `seed ${seed}`);
        }
        for (const id of tabs.flatMap((t) => Object.keys(t.messages))) {
            const latest = Math.max(...tabs.map((t) => t.messages[id]?.at ?? 0));
            assert.equal(expected.messages[id].at, latest, `seed ${seed}: message ${id} lost its last change`);
        }
    }
});

test('an answer that is being written is not replaced by an older copy of itself', async () => {
    const talk = tree.newConversation({}),
        question = tree.addMessage(talk, tree.ROOT, 'user', 'q');
    const message = tree.addMessage(talk, question.id, 'assistant', '');
    let stored = structuredClone(talk);
    const chat = async function* () {
        for (const content of ['One', ' two', '!', ' three']) {
            yield { choices: [{ index: 0, delta: { content } }] };
            tree.mergeShown(talk, stored); // another part of the page saves the conversation
            stored = structuredClone(talk);
        }
    };
    assert.equal(await new Run({ chat }, talk, message, 'm', () => {}).finish(), null);
    assert.equal(tree.mergeShown(talk, stored).messages[message.id].content, 'One two! three');
    assert.equal(talk.messages[message.id], message);
});

test('files are checked', () => {
    const talk = tree.newConversation({ system: 'S', temperature: 1 });
    const a = tree.addMessage(talk, tree.ROOT, 'user', 'a'),
        b = tree.addMessage(talk, a.id, 'assistant', 'b', { tokens: [['x', -1, [['y', -2]]]], stats: { n: 1 } });
    tree.deleteMessage(talk, tree.addMessage(talk, b.id, 'user', 'c').id);
    assert.deepEqual(tree.checkConversation(JSON.parse(JSON.stringify(talk))), talk);
    const broken = (f) => {
        const copy = structuredClone(talk);
        f(copy);
        return () => tree.checkConversation(copy);
    };
    assert.throws(() => tree.checkConversation(null), /version/);
    assert.throws(
        broken((t) => (t.id = '../x')),
        /valid "id"/,
    );
    assert.throws(
        broken((t) => (t.id = '__proto__')),
        /valid "id"/,
    );
    assert.throws(
        broken((t) => (t.title = 'x')),
        /"title" or "settings"/,
    );
    assert.throws(
        broken((t) => (t.messages[a.id].role = 'system')),
        /valid "role"/,
    );
    assert.throws(
        broken((t) => (t.messages[a.id].content = { toString: 1 })),
        /valid "role" or "content"/,
    );
    assert.throws(
        broken((t) => (t.messages[a.id].parent = b.id)),
        /missing or its own parent/,
    );
    assert.throws(
        broken((t) => delete t.messages[a.id]),
        /missing or its own parent/,
    );
    assert.throws(
        broken((t) => (t.messages[b.id].at = null)),
        /no time/,
    );
    const cleaned = broken((t) =>
        Object.assign(t.messages[b.id], { tokens: [['x', '<b>']], evil: 1, stats: { n: 'x', first: 2 } }),
    )();
    assert.deepEqual(Object.keys(cleaned.messages[b.id]).sort(), [
        'at',
        'content',
        'created',
        'id',
        'parent',
        'role',
        'stats',
    ]);
    assert.deepEqual(cleaned.messages[b.id].stats, { first: 2 });
});

test('a chain of many messages is checked and shown in linear time', () => {
    const talk = tree.newConversation({});
    for (let k = 0, parent = tree.ROOT; k < 20000; k++) {
        parent = tree.addMessage(talk, parent, 'user', 'x').id;
    }
    assert.equal(tree.path(tree.checkConversation(talk)).length, 20000);
});

test('pictures of questions are sent before the text, kept, and checked', () => {
    const picture = 'data:image/png;base64,iVBORw0KGgo=';
    const talk = tree.newConversation({});
    const first = tree.addMessage(talk, tree.ROOT, 'user', 'What is it?', { pictures: [picture, picture] });
    const second = tree.addMessage(talk, tree.addMessage(talk, first.id, 'assistant', 'A cat.').id, 'user', '', { pictures: [picture] });
    const part = { type: 'image_url', image_url: { url: picture } };
    assert.deepEqual(tree.requestMessages(talk, second.id), [
        { role: 'user', content: [part, part, { type: 'text', text: 'What is it?' }] },
        { role: 'assistant', content: 'A cat.' },
        { role: 'user', content: [part] },
    ]);
    assert.deepEqual(tree.checkConversation(JSON.parse(JSON.stringify(talk))), talk);
    for (const bad of ['https://example.org/a.png', 'data:text/html;base64,YQ==', 'data:image/svg+xml,<svg>', 'data:image/png;base64,a"b', 5]) {
        const file = structuredClone(talk);
        file.messages[first.id].pictures = [picture, bad];
        assert.equal(tree.checkConversation(file).messages[first.id].pictures, undefined, String(bad));
    }
    assert.equal(tree.titleOf(talk), 'What is it?');
    const untitled = tree.newConversation({});
    tree.addMessage(untitled, tree.ROOT, 'user', '', { pictures: [picture] });
    assert.equal(tree.titleOf(untitled), 'Picture');
});

test('sounds of questions are sent before the text, kept, and checked', () => {
    const sound = { name: 'a.wav', url: 'data:audio/wav;base64,UklGRg==' };
    const talk = tree.newConversation({});
    const first = tree.addMessage(talk, tree.ROOT, 'user', 'What is said?', { sounds: [sound] });
    assert.deepEqual(tree.requestMessages(talk, first.id)[0].content, [
        { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
        { type: 'text', text: 'What is said?' },
    ]);
    assert.deepEqual(tree.attachedTo(first), { sounds: [sound] });
    assert.deepEqual(tree.checkConversation(JSON.parse(JSON.stringify(talk))), talk);
    for (const bad of [5, null, { name: 'a' }, { ...sound, url: 'https://example.org/a.wav' }, { ...sound, url: 'data:text/html;base64,YQ==' }, { ...sound, name: 7 }]) {
        const file = structuredClone(talk);
        file.messages[first.id].sounds = [sound, bad];
        assert.equal(tree.checkConversation(file).messages[first.id].sounds, undefined, JSON.stringify(bad));
    }
    const untitled = tree.newConversation({});
    tree.addMessage(untitled, tree.ROOT, 'user', '', { sounds: [sound] });
    assert.equal(tree.titleOf(untitled), 'Sound');
});
