// An answer as it arrives: chunks of a stream are added up into what a message keeps.
//
// A token is kept as [text, logprob, [[text, logprob]..]]: the chosen one, and what else was likely.

const SHORT = 0.02; // seconds; a shorter time measures how the network delivers

export class Answer {
    /** now(): milliseconds; measures what the server does not report. */
    constructor(now = () => performance.now()) {
        this.now = now;
        this.began = now();
        this.first = null; // when the first text arrived
        this.thoughtUntil = null;
        this.last = this.began;
        this.content = '';
        this.reasoning = '';
        this.calls = []; // of tools: {name, arguments}
        this.tokens = [];
        this.pieces = 0; // chunks with text, about the number of tokens
        this.finish = '';
        this.usage = null;
        this.timings = null;
    }

    /** Adds a chunk. */
    add(chunk) {
        const choice = chunk.choices?.[0];
        this.usage = chunk.usage ?? this.usage;
        this.timings = chunk.timings ?? this.timings;
        if (!choice) {
            return;
        }
        const delta = choice.delta ?? {};
        this.finish = choice.finish_reason ?? this.finish;
        const content = text(delta.content),
            reasoning = text(delta.reasoning_content);
        if (content || reasoning || delta.tool_calls?.length) {
            this.last = this.now();
            this.first ??= this.last;
            this.pieces++;
        }
        if (content && this.reasoning) {
            this.thoughtUntil ??= this.last;
        }
        this.content += content;
        this.reasoning += reasoning;
        for (const call of delta.tool_calls ?? []) {
            this.call(call);
        }
        for (const token of choice.logprobs?.content ?? []) {
            this.tokens.push([...pair(token), (token.top_logprobs ?? []).map(pair)]);
        }
    }

    call(part) {
        const call = (this.calls[part.index ?? 0] ??= { name: '', arguments: '' });
        call.name += text(part.function?.name);
        call.arguments += text(part.function?.arguments);
    }

    /** Speed and sizes, as numbers: server's where it reports them, else measured here. */
    stats() {
        const { timings, usage } = this,
            seconds = (this.last - (this.first ?? this.last)) / 1000;
        const n = timings?.predicted_n ?? usage?.completion_tokens ?? this.pieces;
        const stats = {
            n,
            perSecond: timings?.predicted_per_second ?? (seconds > SHORT && n > 1 ? (n - 1) / seconds : null),
            first: this.first === null ? null : (this.first - this.began) / 1000,
            prompt: usage?.prompt_tokens ?? timings?.prompt_n ?? null,
            promptRead: timings?.prompt_n ?? null,
            promptPerSecond: timings?.prompt_per_second ?? null,
            total: usage?.total_tokens ?? null,
        };
        if (this.reasoning && this.first !== null) {
            stats.thought = ((this.thoughtUntil ?? this.last) - this.first) / 1000;
        }
        return stats;
    }
}

function text(value) {
    return typeof value === 'string' ? value : '';
}

function pair(token) {
    return [shown(token), Number.isFinite(token.logprob) ? token.logprob : -9999]; // as OpenAI's API writes "never"
}

/** A token's text; bytes that are no whole character are shown as hexadecimal numbers. */
function shown(token) {
    const s = text(token.token);
    if (!s.includes('\ufffd') || !Array.isArray(token.bytes)) {
        return s;
    }
    return token.bytes.map((b) => '<' + b.toString(16).toUpperCase().padStart(2, '0') + '>').join('');
}

/** One line for people: "38.2 tokens/s · first token after 0.24 s · 312 tokens". */
export function speedText(stats) {
    const parts = [];
    if (stats.perSecond > 0) {
        parts.push(number(stats.perSecond) + ' tokens/s');
    }
    if (stats.first !== null && stats.first !== undefined) {
        parts.push('first token after ' + seconds(stats.first));
    }
    if (stats.n) {
        parts.push(stats.n.toLocaleString('en') + (stats.n === 1 ? ' token' : ' tokens'));
    }
    return parts.join(' · ');
}

/** The rest, for the tooltip. */
export function promptText(stats) {
    if (!stats.prompt) {
        return '';
    }
    const read =
        stats.promptRead !== null && stats.promptRead < stats.prompt
            ? `, of which ${stats.promptRead.toLocaleString('en')} had to be read`
            : '';
    const speed = stats.promptPerSecond > 0 ? `, at ${number(stats.promptPerSecond)} tokens/s` : '';
    return `Prompt: ${stats.prompt.toLocaleString('en')} tokens${read}${speed}`;
}

export function seconds(s) {
    return s < 10 ? s.toFixed(2) + ' s' : s < 120 ? s.toFixed(0) + ' s' : (s / 60).toFixed(1) + ' min';
}

function number(x) {
    return x >= 100 ? x.toFixed(0) : x.toFixed(1);
}
