// The panel of settings: of the conversation that is shown, and of the server.

import { $, el } from './dom.js';
import { MAX_TOP, NUMBERS, contextSize, readNumber, serverDefault } from './fields.js';

export class SettingsPanel {
    /** changed(settings): the user has changed them. */
    constructor(changed) {
        this.changed = changed;
        this.settings = {};
        $('numbers').append(...NUMBERS.map((f) => this.numberRow(f)));
        $('settings-form').addEventListener('input', () => this.read());
        $('settings-form').addEventListener('submit', (event) => event.preventDefault());
        $('close-settings').addEventListener('click', () => this.toggle(false));
        $('open-settings').addEventListener('click', () => this.toggle());
        $('settings').addEventListener('keydown', (event) => {
            if (event.key === 'Escape') {
                this.toggle(false);
                event.stopPropagation();
            }
        });
    }

    toggle(open = $('settings').hidden) {
        $('settings').hidden = !open;
        $('open-settings').setAttribute('aria-expanded', String(open));
        document.body.classList.toggle('with-settings', open);
        (open ? $('system') : $('open-settings')).focus();
    }

    numberRow(field) {
        const id = 'set-' + field.name;
        return el(
            'div',
            { class: 'number' },
            el('label', { htmlFor: id }, field.label),
            el('input', {
                type: 'text',
                inputMode: field.whole ? 'numeric' : 'decimal',
                id,
                autocomplete: 'off',
                'aria-describedby': id + '-help',
            }),
            el('p', { class: 'help', id: id + '-help' }, field.help),
        );
    }

    /** Fills the panel. */
    show(settings) {
        this.settings = settings;
        $('system').value = settings.system ?? '';
        $('reasons').value = settings.reasons === undefined ? '' : settings.reasons ? 'on' : 'off';
        $('stops').value = (settings.stop ?? []).join('\n');
        for (const field of NUMBERS) {
            $('set-' + field.name).value = settings[field.name] ?? '';
            this.mark(field, null);
        }
        $('probabilities').checked = settings.top_logprobs !== undefined;
        $('top').value = settings.top_logprobs ?? 5;
        $('top').disabled = settings.top_logprobs === undefined;
    }

    /** Takes what the user has typed; a field with an error keeps its last value. */
    read() {
        const settings = {};
        if ($('system').value.trim()) {
            settings.system = $('system').value;
        }
        for (const field of NUMBERS) {
            const { value, error } = readNumber(field, $('set-' + field.name).value);
            this.mark(field, error ?? null);
            const kept = error ? this.settings[field.name] : value;
            if (kept !== null && kept !== undefined) {
                settings[field.name] = kept;
            }
        }
        if ($('reasons').value) {
            settings.reasons = $('reasons').value === 'on';
        }
        const stop = $('stops').value.split('\n').filter(Boolean);
        if (stop.length) {
            settings.stop = stop;
        }
        $('top').disabled = !$('probabilities').checked;
        if ($('probabilities').checked) {
            settings.top_logprobs = Math.max(0, Math.min(MAX_TOP, Math.round(Number($('top').value)) || 0));
        }
        this.settings = settings;
        this.changed(settings);
    }

    mark(field, error) {
        const input = $('set-' + field.name),
            help = $(`set-${field.name}-help`);
        input.toggleAttribute('aria-invalid', error !== null);
        help.textContent = error ?? field.help;
        help.classList.toggle('wrong', error !== null);
    }

    /** Shows what is known of the server. */
    server(props, models, failure) {
        for (const field of NUMBERS) {
            $('set-' + field.name).placeholder = serverDefault(field, props) || 'default';
        }
        const facts = [
            models.length ? models.join(', ') : null,
            contextSize(props) ? `${contextSize(props).toLocaleString('en')} tokens of context` : null,
        ];
        $('server-facts').textContent =
            failure ?? (facts.filter(Boolean).join(' · ') || 'The server says nothing about itself.');
    }
}
