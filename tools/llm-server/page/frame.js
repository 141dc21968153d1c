// What surrounds the conversation: the sidebar's drawer, the theme and the dialogs.

import { $, icon } from './dom.js';

const THEMES = ['auto', 'light', 'dark'];
const THEME_NAMES = { auto: 'the system’s', light: 'light', dark: 'dark' };
const isNarrow = () => matchMedia('(max-width: 760px)').matches;

/** Makes the sidebar open and close: a drawer on narrow screens, a column on wide ones. */
export function setUpFrame() {
    const body = document.body;
    const set = (open) => {
        body.classList.toggle('drawer', open && isNarrow());
        body.classList.toggle('no-sidebar', !open && !isNarrow());
        $('shade').hidden = !(open && isNarrow());
    };
    const close = () => {
        set(false);
        $('open-sidebar').focus();
    };
    $('open-sidebar').addEventListener('click', () => {
        set(true);
        $('new').focus();
    });
    $('close-sidebar').addEventListener('click', close);
    $('shade').addEventListener('click', close);
    $('sidebar').addEventListener('keydown', (event) => {
        if (event.key === 'Escape' && isNarrow()) {
            close();
            event.stopPropagation();
        }
    });
    $('skip').addEventListener('click', (event) => {
        // the address names the conversation
        event.preventDefault();
        $('text').focus();
    });
    $('open-help').addEventListener('click', () => $('help').showModal());
    matchMedia('(max-width: 760px)').addEventListener('change', () => set(!isNarrow()));
    return {
        closeSidebar: () => isNarrow() && set(false),
        search: () => {
            set(true);
            $('search').focus();
            $('search').select();
        },
    };
}

/** Makes the button go through the themes. */
export function setUpTheme(prefs) {
    const show = () => {
        const theme = THEMES.includes(prefs.get('theme')) ? prefs.get('theme') : 'auto';
        if (theme === 'auto') {
            delete document.documentElement.dataset.theme;
        } else {
            document.documentElement.dataset.theme = theme;
        }
        $('theme').replaceChildren(icon(theme));
        $('theme').setAttribute('aria-label', `Theme: ${THEME_NAMES[theme]}`);
        $('theme').title = `Theme: ${THEME_NAMES[theme]}`;
    };
    $('theme').addEventListener('click', () => {
        prefs.set('theme', THEMES[(THEMES.indexOf(prefs.get('theme', 'auto')) + 1) % THEMES.length]);
    });
    prefs.addEventListener('change', show);
    show();
}

/** Shows a dialog with one field; resolves with what was entered, or null. */
function ask(name, value) {
    const dialog = $(name),
        field = $(name + '-value');
    if (dialog.open) {
        return Promise.resolve(null);
    }
    field.value = value;
    dialog.returnValue = '';
    $(name + '-cancel').onclick = () => dialog.close('');
    dialog.showModal();
    field.select();
    return new Promise((resolve) => {
        dialog.addEventListener('close', () => resolve(dialog.returnValue === 'ok' ? field.value.trim() : null), {
            once: true,
        });
    });
}

/** Asks for the API key and keeps it; false if the user would not give one. An empty key is none. */
export async function askKey(
    prefs,
    why = 'The server asks for a key. It is kept in this browser and sent to this server only.',
) {
    $('key-why').textContent = why;
    const key = await ask('key', prefs.get('key', ''));
    if (key === null) {
        return false;
    }
    prefs.set('key', key);
    return true;
}

/** Asks for a title; null if the user would not give one. */
export function askTitle(title) {
    return ask('rename', title);
}
