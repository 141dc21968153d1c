// Ollama's client.
import assert from 'node:assert/strict';
import test from 'node:test';
import {Ollama} from 'ollama';
import {checkCut, checkPerson, crowd, key, question, schema, url} from './common.mjs';

const make = (secret) => new Ollama({host: url, headers: {Authorization: `Bearer ${secret}`}});
const client = make(key);
const ask = {model: 'any', messages: [{role: 'system', content: 'You tell stories.'}, {role: 'user', content: question}], options: {seed: 5, num_predict: 40}};
const tools = [{type: 'function', function: {name: 'person', description: 'Describes a person', parameters: schema}}];
const status = (wanted, words) => (e) => e.status_code === wanted && (!words || words.test(e.message)) || assert.fail(`${e.status_code}: ${e.message}`);

test('models', async () => {
    const {models} = await client.list();
    assert.ok(models.length >= 1 && models[0].name);
    assert.ok((await client.show({model: models[0].name})).details);
    assert.ok((await client.version()).version);
    assert.ok((await client.ps()).models.length >= 1);
});

test('chat, whole and as a stream', async () => {
    const whole = await client.chat(ask);
    assert.equal(whole.message.role, 'assistant');
    assert.ok(whole.message.content.length > 0 && whole.done && whole.eval_count > 0 && whole.prompt_eval_count > 0);
    let text = '', last;
    for await (const part of await client.chat({...ask, stream: true})) {
        assert.ok(!last?.done);
        text += part.message.content;
        last = part;
    }
    assert.equal(text, whole.message.content);
    assert.ok(last.done && last.done_reason === whole.done_reason);
    assert.equal(last.eval_count, whole.eval_count);
});

test('generate', async () => {
    const params = {model: 'any', prompt: question, options: {temperature: 0, num_predict: 20}};
    const whole = await client.generate(params);
    let text = '';
    for await (const part of await client.generate({...params, stream: true})) text += part.response;
    assert.equal(text, whole.response);
    const raw = await client.generate({...params, raw: true, prompt: 'Once upon a time'});
    assert.ok(raw.response.length > 0);
    const loaded = await client.generate({model: 'any', prompt: ''});
    assert.ok(loaded.done && loaded.done_reason === 'load' && loaded.response === '');
});

test('a schema and log-probabilities', async () => {
    const answer = await client.chat({...ask, format: schema, options: {num_predict: 200}});
    checkPerson(JSON.parse(answer.message.content));
    const any = await client.chat({...ask, format: 'json', options: {num_predict: 200}});
    assert.equal(typeof JSON.parse(any.message.content), 'object');
    const tokens = (await client.chat({...ask, logprobs: true, top_logprobs: 2})).logprobs;
    assert.ok(tokens.length > 0 && tokens.every((t) => t.logprob <= 0 && t.top_logprobs.length === 2));
});

test('tools in a conversation', async () => {
    const call = {role: 'assistant', content: '', tool_calls: [{function: {name: 'person', arguments: {name: 'Ann', age: 4}}}]};
    const result = {role: 'tool', tool_name: 'person', content: '{"found": true}'};
    const answer = await client.chat({...ask, tools, messages: [...ask.messages, call, result]});
    assert.ok(answer.done);
});

test('embeddings', async () => {
    const {embeddings, prompt_eval_count} = await client.embed({model: 'any', input: ['a text', 'another one']});
    assert.equal(embeddings.length, 2);
    assert.ok(prompt_eval_count > 2);
    for (const v of embeddings) assert.ok(Math.abs(Math.hypot(...v) - 1) < 1e-5);
    assert.deepEqual((await client.embeddings({model: 'any', prompt: 'a text'})).embedding, embeddings[0]);
});

test('errors', async () => {
    await assert.rejects(make('wrong').chat(ask), status(401));
    await client.chat({...ask, options: {temprature: 1}});
    await assert.rejects(client.chat({...ask, options: {num_ctx: -1}}), status(400, /num_ctx/));
    await assert.rejects(client.generate({model: 'any', prompt: 'x', context: [1, 2]}), status(400, /context/));
    await assert.rejects(client.pull({model: 'any'}), status(501, /one model/));
});

test('a stream that is aborted', async () => {
    await checkCut(async () => {
        const stream = await client.chat({...ask, stream: true, options: {num_predict: 3500, ignore_eos: true}});
        let n = 0;
        await assert.rejects(async () => {
            for await (const part of stream) {
                assert.ok(part.message);
                if (++n === 3) stream.abort();
            }
        }, {name: 'AbortError'});
    });
});

test('too many at once', async () => {
    await crowd(() => client.chat({...ask, options: {num_predict: 300, ignore_eos: true}}), status(429));
});
