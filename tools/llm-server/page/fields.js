// The settings of a conversation: what the server is asked for besides the messages. A setting that is absent is not
// sent, so that the server's own default holds.

/** Numbers: {name: of the API, label, min, max, step, whole, help, prop: its name in /props}. */
export const NUMBERS = [
    { name: 'temperature', label: 'Temperature', min: 0, max: 10, step: 0.05, help: '0: always the most likely token' },
    {
        name: 'top_p',
        label: 'Top P',
        min: 0,
        max: 1,
        step: 0.01,
        help: 'from the likeliest tokens that together have this probability',
    },
    {
        name: 'top_k',
        label: 'Top K',
        min: 0,
        max: 1000000,
        step: 1,
        whole: true,
        help: 'from this many likeliest tokens; 0: from all',
    },
    {
        name: 'min_p',
        label: 'Min P',
        min: 0,
        max: 1,
        step: 0.01,
        help: 'none below this share of the likeliest one’s probability',
    },
    { name: 'repeat_penalty', label: 'Repeat penalty', min: 0.01, max: 10, step: 0.05, help: '1: none' },
    {
        name: 'presence_penalty',
        label: 'Presence penalty',
        min: -2,
        max: 2,
        step: 0.1,
        help: 'once for a token that has occurred',
    },
    {
        name: 'frequency_penalty',
        label: 'Frequency penalty',
        min: -2,
        max: 2,
        step: 0.1,
        help: 'each time that a token has occurred',
    },
    {
        name: 'max_tokens',
        label: 'Max tokens',
        min: 1,
        max: 10000000,
        step: 1,
        whole: true,
        prop: 'n_predict',
        help: 'the answer ends there',
    },
    {
        name: 'seed',
        label: 'Seed',
        min: 0,
        max: 4294967295,
        step: 1,
        whole: true,
        help: 'the same seed, the same answer',
    },
];
export const MAX_TOP = 20; // alternatives to a token that the API gives

/** {value} of what was typed into a number's field (null: nothing), or {error}. */
export function readNumber(field, typed) {
    const s = typed.trim().replace(',', '.');
    if (s === '') {
        return { value: null };
    }
    const value = Number(s);
    if (!Number.isFinite(value) || (field.whole && !Number.isInteger(value))) {
        return { error: `${field.label} has to be a ${field.whole ? 'whole ' : ''}number.` };
    }
    if (value < field.min || value > field.max) {
        return { error: `${field.label} has to be from ${field.min} to ${field.max}.` };
    }
    return { value };
}

/** The known and valid settings of an object that may come from anywhere. */
export function cleanSettings(value) {
    const from = value && typeof value === 'object' ? value : {},
        out = {};
    if (typeof from.system === 'string' && from.system) {
        out.system = from.system;
    }
    for (const field of NUMBERS) {
        if (typeof from[field.name] === 'number' && readNumber(field, String(from[field.name])).error === undefined) {
            out[field.name] = from[field.name];
        }
    }
    if (typeof from.reasons === 'boolean') {
        out.reasons = from.reasons;
    }
    if (Array.isArray(from.stop)) {
        out.stop = from.stop.filter((s) => typeof s === 'string' && s).slice(0, 16);
    }
    if (Number.isInteger(from.top_logprobs) && from.top_logprobs >= 0 && from.top_logprobs <= MAX_TOP) {
        out.top_logprobs = from.top_logprobs;
    }
    return out;
}

/** The fields of a request that the settings ask for. */
export function requestFields(settings) {
    const { system, stop, top_logprobs, reasons, ...numbers } = cleanSettings(settings);
    const fields = { ...numbers, stream: true, stream_options: { include_usage: true } };
    if (reasons !== undefined) {
        fields.enable_thinking = reasons;
        if (!reasons) {
            fields.reasoning_budget_tokens = 0;
        }
    }
    if (stop?.length) {
        fields.stop = stop;
    }
    if (top_logprobs !== undefined) {
        fields.logprobs = true;
        fields.top_logprobs = top_logprobs;
    }
    return fields;
}

/** The server's default of a number according to its /props, as text; '' if it does not say. */
export function serverDefault(field, props) {
    const defaults = props?.default_generation_settings,
        params = defaults?.params ?? defaults ?? {};
    const value = params[field.prop ?? field.name] ?? params[field.name];
    if (typeof value !== 'number' || (value < field.min && field.name !== 'min_p')) {
        return '';
    }
    return field.name === 'seed' && value === 4294967295 ? '' : String(Math.round(value * 10000) / 10000);
}

/** The context's size in tokens according to /props, or null. */
export function contextSize(props) {
    const n = props?.default_generation_settings?.n_ctx ?? props?.n_ctx;
    return Number.isInteger(n) && n > 0 ? n : null;
}
