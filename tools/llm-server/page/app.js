// The page: starts everything, and connects the parts.

import { Api } from './api.js';
import { Memory, openDatabase } from './db.js';
import { $, announce, copyText, download, fillIcons, notice } from './dom.js';
import { cleanSettings, contextSize } from './fields.js';
import { Composer } from './composer.js';
import { listen } from './keys.js';
import { codeOf, flashDone } from './message.js';
import { Attachments } from './attachments.js';
import { Preferences } from './prefs.js';
import { Run } from './run.js';
import { SettingsPanel } from './settings.js';
import { Sidebar } from './sidebar.js';
import { Speech } from './speech.js';
import { Store } from './store.js';
import { askKey, askTitle, setUpFrame, setUpTheme } from './frame.js';
import { Thread } from './thread.js';
import * as tree from './tree.js';

const SAVE_EVERY = 1000; // milliseconds, while an answer is written

class App {
    constructor(store) {
        this.store = store;
        this.prefs = new Preferences();
        this.api = new Api(document.baseURI, () => this.prefs.get('key', ''));
        this.props = {};
        this.models = [];
        this.runs = new Map(); // id of a conversation -> its run
        this.thread = new Thread((name, message, view) => this.onMessage(name, message, view));
        this.sidebar = new Sidebar(store, (name, id) => this.onTalk(name, id));
        this.settings = new SettingsPanel((settings) => this.changeSettings(settings));
        this.attachments = new Attachments(() => this.composer?.typed());
        this.composer = new Composer(
            (text) => this.send(text),
            () => this.stop(),
            () => this.editLast(),
            this.attachments,
        );
        this.speech = new Speech(
            this.api,
            () => (this.models.length > 1 ? this.hearing().id : ''),
            (text) => this.heard(text),
        );
        this.frame = setUpFrame();
        setUpTheme(this.prefs);
    }

    async start() {
        this.listen();
        await this.sidebar.refresh();
        await this.route();
        this.composer.focus();
        await this.connect();
    }

    listen() {
        addEventListener('hashchange', () => this.route());
        addEventListener('pagehide', () => this.runs.forEach((run) => this.save(run.talk)));
        this.store.addEventListener('talk', (event) => this.changedElsewhere(event.detail));
        $('new').addEventListener('click', () => this.open(null));
        $('export').addEventListener('click', () => this.export(null));
        $('import').addEventListener('click', () => $('file').click());
        $('file').addEventListener('change', () => this.import());
        $('model').addEventListener('change', () => {
            this.prefs.set('model', $('model').value);
            this.connect();
        });
        $('make-default').addEventListener('click', () => this.makeDefault());
        $('reset').addEventListener('click', () => this.resetSettings());
        $('set-key').addEventListener('click', () =>
            this.enterKey('The key is kept in this browser and sent to this server only.'),
        );
        $('thread').addEventListener('click', (event) => this.copyCode(event));
        listen(
            (name) => this.onKey(name),
            () => this.thread.focused() !== null,
        );
    }

    // -- the server

    /** Asks the server who it is; asks the user for a key if the server does. */
    async connect() {
        let failure = null;
        try {
            this.models = await this.api.models();
            this.showModels();
            this.props = await this.modelProps();
        } catch (error) {
            if (error.status === 401 && (await this.enterKey())) {
                return this.connect();
            }
            failure = error.message;
            notice(failure, { error: true });
        }
        this.showModelName();
        this.speech.offer(Boolean(this.hearing()));
        this.attachments.offer(this.noticed());
        this.composer.hint(this.chosen()?.hears ? 'Record, or choose a sound file' : 'Message');
        this.settings.server(this.props, this.models.length > 1 ? [this.model()] : this.models.map((m) => m.id), failure);
        this.showContext();
    }

    /** What the server says of the chosen model; nothing of one of several that is not loaded, because that would load it. */
    async modelProps() {
        const one = this.chosen();
        return this.models.length > 1 && !one?.isLoaded ? {} : this.api.props(this.models.length > 1 ? one.id : '');
    }

