// Small helpers for the page's elements.

const ICONS = {
    plus: 'M12 5v14M5 12h14',
    close: 'M6 6l12 12M18 6L6 18',
    list: 'M4 6h16M4 12h16M4 18h10',
    sliders:
        'M4 8h8M18 8h2M15 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M4 16h2M12 16h8M9 13.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5',
    send: 'M12 19V5M6 11l6-6 6 6',
    stop: 'M7 7h10v10H7z',
    down: 'M12 5v14M6 13l6 6 6-6',
    more: 'M5.5 12h.01M12 12h.01M18.5 12h.01',
    help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.1-1.5 2.4M12 17.5h.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18',
    copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
    edit: 'M4 20l4-1L19.5 7.5l-3-3L5 16zM14 7l3 3',
    redo: 'M19 12a7 7 0 1 1-2.2-5.1M19 3.5V8h-4.5',
    trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5',
    left: 'M14.5 6l-6 6 6 6',
    right: 'M9.5 6l6 6-6 6',
    tokens: 'M3 7.5h8v9H3zM14 7.5h7v9h-7zM5.5 12h3M16.5 12h2',
    light: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1',
    dark: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10',
    auto: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
    microphone: 'M12 3.5a2.5 2.5 0 0 0-2.5 2.5v5a2.5 2.5 0 0 0 5 0V6A2.5 2.5 0 0 0 12 3.5M6 11a6 6 0 0 0 12 0M12 17v3.5',
    sound: 'M4 10v4M8 6.5v11M12 3.5v17M16 7.5v9M20 10v4',
    check: 'M5 12.5l4.5 4.5L19 7.5',
};
const SVG = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

/** An element with properties (`class`, `data-..` and `aria-..` are attributes, `on..` listeners) and children. */
export function el(tag, props = {}, ...kids) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
        if (name.startsWith('on')) {
            element.addEventListener(name.slice(2), value);
        } else if (name === 'class' || name === 'role' || name.includes('-')) {
            element.setAttribute(name, value);
        } else {
            element[name] = value;
        }
    }
    element.append(...kids.filter((k) => k !== null && k !== undefined));
    return element;
}

/** The drawing `name`, hidden from screen readers. */
export function icon(name) {
    const svg = document.createElementNS(SVG, 'svg'),
        path = document.createElementNS(SVG, 'path');
    svg.setAttribute('viewBox', '0 0 24 24');
    svg.setAttribute('aria-hidden', 'true');
    path.setAttribute('d', ICONS[name]);
    svg.append(path);
    return svg;
}

/** A button with a drawing and a name for screen readers, which is its tooltip, too. */
export function iconButton(name, label, props = {}) {
    return el('button', { type: 'button', class: 'icon', 'aria-label': label, title: label, ...props }, icon(name));
}

/** Puts the drawings into the elements of the document that name one. */
export function fillIcons() {
    document.querySelectorAll('[data-icon]').forEach((e) => e.prepend(icon(e.dataset.icon)));
}

/** Makes a text area as high as its text. */
export function grow(area) {
    area.style.height = 'auto';
    area.style.height = area.scrollHeight + 2 + 'px';
}

/** Says something to screen readers. */
export function announce(text) {
    $('live').textContent = text;
}

/** Calls f soon, at most once per frame; also in a tab that is not visible. */
export function oncePerFrame(f) {
    let waiting = false;
    const run = () => {
        if (waiting) {
            waiting = false;
            f();
        }
    };
    return () => {
        if (!waiting) {
            waiting = true;
            requestAnimationFrame(run);
            setTimeout(run, 250);
        }
    };
}

/** Copies text; also where the browser offers no clipboard, as for http:// from other machines. */
export async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = el('textarea', { class: 'unseen', value: text }),
            focused = document.activeElement;
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        focused?.focus();
        return done;
    }
}

/** Offers text as a file to save. */
export function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    const a = el('a', { href: url, download: name });
    document.body.append(a);
    a.click();
    a.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Shows a notice at the page's edge. action: {label, run}; it stays until closed if `lasting`. */
export function notice(text, { action = null, lasting = false, error = false } = {}) {
    if ([...$('notices').children].some((n) => n.dataset.text === text)) {
        return;
    }
    const close = () => box.remove();
    const box = el(
        'div',
        { class: error ? 'notice error' : 'notice', 'data-text': text },
        el('span', {}, text),
        action &&
            el(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        close();
                        action.run();
                    },
                },
                action.label,
            ),
        iconButton('close', 'Close', { onclick: close }),
    );
    $('notices').append(box);
    if (!lasting) {
        setTimeout(close, 8000);
    }
}

/** Shows a menu of {label, icon, run} at a button; arrow keys move, Escape and clicks elsewhere close it. */
export function openMenu(anchor, items) {
    const close = (focus) => {
        menu.remove();
        anchor.setAttribute('aria-expanded', 'false');
        document.removeEventListener('pointerdown', outside, true);
        if (focus) {
            anchor.focus();
        }
    };
    const outside = (event) => {
        if (!menu.contains(event.target)) {
            close(false);
        }
    };
    const buttons = items.map((item) =>
        el(
            'button',
            {
                type: 'button',
                role: 'menuitem',
                tabIndex: -1,
                onclick: () => {
                    close(true);
                    item.run();
                },
            },
            icon(item.icon),
            item.label,
        ),
    );
    const menu = el(
        'div',
        { class: 'menu', role: 'menu', onkeydown: (event) => menuKey(event, buttons, close) },
        ...buttons,
    );
    document.body.append(menu);
    const at = anchor.getBoundingClientRect();
    menu.style.top = Math.min(at.bottom + 4, innerHeight - menu.offsetHeight - 8) + 'px';
    menu.style.left = Math.max(8, Math.min(at.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 8)) + 'px';
    anchor.setAttribute('aria-expanded', 'true');
    document.addEventListener('pointerdown', outside, true);
    buttons[0].focus();
}

function menuKey(event, buttons, close) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key],
        at = buttons.indexOf(document.activeElement);
    if (step) {
        buttons[(at + step + buttons.length) % buttons.length].focus();
    } else if (event.key === 'Escape' || event.key === 'Tab') {
        close(true);
    } else {
        return;
    }
    event.preventDefault();
    event.stopPropagation();
}
