// The server's public API, as this page uses it.

import { EventStream } from './sse.js';

/** What the server refused or could not do. status: of HTTP, 0 if there was no answer or it came within a stream. */
export class ApiError extends Error {
    constructor(message, status, type = '', code = '') {
        super(message);
        this.status = status;
        this.type = type;
        this.code = code;
    }
}

export class Api {
    /** base: the URL that paths are relative to; key(): the API key, or ''. */
    constructor(base, key) {
        this.base = base;
        this.key = key;
    }

    /** GET /props of a model, '' if there is only one; {} if the server has none. */
    async props(model) {
        try {
            return await this.get(model ? 'props?model=' + encodeURIComponent(model) : 'props');
        } catch (error) {
            if (error.status === 401) {
                throw error;
            }
            return {};
        }
    }

    /** The models: [{id, isLoaded, hears}]; one that hears writes down sounds, and no answers. */
    async models() {
        const answer = await this.get('v1/models');
        return (Array.isArray(answer?.data) ? answer.data : []).map((m) => ({
            id: String(m.id),
            isLoaded: (m.status?.value ?? 'loaded') === 'loaded',
            hears: String(m.architecture?.input_modalities) === 'audio',
        }));
    }

    async get(path) {
        const response = await this.fetch(path, {});
        return response.json();
    }

    /** POST /v1/chat/completions; yields the chunks of its stream. */
    async *chat(body, signal) {
        const response = await this.fetch('v1/chat/completions', {
            method: 'POST',
            signal,
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify(body),
        });
        const reader = response.body.getReader(),
            decoder = new TextDecoder(),
            stream = new EventStream();
        try {
            for (let part = {}; !part.done;) {
                part = await read(reader);
                const events = part.done ? stream.end() : stream.push(decoder.decode(part.value, { stream: true }));
                for (const data of events) {
                    if (data === '[DONE]') {
                        return;
                    }
                    yield chunk(data);
                }
            }
        } finally {
            reader.cancel().catch(() => {}); // the connection may be closed already
        }
        throw truncated();
    }

    /** POST /v1/audio/transcriptions: the answer in the form verbose_json. */
    async transcribe(sound, name, model, signal) {
        const body = new FormData();
        if (model) {
            body.append('model', model);
        }
        body.append('response_format', 'verbose_json');
        body.append('file', sound, name);
        const response = await this.fetch('v1/audio/transcriptions', { method: 'POST', signal, body });
        return response.json();
    }

    async fetch(path, options) {
        const headers = { ...options.headers };
        const key = this.key();
        if (key) {
            headers.Authorization = 'Bearer ' + key;
        }
        let response;
        try {
            response = await fetch(new URL(path, this.base), { ...options, headers });
        } catch (error) {
            if (error.name === 'AbortError') {
                throw error;
            }
            throw new ApiError('The server does not answer. Is it running?', 0, 'network');
        }
        if (!response.ok) {
            throw await refusal(response);
        }
        return response;
    }
}

/** Reads a part of a stream; a connection that breaks is an ApiError. */
async function read(reader) {
    try {
        return await reader.read();
    } catch (error) {
        throw error.name === 'AbortError' ? error : truncated();
    }
}

function truncated() {
    return new ApiError('The connection ended before the answer did.', 0, 'truncated');
}

function chunk(data) {
    let value;
    try {
        value = JSON.parse(data);
    } catch {
        throw new ApiError('The server sent an event that is not JSON.', 0, 'protocol');
    }
    if (value?.error) {
        throw new ApiError(messageOf(value.error), 0, value.error.type);
    }
    return value;
}

async function refusal(response) {
    let error = null;
    try {
        error = (await response.json()).error;
    } catch {
        // the status has to do
    }
    let message = error ? messageOf(error) : `The server answered ${response.status} ${response.statusText}.`;
    const wait = response.headers.get('Retry-After');
    if (response.status === 429 && wait) {
        message += ` Try again in ${wait} s.`;
    }
    return new ApiError(message, response.status, error?.type, error?.code);
}

function messageOf(error) {
    return String(typeof error === 'string' ? error : (error.message ?? 'The server reported an error.'));
}