    /** What the chosen model notices beside text in messages. Whether it hears is known once it is loaded. */
    noticed() {
        const one = this.chosen();
        return one?.sees ? 'image' : !one?.hears && this.props.modalities?.audio ? 'audio' : '';
    }

    enterKey(why) {
        return askKey(this.prefs, why);
    }

    showModels() {
        const chosen = this.prefs.get('model', ''),
            several = this.models.length > 1;
        $('model').replaceChildren(
            ...this.models.map(
                ({ id, isLoaded }) =>
                    new Option(several && !isLoaded ? id + ' (not loaded)' : id, id, false, id === chosen),
            ),
        );
        $('model-choice').hidden = !several;
    }

    /** The name of the only model. */
    showModelName() {
        const several = this.models.length > 1;
        const name = this.props.model_alias || this.models[0]?.id || this.props.model_path || '';
        $('model-name').textContent = several ? '' : String(name).split('/').pop();
    }

    /** The chosen model, as the server lists it. */
    chosen() {
        return this.models.find((m) => m.id === this.model());
    }

    /** The model that writes down sounds: the chosen one, or another; undefined if none does. */
    hearing() {
        return this.chosen()?.hears ? this.chosen() : this.models.find((m) => m.hears);
    }

    /** What was said goes into the message; false if the chosen model reads none. */
    heard(text) {
        if (this.chosen()?.hears) {
            return false;
        }
        this.composer.insert(text);
        return true;
    }

    model() {
        return this.models.length > 1 ? $('model').value : this.models[0]?.id;
    }

    // -- conversations

    /** Shows the conversation that the address names. */
    async route() {
        const id = location.hash.slice(1);
        if (this.talk && id === this.talk.id) {
            return;
        }
        const talk = id ? (this.runs.get(id)?.talk ?? (await this.store.load(id))) : null;
        this.show(talk ?? tree.newConversation(cleanSettings(this.prefs.get('defaults', {}))));
        if (id && !talk) {
            history.replaceState(null, '', location.pathname + location.search);
        }
    }

    /** Goes to a conversation, or to a new one. */
    open(id) {
        this.frame.closeSidebar();
        if (id) {
            location.hash = id;
        } else {
            history.pushState(null, '', location.pathname + location.search);
            this.talk = null;
            this.route();
        }
        this.composer.focus();
    }

    show(talk) {
        this.talk = talk;
        this.thread.stick();
        this.settings.show(cleanSettings(talk.settings.v));
        this.refresh();
        this.sidebar.mark(talk.id);
    }

    /** Shows the conversation as it is now. */
    refresh() {
        const run = this.runs.get(this.talk.id),
            title = tree.titleOf(this.talk);
        this.thread.show(this.talk, run?.message.id ?? null);
        this.composer.running(Boolean(run));
        $('title').textContent = title;
        document.title = title + ' – llm-server';
        this.showContext();
    }

    /** How much of the context the conversation takes, as far as the server has said. */
    showContext() {
        const size = contextSize(this.props),
            shown = this.talk ? tree.path(this.talk) : [];
        const used = shown.at(-1)?.message.stats?.total;
        $('context').textContent =
            used && size ? `${used.toLocaleString('en')} of ${size.toLocaleString('en')} tokens` : '';
    }

    /** Stores the conversation; tells the user if that is not possible. */
    async save(talk) {
        try {
            if (await this.store.save(talk)) {
                return;
            }
            this.runs.get(talk.id)?.stop();
            this.deletedElsewhere(talk.id);
        } catch (error) {
            const full = error.name === 'QuotaExceededError';
            notice(
                full
                    ? 'The browser’s storage is full, so this conversation is not saved. Export it, or delete others.'
                    : `This conversation could not be saved: ${error.message}.`,
                { error: true, lasting: true },
            );
        }
    }

    deletedElsewhere(id) {
        if (this.talk.id === id) {
            notice('This conversation was deleted in another tab.');
            this.open(null);
        }
    }

    async changedElsewhere(id) {
        if (this.talk.id !== id) {
            return;
        }
        const known = this.store.stored.has(id),
            stored = await this.store.load(id);
        if (stored) {
            tree.mergeShown(this.talk, stored);
            this.refresh();
        } else if (known) {
            this.runs.get(id)?.stop();
            this.deletedElsewhere(id);
        }
    }

