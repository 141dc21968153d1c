// A run: one answer that is being written, from the request to its last token.

import { Answer } from './answer.js';
import { requestFields } from './fields.js';
import { changeMessage, requestMessages } from './tree.js';

export class Run {
    /** message: the empty answer in the conversation `talk`, which the run fills; grown(): text has arrived. */
    constructor(api, talk, message, model, grown) {
        Object.assign(this, { api, talk, message, model, grown });
        this.abort = new AbortController();
    }

    stop() {
        this.abort.abort();
    }

    /** Runs to the end. What goes wrong is kept in the message; returns the error, or null. */
    async finish() {
        const answer = new Answer();
        let failure = null;
        try {
            for await (const chunk of this.api.chat(this.request(), this.abort.signal)) {
                answer.add(chunk);
                this.take(answer);
                this.grown();
            }
            answer.finish ||= 'stop';
        } catch (error) {
            if (error.name === 'AbortError') {
                answer.finish = 'stopped';
            } else {
                failure = error;
            }
        }
        changeMessage(this.message, { finish: answer.finish, stats: answer.stats(), error: failure?.message ?? '' });
        return failure;
    }

    request() {
        const body = {
            messages: requestMessages(this.talk, this.message.parent),
            ...requestFields(this.talk.settings.v),
        };
        return this.model ? { model: this.model, ...body } : body;
    }

    /** Every chunk is a change, so that no older copy of the message is taken for as new as this one. */
    take(answer) {
        const fields = { content: answer.content, stats: answer.stats() };
        if (answer.reasoning) {
            fields.reasoning = answer.reasoning;
        }
        if (answer.tokens.length) {
            fields.tokens = answer.tokens;
        }
        if (answer.calls.length) {
            fields.calls = answer.calls.filter(Boolean);
        }
        changeMessage(this.message, fields);
    }
}
