// OpenAI's client.
import assert from 'node:assert/strict';
import test from 'node:test';
import OpenAI from 'openai';
import {checkCut, checkPerson, crowd, key, question, schema, url} from './common.mjs';

const client = new OpenAI({baseURL: `${url}/v1`, apiKey: key, maxRetries: 0});
const ask = {model: 'any', messages: [{role: 'system', content: 'You tell stories.'}, {role: 'user', content: question}], seed: 5, max_tokens: 40};
const tools = [{type: 'function', function: {name: 'person', description: 'Describes a person', parameters: schema}}];
const named = {type: 'function', function: {name: 'person'}};

test('models', async () => {
    const list = await client.models.list();
    assert.ok(list.data.length >= 1);
    const model = await client.models.retrieve(list.data[0].id);
    assert.equal(model.id, list.data[0].id);
    await assert.rejects(client.models.retrieve('no-such-model'), OpenAI.NotFoundError);
});

test('chat, whole and as a stream', async () => {
    const whole = await client.chat.completions.create(ask);
    assert.match(whole.id, /^chatcmpl-/);
    assert.equal(whole.choices[0].message.role, 'assistant');
    assert.ok(whole.choices[0].message.content.length > 0);
    assert.ok(['stop', 'length'].includes(whole.choices[0].finish_reason));
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);

    const stream = await client.chat.completions.create({...ask, stream: true, stream_options: {include_usage: true}});
    let text = '', finish = null, usage = null;
    for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? '';
        finish = chunk.choices[0]?.finish_reason ?? finish;
        usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test('several choices and stop strings', async () => {
    const several = await client.chat.completions.create({...ask, n: 3});
    assert.deepEqual(several.choices.map((c) => c.index), [0, 1, 2]);
    const whole = await client.chat.completions.create(ask);
    assert.equal(several.choices[0].message.content, whole.choices[0].message.content);
    const stop = whole.choices[0].message.content.slice(5, 8);
    const stopped = await client.chat.completions.create({...ask, stop: [stop]});
    assert.equal(stopped.choices[0].finish_reason, 'stop');
    assert.equal(stopped.choices[0].message.content, whole.choices[0].message.content.split(stop)[0].trimEnd());
});

test('log-probabilities', async () => {
    const answer = await client.chat.completions.create({...ask, max_tokens: 10, logprobs: true, top_logprobs: 3});
    const tokens = answer.choices[0].logprobs.content;
    assert.ok(tokens.length > 0);
    for (const t of tokens) {
        assert.ok(t.logprob <= 0 && t.top_logprobs.length === 3);
        assert.ok(t.top_logprobs[0].logprob >= t.top_logprobs[1].logprob);
    }
    const text = Buffer.from(tokens.flatMap((t) => t.bytes)).toString();
    assert.ok(text.trimStart().startsWith(answer.choices[0].message.content.trim().slice(0, 8)));
});

test('a schema', async () => {
    const format = {type: 'json_schema', json_schema: {name: 'person', schema, strict: true}};
    const answer = await client.chat.completions.create({...ask, max_tokens: 200, response_format: format});
    checkPerson(JSON.parse(answer.choices[0].message.content));
    const stream = client.chat.completions.stream({...ask, max_tokens: 200, response_format: format});
    checkPerson(JSON.parse((await stream.finalChatCompletion()).choices[0].message.content));
    const any = await client.chat.completions.create({...ask, max_tokens: 200, response_format: {type: 'json_object'}});
    assert.equal(typeof JSON.parse(any.choices[0].message.content), 'object');
});

test('tools', async () => {
    const answer = await client.chat.completions.create({...ask, max_tokens: 200, tools, tool_choice: named, parallel_tool_calls: false});
    const message = answer.choices[0].message;
    assert.equal(message.tool_calls[0].function.name, 'person');
    checkPerson(JSON.parse(message.tool_calls[0].function.arguments));
    const stream = client.chat.completions.stream({...ask, max_tokens: 200, tools, tool_choice: 'required', parallel_tool_calls: false});
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].finish_reason, 'tool_calls');
    checkPerson(JSON.parse(final.choices[0].message.tool_calls[0].function.arguments));
    const result = {role: 'tool', tool_call_id: message.tool_calls[0].id, content: '{"found": true}'};
    const next = await client.chat.completions.create({...ask, messages: [...ask.messages, message, result], tools, tool_choice: 'none'});
    assert.equal(next.choices[0].message.tool_calls ?? null, null);
});

