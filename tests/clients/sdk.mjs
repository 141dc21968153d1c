// The tasks of clients.py for libraries of npm: sdk.mjs CLIENT URL PLAIN AFTER AGAIN, as sdk.py.
const [client, url, PLAIN, AFTER, AGAIN] = process.argv.slice(2);
const apiKey = 'none';
const called = [];

function done(task, ok, seen) {
    if (!ok) {
        console.error(`${task}: ${JSON.stringify(seen)}`);
        process.exit(1);
    }
    console.log(task);
}

function weather({ city }) {
    called.push(city);
    return `21 degrees in ${city}`;
}

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const description = 'Tells the weather of a city.';

const tasks = {
    async openai() {
        const { default: OpenAI } = await import('openai');
        const openai = new OpenAI({ apiKey, baseURL: `${url}/v1` });
        const said = [];
        for await (const c of await openai.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: true }))
            said.push(c.choices[0]?.delta.content ?? '');
        done('stream', said.join('') === PLAIN && said.length > 3, said);
        const runner = openai.chat.completions.runTools({
            model: 'm', stream: true, messages: [{ role: 'user', content: 'What about Paris?' }],
            tools: [{ type: 'function', function: { name: 'get_weather', description, parameters, parse: JSON.parse, function: weather } }],
        });
        const answer = await runner.finalContent();
        done('tool', answer === AFTER && called.join() === 'Paris', answer);
        const tools = [{ type: 'function', name: 'get_weather', description, parameters, strict: false }];
        const first = await openai.responses.create({ model: 'm', input: 'What about Paris?', tools });
        const call = first.output.find((x) => x.type === 'function_call');
        const second = await openai.responses.create({
            model: 'm', tools, previous_response_id: first.id, input: [{ type: 'function_call_output', call_id: call.call_id, output: '21' }],
        });
        const third = await openai.responses.create({ model: 'm', tools, previous_response_id: second.id, input: 'More?' });
        done('second turn', second.output_text === AFTER && third.output_text === AGAIN, [second.output_text, third.output_text]);
    },
    async anthropic() {
        const { default: Anthropic } = await import('@anthropic-ai/sdk');
        const { betaTool } = await import('@anthropic-ai/sdk/helpers/beta/json-schema');
        const anthropic = new Anthropic({ apiKey, baseURL: url });
        const said = [];
        const stream = anthropic.messages.stream({ model: 'm', max_tokens: 200, messages: [{ role: 'user', content: 'Hi' }] });
        stream.on('text', (x) => said.push(x));
        await stream.finalMessage();
        done('stream', said.join('') === PLAIN && said.length > 3, said);
        const messages = [{ role: 'user', content: 'What about Paris?' }];
        const runner = anthropic.beta.messages.toolRunner({
            model: 'm', max_tokens: 200, messages, tools: [betaTool({ name: 'get_weather', description, inputSchema: parameters, run: weather })],
        });
        const answer = (await runner.runUntilDone()).content.at(-1).text;
        done('tool', answer === AFTER && called.join() === 'Paris', answer);
        messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'More?' });
        const again = await anthropic.messages.create({
            model: 'm', max_tokens: 200, messages, tools: [{ name: 'get_weather', input_schema: parameters }],
        });
        done('second turn', again.content[0].text === AGAIN, again);
    },
    async ai() {
        const { streamText, generateText, tool, stepCountIs, jsonSchema } = await import('ai');
        const { createOpenAI } = await import('@ai-sdk/openai');
        const model = createOpenAI({ apiKey, baseURL: `${url}/v1` })('m'); // by /v1/responses, whose items it names later
        const said = [];
        for await (const x of streamText({ model, prompt: 'Hi' }).textStream)
            said.push(x);
        done('stream', said.join('') === PLAIN && said.length > 3, said);
        const tools = { get_weather: tool({ description, inputSchema: jsonSchema(parameters), execute: async (x) => weather(x) }) };
        const messages = [{ role: 'user', content: 'What about Paris?' }];
        const first = streamText({ model, messages, tools, stopWhen: stepCountIs(3) });
        const answer = (await first.text).trim();
        done('tool', answer === AFTER && called.join() === 'Paris', answer);
        messages.push(...(await first.response).messages, { role: 'user', content: 'More?' });
        const again = (await generateText({ model, messages, tools })).text;
        done('second turn', again === AGAIN, again);
    },
    async ollama() {
        const { Ollama } = await import('ollama');
        const ollama = new Ollama({ host: url });
        const said = [];
        for await (const c of await ollama.chat({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: true }))
            said.push(c.message.content);
        done('stream', said.join('') === PLAIN && said.length > 3, said);
        const tools = [{ type: 'function', function: { name: 'get_weather', description, parameters } }];
        const messages = [{ role: 'user', content: 'What about Paris?' }];
        for await (const c of await ollama.chat({ model: 'm', messages: [...messages], tools, stream: true }))
            for (const call of c.message.tool_calls ?? [])
                messages.push({ role: 'assistant', content: '', tool_calls: [call] },
                    { role: 'tool', tool_name: call.function.name, content: weather(call.function.arguments) });
        const answer = (await ollama.chat({ model: 'm', messages, tools })).message.content;
        done('tool', answer === AFTER && called.join() === 'Paris', answer);
        messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'More?' });
        const again = (await ollama.chat({ model: 'm', messages, tools })).message.content;
        done('second turn', again === AGAIN, again);
    },
};

await tasks[client]();
process.exit(0);
