// unit.page.speech: WAV files that the page makes, and what it shows of an answer about a sound.

import assert from 'node:assert/strict';
import test from 'node:test';
import { clock, encodeWav, mixed, pieces } from '../../../tools/llm-server/page/wav.js';
import { randomFrom } from './fake_dom.mjs';

test('a WAV file has what was given, as integers of 16 bits', () => {
    const random = randomFrom(7),
        samples = Float32Array.from({ length: 1000 }, () => (random(200001) - 100000) / 80000);
    const bytes = Buffer.from(encodeWav(samples, 16000));
    assert.equal(bytes.length, 44 + 2000);
    assert.equal(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 16), 'RIFFWAVEfmt ');
    assert.deepEqual([bytes.readUInt32LE(4), bytes.readUInt32LE(16)], [bytes.length - 8, 16]);
    assert.deepEqual([20, 22, 32, 34].map((at) => bytes.readUInt16LE(at)), [1, 1, 2, 16]);
    assert.deepEqual([24, 28].map((at) => bytes.readUInt32LE(at)), [16000, 32000]);
    assert.equal(bytes.toString('latin1', 36, 40), 'data');
    assert.equal(bytes.readUInt32LE(40), 2000);
    samples.forEach((x, i) => {
        const cut = Math.max(-32768, Math.min(32767, 32768 * x));
        assert.ok(Math.abs(bytes.readInt16LE(44 + 2 * i) - cut) <= 0.5, `sample ${i}`);
    });
    assert.equal(encodeWav(new Float32Array(0), 8000).byteLength, 44);
});

test('channels are mixed', () => {
    const left = new Float32Array([1, 0.5, -1]),
        right = new Float32Array([0, 0.5, 1]);
    assert.equal(mixed([left]), left);
    assert.deepEqual([...mixed([left, right])], [0.5, 0.5, 0]);
});

test('times', () => {
    assert.deepEqual([0, 9.99, 65.3, 3599, 3661, NaN, -1, undefined].map(clock), [
        '0:00',
        '0:09',
        '1:05',
        '59:59',
        '1:01:01',
        '0:00',
        '0:00',
        '0:00',
    ]);
});

test('pieces of an answer', () => {
    const segments = [
        { start: 0, end: 1.5, text: ' Hello' },
        { start: 1.5, end: 2, text: '  ' },
        { start: 61, end: 62, text: ' there <b>' },
    ];
    assert.deepEqual(pieces({ text: 'x', segments }), [
        { time: '0:00 – 0:01', text: 'Hello' },
        { time: '1:01 – 1:02', text: 'there <b>' },
    ]);
    assert.deepEqual(pieces({ text: ' all of it ' }), [{ time: '', text: 'all of it' }]);
    assert.deepEqual(pieces({ text: 'all', segments: 'x' }), [{ time: '', text: 'all' }]);
    for (const nothing of [null, {}, { text: ' ' }, { segments: [] }]) {
        assert.deepEqual(pieces(nothing), []);
    }
});
