// Anthropic's client.
import assert from 'node:assert/strict';
import test from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import {checkCut, checkPerson, crowd, key, question, schema, url} from './common.mjs';

const client = new Anthropic({baseURL: url, apiKey: key, maxRetries: 0});
const ask = {model: 'any', max_tokens: 40, temperature: 0, system: 'You tell stories.', messages: [{role: 'user', content: question}]};
const tools = [{name: 'person', description: 'Describes a person', input_schema: schema}];
const long = (minLength, max_tokens) => ({...ask, max_tokens, output_config: {format: {type: 'json_schema', schema: {type: 'string', minLength}}}});
const textOf = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');

test('messages, whole and as a stream', async () => {
    const whole = await client.messages.create(ask);
    assert.match(whole.id, /^msg_/);
    assert.equal(whole.role, 'assistant');
    assert.ok(textOf(whole).length > 0);
    assert.ok(['end_turn', 'max_tokens'].includes(whole.stop_reason));
    const stream = client.messages.stream(ask);
    let text = '';
    stream.on('text', (delta) => { text += delta; });
    const final = await stream.finalMessage();
    assert.equal(text, textOf(whole));
    assert.deepEqual(final.content, whole.content);
    assert.equal(final.stop_reason, whole.stop_reason);
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
    const total = (u) => u.input_tokens + u.cache_read_input_tokens;
    assert.equal(total(final.usage), total(whole.usage));
    const counted = await client.messages.countTokens({model: 'any', system: ask.system, messages: ask.messages});
    assert.equal(counted.input_tokens, total(whole.usage));
});

test('blocks, stop sequences and continued answers', async () => {
    const whole = await client.messages.create({...ask, system: [{type: 'text', text: ask.system, cache_control: {type: 'ephemeral'}}],
        messages: [{role: 'user', content: [{type: 'text', text: question}]}], metadata: {user_id: 'u'}});
    assert.equal(textOf(whole), textOf(await client.messages.create(ask)));
    const stop = textOf(whole).slice(5, 8);
    const stopped = await client.messages.create({...ask, stop_sequences: [stop]});
    assert.equal(stopped.stop_reason, 'stop_sequence');
    assert.equal(stopped.stop_sequence, stop);
    assert.equal(textOf(stopped), textOf(whole).split(stop)[0].trimEnd());
    const begun = await client.messages.create({...ask, messages: [...ask.messages, {role: 'assistant', content: 'In the old house lives'}]});
    assert.ok(textOf(begun).length > 0);
});

test('a schema', async () => {
    const answer = await client.messages.create({...ask, max_tokens: 200, output_config: {format: {type: 'json_schema', schema}}});
    checkPerson(JSON.parse(textOf(answer)));
});

test('tools', async () => {
    const answer = await client.messages.create({...ask, max_tokens: 200, tools, tool_choice: {type: 'tool', name: 'person', disable_parallel_tool_use: true}});
    assert.equal(answer.stop_reason, 'tool_use');
    const use = answer.content.find((b) => b.type === 'tool_use');
    assert.equal(use.name, 'person');
    checkPerson(use.input);
    const final = await client.messages.stream({...ask, max_tokens: 200, tools, tool_choice: {type: 'any', disable_parallel_tool_use: true}}).finalMessage();
    checkPerson(final.content.find((b) => b.type === 'tool_use').input);
    const result = {role: 'user', content: [{type: 'tool_result', tool_use_id: use.id, content: [{type: 'text', text: 'found'}]}]};
    const next = await client.messages.create({...ask, tools, tool_choice: {type: 'none'}, messages: [...ask.messages, {role: 'assistant', content: answer.content}, result]});
    assert.ok(next.content.every((b) => b.type === 'text'));
});

test('errors', async () => {
    const wrong = new Anthropic({baseURL: url, apiKey: 'wrong', maxRetries: 0});
    await assert.rejects(wrong.messages.create(ask), (e) => e instanceof Anthropic.AuthenticationError && e.error.error.type === 'authentication_error');
    for (const [more, name] of [[{temprature: 1}, 'temprature'], [{tools: [{type: 'bash_20250124', name: 'bash'}]}, 'tools.bash_20250124']]) {
        const {response} = await client.messages.create({...ask, ...more}).withResponse();
        assert.equal(response.headers.get('x-ignored-fields'), name);
    }
    await assert.rejects(client.messages.create({...ask, messages: [{role: 'user', content: 'word '.repeat(9000)}]}), /prompt is too long: \d+ tokens > 4096 maximum/);
    const {max_tokens, ...without} = ask;
    await assert.rejects(client.messages.create(without), Anthropic.BadRequestError);
    await assert.rejects(client.messages.create({...ask, messages: [{role: 'user', content: [{type: 'image', source: {type: 'url', url: 'x'}}]}]}), /image/);
    await assert.rejects(client.messages.countTokens({model: 'any', messages: []}), Anthropic.BadRequestError);
    await assert.rejects(client.post('/v1/nothing'), Anthropic.NotFoundError);
});

test('a stream that is aborted', async () => {
    await checkCut(async () => {
        const stream = await client.messages.create({...long(1200, 3500), stream: true});
        let n = 0;
        for await (const event of stream) {
            assert.ok(event.type);
            if (++n === 3) stream.controller.abort();
        }
        assert.ok(n >= 3);
    });
});

test('too many at once', async () => {
    await crowd(() => client.messages.create(long(250, 300)), (e) => {
        assert.ok(e instanceof Anthropic.RateLimitError, String(e));
        assert.equal(e.error.error.type, 'rate_limit_error');
    });
});
