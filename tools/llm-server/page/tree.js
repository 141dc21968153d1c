// A conversation: a tree of messages, in which every edit and every further answer is a branch, and a path is shown.
//
// {version, id, created, title: {v, at}, settings: {v, at}, picks: {parent: {v: child, at}}, messages: {id: message}}.
// A message: {id, parent, role, content, created, at}, of a question perhaps pictures (data URIs) and sounds ({name, url}), and, of an answer, what answer.js reports. `at` grows with every
// change, so that two copies of a conversation, changed in two tabs or restored from a file, merge without loss:
// of each part the later one stays. A deleted message is a mark {id, parent, created, at, gone: true}.

import { cleanSettings } from './fields.js';
import { isPicture } from './pictures.js';
import { isSound, soundPart } from './sounds.js';

export const ROOT = 'root';
const ROLES = ['user', 'assistant'];

let lastAt = 0;

/** A moment that is later than all before it in this tab. */
export function tick(after = 0) {
    lastAt = Math.max(Date.now(), lastAt + 1, after + 1);
    return lastAt;
}

/** A name that no other message or conversation has. */
export function newId() {
    const random = crypto.getRandomValues(new Uint32Array(2));
    return Date.now().toString(36) + '-' + random[0].toString(36) + random[1].toString(36);
}

/** A new conversation, with settings {system, ..}. */
export function newConversation(settings) {
    const at = tick();
    return {
        version: 1,
        id: newId(),
        created: at,
        title: { v: '', at },
        settings: { v: { ...settings }, at },
        picks: {},
        messages: {},
    };
}

/** Adds a message below parent, shows its branch, and returns it. */
export function addMessage(talk, parent, role, content, more = {}) {
    const at = tick();
    const message = { id: newId(), parent, role, content, created: at, at, ...more };
    talk.messages[message.id] = message;
    talk.picks[parent] = { v: message.id, at };
    return message;
}

/** Sets fields of a message. */
export function changeMessage(message, fields) {
    Object.assign(message, fields);
    message.at = tick(message.at);
}

/** Sets the title or the settings. */
export function setField(talk, name, value) {
    talk[name] = { v: value, at: tick(talk[name].at) };
}

/** The messages under each parent, by age; deleted ones are left out. */
export function childrenOf(talk) {
    const children = new Map();
    for (const m of Object.values(talk.messages)) {
        if (!m.gone) {
            children.has(m.parent) ? children.get(m.parent).push(m) : children.set(m.parent, [m]);
        }
    }
    for (const list of children.values()) {
        list.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
    }
    return children;
}

/** The path that is shown: [{message, siblings, index}], from the first message on. */
export function path(talk) {
    const children = childrenOf(talk),
        shown = [];
    for (let at = ROOT; children.has(at);) {
        const siblings = children.get(at),
            picked = siblings.findIndex((m) => m.id === talk.picks[at]?.v);
        const index = picked < 0 ? siblings.length - 1 : picked;
        shown.push({ message: siblings[index], siblings, index });
        at = siblings[index].id;
    }
    return shown;
}

/** Shows the sibling `step` places further; returns it, or null if there is none. */
export function stepBranch(talk, id, step) {
    const siblings = childrenOf(talk).get(talk.messages[id].parent);
    const to = siblings[siblings.findIndex((m) => m.id === id) + step];
    if (!to) {
        return null;
    }
    pick(talk, to);
    return to;
}

function pick(talk, message) {
    talk.picks[message.parent] = { v: message.id, at: tick(talk.picks[message.parent]?.at) };
}

/** Deletes a message and all below it; returns the deleted ones, for restoreMessages(). */
export function deleteMessage(talk, id) {
    const children = childrenOf(talk),
        gone = [],
        todo = [talk.messages[id]];
    while (todo.length) {
        const m = todo.pop();
        gone.push(m);
        todo.push(...(children.get(m.id) ?? []));
    }
    for (const m of gone) {
        talk.messages[m.id] = { id: m.id, parent: m.parent, created: m.created, at: tick(m.at), gone: true };
    }
    return gone;
}

/** Undoes deleteMessage(). */
export function restoreMessages(talk, messages) {
    for (const m of messages) {
        talk.messages[m.id] = { ...m, at: tick(talk.messages[m.id]?.at) };
    }
    pick(talk, messages[0]);
}

/** The title, or the beginning of the first message. */
export function titleOf(talk) {
    if (talk.title.v) {
        return talk.title.v;
    }
    const first = path(talk)[0]?.message,
        line = (first?.content ?? '').trim().split('\n', 1)[0];
    const untitled = first?.pictures ? 'Picture' : first?.sounds ? 'Sound' : 'New conversation';
    return line.length > 60 ? line.slice(0, 59).trimEnd() + '…' : line || untitled;
}

/** When the conversation was last changed, in milliseconds. */
export function updatedOf(talk) {
    return Object.values(talk.messages).reduce((max, m) => Math.max(max, m.at), talk.created);
}

/** What the API gets: the system prompt and the path up to the message `until`. */
export function requestMessages(talk, until) {
    const list = talk.settings.v.system ? [{ role: 'system', content: talk.settings.v.system }] : [];
    const chain = [];
    for (let m = talk.messages[until]; m; m = talk.messages[m.parent]) {
        chain.push({ role: m.role, content: contentOf(m) });
    }
    return list.concat(chain.reverse());
}

/** What a message has beside its text: {pictures, sounds}, without those that it has none of. */
export function attachedTo(m) {
    return Object.fromEntries(['pictures', 'sounds'].filter((name) => m[name]?.length).map((name) => [name, m[name]]));
}

