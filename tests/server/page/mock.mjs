// A server with llm-server's public API as far as the page uses it, whose answers are determined by the last message:
//
//   "say TEXT"   streams TEXT         "sample"    streams a text with all of Markdown that the page knows
//   "think"      thoughts, then text  "endless"   streams until the client goes
//   "long N"     N lines of code      "refuse"    HTTP 400      "break"  an error event after some tokens
//   "cut"        closes the connection in the middle            "call"   calls a tool
//   a name of options.texts: streams that text
//
// Models of options.hears write down sounds: /v1/audio/transcriptions gives `heard` of the options, or waits for ever if there is none. It refuses sounds
// that are not WAV.
// Anything else is answered with the number of messages and the message. Tokens are pieces of four characters; their
// probabilities follow from their position.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';

const TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.txt': 'text/plain; charset=utf-8',
    '.woff2': 'font/woff2',
};
/** The policy that llm-server sends with the page: PAGE_POLICY of page.h, whose strings are joined. */
const HEADER = readFileSync(new URL('../../../tools/llm-server/page.h', import.meta.url), 'utf8');
const POLICY = HEADER.match(/PAGE_POLICY((?:[\s\\]+"[^"]*")+)/)[1]
    .match(/(?<=")[^"\n]+(?=")/g)
    .filter((s) => s.trim().match(/\w/))
    .join('');

/** Starts the server; folder: of the page, as the build made it; sample: the text for "sample". Returns {url, requests, closed, options, close()}. */
export async function startMock(folder, sample = '', options = {}) {
    const mock = { requests: [], closed: 0, options: { key: '', delay: 2, ...options } };
    const server = createServer((request, response) => {
        serve(mock, folder, sample, request, response).catch((error) => response.destroy(error));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    mock.url = `http://127.0.0.1:${server.address().port}/`;
    mock.close = () => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(resolve));
    };
    return mock;
}

async function serve(mock, folder, sample, request, response) {
    const path = new URL(request.url, 'http://x').pathname;
    const isApi = path === '/props' || path.startsWith('/v1/');
    if (!isApi) {
        return file(folder, path, response);
    }
    if (mock.options.key && request.headers.authorization !== 'Bearer ' + mock.options.key) {
        return json(response, 401, {
            error: { message: 'This server needs an API key.', type: 'authentication_error', code: 401 },
        });
    }
    if (path === '/props') {
        mock.props = new URL(request.url, 'http://x').searchParams.get('model');
        return json(response, 200, {
            model_path: 'models/mock.gguf',
            model_alias: 'mock-model',
            modalities: { vision: false, audio: Boolean(mock.options.listens) },
            default_generation_settings: {
                n_ctx: mock.props === 'large' ? 8192 : 4096,
                params: { temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.05, n_predict: -1, seed: 4294967295 },
            },
        });
    }
    if (path === '/v1/models') {
        return json(response, 200, {
            object: 'list',
            data: (mock.options.models ?? ['mock-model']).map((id) => ({
                id,
                object: 'model',
                ...(mock.options.sees?.includes(id) ? { capabilities: ['completion', 'multimodal'] } : {}),
                status: { value: mock.options.unloaded?.includes(id) ? 'unloaded' : 'loaded' },
                ...(mock.options.hears?.includes(id) ? { architecture: { input_modalities: ['audio'] } } : {}),
            })),
        });
    }
    const parts = [];
    for await (const part of request) {
        parts.push(part);
    }
    if (path === '/v1/audio/transcriptions') {
        return hear(mock, Buffer.concat(parts), response);
    }
    const body = JSON.parse(Buffer.concat(parts).toString());
    mock.requests.push(body);
    return chat(mock, body, sample, request, response);
}

function hear(mock, body, response) {
    const field = (name) => {
        const at = body.indexOf(`name="${name}"`),
            begin = body.indexOf('\r\n\r\n', at) + 4;
        return at < 0 ? null : body.subarray(begin, body.indexOf('\r\n--', begin));
    };
    const sound = field('file');
    mock.requests.push({ sound, model: field('model')?.toString(), format: field('response_format')?.toString() });
    if (sound.subarray(0, 4).toString() !== 'RIFF') {
        return json(response, 400, { error: { message: 'file: is no sound', code: 'unsupported', param: 'file' } });
    }
    response.on('close', () => (mock.closed += response.writableFinished ? 0 : 1));
    return mock.options.heard ? json(response, 200, mock.options.heard) : undefined;
}

function file(folder, path, response) {
    const name = path === '/' ? 'index.html' : path.slice(1);
    let data;
    try {
        data = /^[\w.-]+$/.test(name) && TYPES[extname(name)] ? readFileSync(join(folder, name)) : null;
    } catch {
        data = null;
    }
    if (data === null) {
        response.writeHead(404).end();
        return;
    }
    response.writeHead(200, {
        'Content-Type': TYPES[extname(name)],
        'Content-Security-Policy': POLICY,
        'X-Content-Type-Options': 'nosniff',
    });
    response.end(data);
}

function json(response, status, value) {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(value));
}

async function chat(mock, body, sample, request, response) {
    const content = body.messages.at(-1).content,
        said = Array.isArray(content) ? content.map((part) => part.text ?? (part.type === 'input_audio' ? 'sound' : 'picture')).join(' ') : content,
        [word, ...more] = said.split(' '),
        rest = more.join(' ');
    if (word === 'refuse') {
        return json(response, 400, {
            error: { message: 'The server refuses this <b>request</b>.', type: 'invalid_request_error', code: 400 },
        });
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    let gone = false;
    response.on('close', () => {
        gone = true;
        mock.closed += response.writableFinished ? 0 : 1;
    });
    const stream = { mock, body, response, isGone: () => gone, n: 0 };
    if (word === 'think') {
        await write(stream, 'First I *consider* it.', 'reasoning_content');
        await write(stream, 'Then I answer.');
    } else if (word === 'endless') {
        for (let k = 0; !gone && k < 100000; k++) {
            await write(stream, `line ${k}  \n`);
        }
    } else if (word === 'break' || word === 'cut') {
        await write(stream, 'A good beginning');
        event(
            stream,
            word === 'cut' ? null : { error: { message: 'The model broke.', type: 'server_error', code: 500 } },
        );
        await new Promise((resolve) => setTimeout(resolve, 200)); // a broken connection loses what has not been read
        return word === 'cut' ? response.destroy() : response.end();
    } else if (word === 'call') {
        event(stream, {
            choices: [
                { index: 0, delta: { tool_calls: [{ index: 0, function: { name: 'clock', arguments: '{"zone":' } }] } },
            ],
        });
        event(stream, {
            choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '"UTC"}' } }] } }],
        });
    } else {
        const texts = { ...mock.options.texts, say: rest, sample, long: word === 'long' ? longCode(Number(rest)) : '' };
        await write(stream, texts[word] ?? `${body.messages.length}: ${said}`, 'content', word === 'long' ? 4096 : 4);
    }
    return finish(stream, body, said);
}