    async onTalk(name, id) {
        const actions = {
            open: () => this.open(id),
            rename: () => this.rename(id),
            export: () => this.export([id]),
            delete: () => this.deleteTalk(id),
        };
        await actions[name]();
    }

    async rename(id) {
        const talk = this.talk.id === id ? this.talk : await this.store.load(id);
        const title = talk && (await askTitle(tree.titleOf(talk)));
        if (title) {
            tree.setField(talk, 'title', title);
            this.refresh();
            await this.save(talk);
        }
    }

    async deleteTalk(id) {
        this.runs.get(id)?.stop();
        const talk = await this.store.remove(id);
        if (this.talk.id === id) {
            this.open(null);
        }
        const undo = { label: 'Undo', run: () => this.store.restore(talk).then(() => this.open(id)) };
        notice('The conversation was deleted.', { action: talk ? undo : null });
    }

    async export(ids) {
        const name = ids
            ? tree
                  .titleOf(await this.store.load(ids[0]))
                  .replace(/[^\p{L}\p{N}]+/gu, '-')
                  .slice(0, 40)
            : 'conversations';
        download(`${name || 'conversation'}.json`, await this.store.export(ids));
    }

    async import() {
        const file = $('file').files[0];
        $('file').value = '';
        try {
            const n = await this.store.import(await file.text());
            await this.changedElsewhere(this.talk.id); // it may be among them
            notice(n === 1 ? 'One conversation was imported.' : `${n} conversations were imported.`);
        } catch (error) {
            notice(error.message, { error: true });
        }
    }

    // -- settings

    changeSettings(settings) {
        tree.setField(this.talk, 'settings', settings);
        if (Object.keys(this.talk.messages).length) {
            this.saveSoon(this.talk);
        }
    }

    makeDefault() {
        this.prefs.set('defaults', this.settings.settings);
        notice('New conversations begin with these settings.');
    }

    resetSettings() {
        this.settings.show({});
        this.changeSettings({});
    }

    saveSoon(talk) {
        clearTimeout(this.saving);
        this.saving = setTimeout(() => this.save(talk), 300);
    }

    // -- messages

    /** Sends what was written; false if an answer is being written. */
    send(text) {
        if (this.runs.has(this.talk.id)) {
            return false;
        }
        const parent = tree.path(this.talk).at(-1)?.message.id ?? tree.ROOT;
        const message = tree.addMessage(this.talk, parent, 'user', text, this.attachments.takeAll());
        if (location.hash.slice(1) !== this.talk.id) {
            history.replaceState(null, '', '#' + this.talk.id);
            this.sidebar.mark(this.talk.id);
        }
        this.answer(message.id);
        return true;
    }

    /** Has the message `parent` answered, in a new branch. */
    answer(parent) {
        const message = tree.addMessage(this.talk, parent, 'assistant', '', { model: this.model() ?? '' });
        this.thread.stick();
        return this.run(message);
    }

    async run(message) {
        const { talk } = this;
        const run = new Run(this.api, talk, message, this.model(), () => this.grown(talk));
        this.runs.set(talk.id, run);
        tree.changeMessage(message, { content: '', error: '', finish: '', reasoning: '', tokens: [], calls: [] });
        this.refresh();
        announce('The answer is being written.');
        this.save(talk);
        const saves = setInterval(() => this.save(talk), SAVE_EVERY);
        const failure = await run.finish();
        clearInterval(saves);
        this.runs.delete(talk.id);
        await this.ended(talk, message, failure);
    }

    async ended(talk, message, failure) {
        if (this.talk === talk) {
            this.refresh();
        }
        if (failure?.status === 401 && (await this.enterKey())) {
            await this.connect();
            return this.talk === talk ? this.run(message) : undefined;
        }
        const words = message.content.split(/\s+/).filter(Boolean).length;
        if (this.models.length > 1) {
            await this.connect(); // the model may have been loaded for it
        }
        announce(failure ? 'The answer failed: ' + failure.message : `The answer is complete: ${words} words.`);
        await this.save(talk);
    }