test('completions', async () => {
    const answer = await client.completions.create({model: 'any', prompt: 'Once upon a time', max_tokens: 8, temperature: 0, echo: true, logprobs: 2});
    assert.ok(answer.choices[0].text.startsWith('Once upon a time'));
    assert.equal(answer.choices[0].logprobs.tokens.length, answer.choices[0].logprobs.token_logprobs.length);
});

test('responses', async () => {
    const params = {model: 'any', instructions: 'You tell stories.', input: question, max_output_tokens: 40, temperature: 0, store: false};
    const whole = await client.responses.create(params);
    assert.ok(whole.output_text.length > 0);
    let text = '', last = -1, done = null;
    for await (const event of await client.responses.create({...params, stream: true})) {
        assert.equal(event.sequence_number, ++last);
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (event.type === 'response.completed' || event.type === 'response.incomplete') done = event.response;
    }
    assert.equal(text, whole.output_text);
    assert.equal(done.status, whole.status);
});

test('embeddings', async () => {
    const input = ['a text', 'a longer text of another kind', 'a text'];
    // The client asks for base64 unless told otherwise, and decodes it.
    const [coded, plain] = await Promise.all(['base64', 'float'].map((encoding_format) =>
        client.embeddings.create({model: 'any', input, ...(encoding_format === 'float' ? {encoding_format} : {})})));
    for (const answer of [coded, plain]) {
        assert.deepEqual(answer.data.map((x) => x.index), [0, 1, 2]);
        assert.ok(answer.usage.prompt_tokens > 3);
        assert.deepEqual(answer.data[0].embedding, answer.data[2].embedding);
        for (const {embedding} of answer.data) assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
    }
    assert.deepEqual(coded.data.map((x) => x.embedding), plain.data.map((x) => [...new Float32Array(x.embedding)]));
    const cut = (await client.embeddings.create({model: 'any', input, dimensions: 3})).data[0].embedding;
    assert.equal(cut.length, 3);
    assert.ok(Math.abs(Math.hypot(...cut) - 1) < 1e-5);
    assert.ok(Math.abs(cut[0] * plain.data[0].embedding[1] - cut[1] * plain.data[0].embedding[0]) < 1e-6);
    await assert.rejects(client.embeddings.create({model: 'any', input, dimensions: 1000000}), OpenAI.BadRequestError);
});

test('errors', async () => {
    const wrong = new OpenAI({baseURL: `${url}/v1`, apiKey: 'wrong', maxRetries: 0});
    await assert.rejects(wrong.chat.completions.create(ask), OpenAI.AuthenticationError);
    const {response} = await client.chat.completions.create({...ask, temprature: 1}).withResponse();
    assert.equal(response.headers.get('x-ignored-fields'), 'temprature');
    await assert.rejects(client.chat.completions.create({...ask, messages: [{role: 'user', content: 'word '.repeat(9000)}]}),
        (e) => e instanceof OpenAI.BadRequestError && e.code === 'context_length_exceeded' && e.error.n_ctx === 4096);
    await assert.rejects(client.chat.completions.create({...ask, temperature: 'hot'}), OpenAI.BadRequestError);
    await assert.rejects(client.chat.completions.create({...ask, messages: []}), OpenAI.BadRequestError);
    await assert.rejects(client.chat.completions.create({...ask, response_format: {type: 'json_schema', json_schema: {name: 'x', schema: {type: 'no'}}}}),
        OpenAI.BadRequestError);
    await assert.rejects(client.post('/nothing'), OpenAI.NotFoundError);
});

test('a stream that is aborted', async () => {
    await checkCut(async () => {
        const stream = await client.chat.completions.create({...ask, max_tokens: 3500, stream: true, ignore_eos: true});
        let n = 0;
        for await (const chunk of stream) {
            assert.ok(chunk.choices);
            if (++n === 3) stream.controller.abort();
        }
        assert.ok(n >= 3);
    });
});

test('too many at once', async () => {
    await crowd(() => client.chat.completions.create({...ask, max_tokens: 300, ignore_eos: true}), (e) => {
        assert.ok(e instanceof OpenAI.RateLimitError, String(e));
        assert.ok(Number(e.headers.get('retry-after')) > 0);
    });
});
