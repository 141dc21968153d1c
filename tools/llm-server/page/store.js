// The history of conversations: saves without destroying what another tab has saved, tells other tabs, searches, exports
// and imports.
//
// Events (of EventTarget): 'list', the list changed; 'talk' with .detail = id, another tab changed that conversation.

import { checkConversation, mergeShown, titleOf, updatedOf } from './tree.js';

const FORMAT = 'llm-server conversations';

export class Store extends EventTarget {
    /** backend: of db.js; channel: a BroadcastChannel or the like, or null. */
    constructor(backend, channel) {
        super();
        this.backend = backend;
        this.channel = channel;
        this.stored = new Set(); // ids that this tab has seen in the backend
        if (channel) {
            channel.onmessage = ({ data }) => this.announce(data.id);
        }
    }

    /** The entries {id, title, updated}, latest first. */
    async list() {
        const entries = await this.backend.list();
        entries.forEach((e) => this.stored.add(e.id));
        return entries.sort((a, b) => b.updated - a.updated || (a.id < b.id ? -1 : 1));
    }

    /** A conversation, or undefined if there is none (any more). */
    async load(id) {
        const talk = await this.backend.get(id);
        if (talk) {
            this.stored.add(id);
        }
        return talk;
    }

    /** Merges the conversation with what is stored, and stores it. Returns false if another tab has deleted it. */
    async save(talk) {
        const entry = await this.backend.update(talk.id, (stored) => {
            if (!stored && this.stored.has(talk.id)) {
                return null;
            }
            if (stored) {
                mergeShown(talk, stored);
            }
            return { talk, title: titleOf(talk), updated: updatedOf(talk) };
        });
        if (!entry) {
            return false;
        }
        this.stored.add(talk.id);
        this.tell(talk.id);
        return true;
    }

    /** Deletes a conversation; returns it for restore(). */
    async remove(id) {
        const talk = await this.backend.get(id);
        await this.backend.remove(id);
        this.tell(id);
        return talk;
    }

    /** Stores a conversation whether or not it was deleted. */
    restore(talk) {
        this.stored.delete(talk.id);
        return this.save(talk);
    }

    /** The ids of conversations that contain all words of `query`, whatever their case. */
    async search(query) {
        const words = query.toLowerCase().split(/\s+/).filter(Boolean),
            found = new Set();
        await this.backend.each((talk) => {
            const texts = Object.values(talk.messages).map((m) => m.content ?? '');
            const text = [titleOf(talk), ...texts].join('\n').toLowerCase();
            if (words.every((w) => text.includes(w))) {
                found.add(talk.id);
            }
        });
        return found;
    }

    /** The file, as text, with the conversations of these ids, or with all. */
    async export(ids = null) {
        const conversations = [];
        await this.backend.each((talk) => {
            if (!ids || ids.includes(talk.id)) {
                conversations.push(talk);
            }
        });
        return JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 1);
    }

    /** Merges the conversations of a file; all are checked before any is stored. Returns how many there were. */
    async import(text) {
        let file;
        try {
            file = JSON.parse(text);
        } catch (error) {
            throw new Error(`The file is not JSON: ${error.message}.`);
        }
        if (file?.format !== FORMAT || !Array.isArray(file.conversations)) {
            throw new Error('The file was not exported by this page.');
        }
        const talks = file.conversations.map(checkConversation);
        for (const talk of talks) {
            await this.restore(talk);
        }
        return talks.length;
    }

    tell(id) {
        this.channel?.postMessage({ id });
        this.dispatchEvent(new Event('list'));
    }

    announce(id) {
        this.dispatchEvent(new Event('list'));
        this.dispatchEvent(new CustomEvent('talk', { detail: id }));
    }
}