    grown(talk) {
        if (this.talk === talk) {
            this.thread.grown();
        }
    }

    /** Stops the answer that is being written; false if there is none. */
    stop() {
        const run = this.runs.get(this.talk.id);
        run?.stop();
        return Boolean(run);
    }

    onMessage(name, message, view) {
        const actions = {
            copy: () => this.copy(message, view),
            edit: () => view.edit((text) => this.keepEdit(message, text)),
            regenerate: () => message.role === 'assistant' && this.idle() && this.answer(message.parent),
            retry: () => this.idle() && this.run(message),
            tokens: () => message.tokens?.length && view.toggleTokens(),
            previous: () => this.branch(message, -1),
            next: () => this.branch(message, 1),
            delete: () => this.idle() && this.deleteMessage(message),
        };
        return actions[name]();
    }

    /** True unless an answer is being written in this conversation; tells the user if so. */
    idle() {
        const running = this.runs.has(this.talk.id);
        if (running) {
            notice('Stop the answer first.');
        }
        return !running;
    }

    async copy(message, view) {
        const done = await copyText(message.content),
            button = view.actions.querySelector('[data-do="copy"]');
        if (done && button) {
            flashDone(button);
        }
        announce(done ? 'Copied.' : 'The browser does not allow copying.');
    }

    async copyCode(event) {
        const code = codeOf(event.target);
        if (code !== null && (await copyText(code))) {
            flashDone(event.target);
            announce('Copied.');
        }
    }

    /** An edited message is a branch beside the old one; an edited question is answered. */
    keepEdit(old, text) {
        const attached = tree.attachedTo(old);
        if (!this.idle() || (!text.trim() && !Object.keys(attached).length)) {
            return;
        }
        const message = tree.addMessage(
            this.talk,
            old.parent,
            old.role,
            text,
            old.role === 'user' ? attached : { model: old.model, finish: 'edited' },
        );
        if (old.role === 'user') {
            this.answer(message.id);
        } else {
            this.refresh();
            this.save(this.talk);
        }
    }

    branch(message, step) {
        const to = this.idle() ? tree.stepBranch(this.talk, message.id, step) : null;
        if (!to) {
            return;
        }
        const focus = this.thread.focused() ? '' : step < 0 ? 'previous' : 'next';
        this.refresh();
        const view = this.thread.view(to.id);
        ((focus && view.actions.querySelector(`[data-do="${focus}"]:not(:disabled)`)) || view.element).focus();
        this.save(this.talk);
    }

    deleteMessage(message) {
        const talk = this.talk,
            gone = tree.deleteMessage(talk, message.id);
        this.refresh();
        this.save(talk);
        notice(gone.length === 1 ? 'The message was deleted.' : `${gone.length} messages were deleted.`, {
            action: { label: 'Undo', run: () => this.undelete(talk, gone) },
        });
    }

    undelete(talk, gone) {
        tree.restoreMessages(talk, gone);
        if (this.talk === talk) {
            this.refresh();
        }
        this.save(talk);
    }

    editLast() {
        const view = this.thread.views.findLast((v) => v.message.role === 'user');
        if (view && this.idle()) {
            this.onMessage('edit', view.message, view);
        }
    }

    // -- keys

    onKey(name) {
        const actions = {
            stop: () => this.stop() || this.speech.stop(),
            new: () => this.open(null),
            search: () => this.frame.search(),
            settings: () => this.settings.toggle(),
            write: () => this.composer.focus(),
            up: () => this.thread.moveFocus(-1),
            down: () => this.thread.moveFocus(1),
            help: () => $('help').showModal(),
        };
        if (Object.hasOwn(actions, name)) {
            return actions[name]();
        }
        const view = this.thread.focused();
        return this.onMessage(name, view.message, view);
    }
}

async function openStore() {
    const channel = typeof BroadcastChannel === 'function' ? new BroadcastChannel('llm-server') : null;
    try {
        return new Store(await openDatabase(), channel);
    } catch (error) {
        notice(`The history is lost when this page is closed: ${error.message}.`, { error: true, lasting: true });
        return new Store(new Memory(), null);
    }
}

fillIcons();
await new App(await openStore()).start();