function finish({ response, n, isGone }, body, said) {
    if (isGone()) {
        return;
    }
    const prompt = body.messages.reduce((sum, m) => sum + Math.ceil(m.content.length / 4), 0);
    event(
        { response },
        {
            choices: [
                {
                    index: 0,
                    delta: {},
                    finish_reason: said === 'call' ? 'tool_calls' : body.max_tokens ? 'length' : 'stop',
                },
            ],
        },
    );
    event(
        { response },
        {
            choices: [],
            usage: { prompt_tokens: prompt, completion_tokens: n, total_tokens: prompt + n },
            timings: { prompt_n: prompt, prompt_per_second: 1234.5, predicted_n: n, predicted_per_second: 87.6 },
        },
    );
    response.end('data: [DONE]\n\n');
}

function event({ response }, value) {
    if (value) {
        response.write(`data: ${JSON.stringify(value)}\n\n`);
    }
}

/** Streams text in pieces of `size` characters. */
async function write(stream, text, field = 'content', size = 4) {
    const characters = [...text];
    for (let i = 0; i < characters.length && !stream.isGone(); i += size) {
        const piece = characters.slice(i, i + size).join('');
        const choice = { index: 0, delta: { [field]: piece } };
        if (stream.body.logprobs && field === 'content') {
            choice.logprobs = { content: [logprobs(piece, stream.n, stream.body.top_logprobs)] };
        }
        event(stream, { choices: [choice] });
        stream.n++;
        await new Promise((resolve) => setTimeout(resolve, stream.mock.options.delay));
    }
}

function logprobs(piece, n, top) {
    const p = [0.97, 0.62, 0.31, 0.88, 0.12][n % 5],
        others = [' the', ' a', '\n', ' of', '?', ' to'].slice(0, Math.max(0, top - 1));
    const entry = (token, q) => ({ token, logprob: Math.log(q), bytes: [...Buffer.from(token)] });
    return {
        ...entry(piece, p),
        top_logprobs: top ? [entry(piece, p), ...others.map((t, k) => entry(t, (1 - p) / 2 ** (k + 1)))] : [],
    };
}

function longCode(lines) {
    const body = Array.from({ length: lines }, (_, k) => `    int x${k} = ${k}; // line ${k} of a very long answer`);
    return ['Here it is:', '', '```c', ...body, '```', '', 'That was **all**.'].join('\n');
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
    // node mock.mjs FOLDER [SAMPLE]: for looking at the page
    const mock = await startMock(process.argv[2], process.argv[3] ? readFileSync(process.argv[3], 'utf8') : '', {
        delay: 10,
    });
    console.log(mock.url);
}