/** A message's content in OpenAI's form: its pictures and sounds come before the text. */
function contentOf(m) {
    const { pictures = [], sounds = [] } = attachedTo(m);
    const parts = [...pictures.map((url) => ({ type: 'image_url', image_url: { url } })), ...sounds.map(soundPart)];
    if (!parts.length) {
        return m.content;
    }
    return m.content ? [...parts, { type: 'text', text: m.content }] : parts;
}

/** Merges b into a: of each part the later one stays. Order and repetition do not matter. */
export function merge(a, b) {
    for (const name of ['title', 'settings']) {
        a[name] = later(a[name], b[name]);
    }
    a.created = Math.min(a.created, b.created);
    for (const [id, pick] of Object.entries(b.picks)) {
        a.picks[id] = later(a.picks[id], pick);
    }
    for (const [id, message] of Object.entries(b.messages)) {
        a.messages[id] = later(a.messages[id], message);
    }
    return a;
}

/** Merges b into a, which is shown: the branches that are shown stay, as long as they exist. */
export function mergeShown(a, b) {
    const shown = { ...a.picks };
    merge(a, b);
    for (const [parent, pick] of Object.entries(shown)) {
        if (a.messages[pick.v] && !a.messages[pick.v].gone) {
            a.picks[parent] = pick;
        }
    }
    return a;
}

function later(a, b) {
    if (!a || a.at !== b.at) {
        return !a || b.at > a.at ? b : a;
    }
    return JSON.stringify(b) > JSON.stringify(a) ? b : a; // any rule will do that both copies follow
}

/** Checks a conversation from a file. Returns a copy of what is known, or throws an error that says what is wrong. */
export function checkConversation(value) {
    const talk = value && typeof value === 'object' ? value : {};
    demand(talk.version === 1, 'a conversation has no "version": 1');
    demand(isId(talk.id), 'a conversation has no valid "id"');
    demand(
        isField(talk.title, 'string') && isField(talk.settings, 'object'),
        `conversation ${talk.id}: "title" or "settings" is missing`,
    );
    const messages = Object.create(null),
        picks = Object.create(null);
    for (const m of Object.values(talk.messages ?? {})) {
        const checked = checkMessage(m, talk.id);
        messages[checked.id] = checked;
    }
    checkParents(messages, talk.id);
    for (const [id, pick] of Object.entries(talk.picks ?? {})) {
        demand(isId(id) && isField(pick, 'string'), `conversation ${talk.id}: a pick is malformed`);
        picks[id] = { v: pick.v, at: pick.at };
    }
    return {
        version: 1,
        id: talk.id,
        created: Number.isFinite(talk.created) ? talk.created : Date.now(),
        title: { v: talk.title.v, at: talk.title.at },
        settings: { v: cleanSettings(talk.settings.v), at: talk.settings.at },
        picks: { ...picks },
        messages: { ...messages },
    };
}

function checkMessage(m, talk) {
    const where = `conversation ${talk}: a message`;
    demand(m && typeof m === 'object' && isId(m.id) && isId(m.parent), `${where} has no valid "id" or "parent"`);
    demand(Number.isFinite(m.at) && Number.isFinite(m.created), `${where} has no time`);
    if (m.gone === true) {
        return { id: m.id, parent: m.parent, created: m.created, at: m.at, gone: true };
    }
    demand(ROLES.includes(m.role) && typeof m.content === 'string', `${where} has no valid "role" or "content"`);
    const copy = { id: m.id, parent: m.parent, role: m.role, content: m.content, created: m.created, at: m.at };
    for (const name of ['reasoning', 'model', 'finish', 'error']) {
        if (typeof m[name] === 'string') {
            copy[name] = m[name];
        }
    }
    if (Array.isArray(m.pictures) && m.role === 'user' && m.pictures.every(isPicture)) {
        copy.pictures = m.pictures;
    }
    if (Array.isArray(m.sounds) && m.role === 'user' && m.sounds.every(isSound)) {
        copy.sounds = m.sounds.map(({ name, url }) => ({ name, url }));
    }
    if (m.stats && typeof m.stats === 'object') {
        copy.stats = Object.fromEntries(Object.entries(m.stats).filter(([, v]) => v === null || Number.isFinite(v)));
    }
    if (Array.isArray(m.tokens) && m.tokens.every(isToken)) {
        copy.tokens = m.tokens;
    }
    if (Array.isArray(m.calls)) {
        copy.calls = m.calls.map((c) => ({ name: String(c?.name ?? ''), arguments: String(c?.arguments ?? '') }));
    }
    return copy;
}

/** Every message must lead to the root: no circles, no missing parents. */
function checkParents(messages, talk) {
    const good = new Set([ROOT]);
    for (const m of Object.values(messages)) {
        const seen = new Set();
        for (let at = m.id; !good.has(at); at = messages[at].parent) {
            demand(messages[at] && !seen.has(at), `conversation ${talk}: message ${at} is missing or its own parent`);
            seen.add(at);
        }
        seen.forEach((id) => good.add(id));
    }
}

function isToken(t) {
    return (
        Array.isArray(t) &&
        typeof t[0] === 'string' &&
        Number.isFinite(t[1]) &&
        Array.isArray(t[2]) &&
        t[2].every((u) => Array.isArray(u) && typeof u[0] === 'string' && Number.isFinite(u[1]))
    );
}

function isField(field, type) {
    return (
        field !== null &&
        typeof field === 'object' &&
        typeof field.v === type &&
        field.v !== null &&
        Number.isFinite(field.at)
    );
}

function isId(id) {
    return typeof id === 'string' && /^[\w-]{1,64}$/.test(id) && id !== '__proto__';
}

function demand(condition, message) {
    if (!condition) {
        throw new Error(message);
    }
}
