#include "line_keys.h"

#include "char_width.h"

enum { ESC = 27 };

/* Escape sequences: CSI <number> ~, CSI <letter> and SS3 <letter>. */
static const struct sequence {
    char last;
    int number; /* before '~' */
    uint32_t key, with_modifier;
} sequences[] = {
    {'A', 0, KEY_UP, KEY_UP},
    {'B', 0, KEY_DOWN, KEY_DOWN},
    {'C', 0, KEY_RIGHT, KEY_WORD_RIGHT},
    {'D', 0, KEY_LEFT, KEY_WORD_LEFT},
    {'H', 0, KEY_HOME, KEY_HOME},
    {'F', 0, KEY_END, KEY_END},
    {'~', 1, KEY_HOME, KEY_HOME},
    {'~', 3, KEY_DELETE, KEY_ALT_D},
    {'~', 4, KEY_END, KEY_END},
    {'~', 7, KEY_HOME, KEY_HOME},
    {'~', 8, KEY_END, KEY_END},
    {'~', 200, KEY_PASTE_BEGIN, KEY_PASTE_BEGIN},
    {'~', 201, KEY_PASTE_END, KEY_PASTE_END},
    {'u', 13, KEY_ALT_ENTER, KEY_ALT_ENTER}, /* Shift-Enter, where a terminal reports it */
};

static uint32_t find_sequence(const line_keys *k, char last) {
    const bool counts = last == '~' || last == 'u' || k->param[0] > 1;
    const int number = counts ? k->param[0] : 0;
    if (last == '~' && k->param[0] == 27 && k->param[2] == 13)
        return KEY_ALT_ENTER; /* the other form of Shift-Enter */
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        if (sequences[i].last == last && sequences[i].number == number)
            return k->param[1] > 1 ? sequences[i].with_modifier : sequences[i].key;
    return KEY_UNKNOWN;
}

static uint32_t take_csi(line_keys *k, unsigned char byte) {
    if (byte >= '0' && byte <= '9') {
        int *p = &k->param[k->n_params < 3 ? k->n_params : 2];
        *p = *p < 10000 ? *p * 10 + (byte - '0') : *p;
        return KEY_NONE;
    }
    if (byte == ';')
        k->n_params++;
    if (byte == '[') /* the Linux console's function keys: CSI [ A */
        k->param[0] = 9999;
    if (byte < 0x40 || byte == '[')
        return KEY_NONE;
    k->state = KEYS_GROUND;
    return find_sequence(k, (char)byte);
}

static uint32_t take_after_escape(line_keys *k, unsigned char byte) {
    k->state = KEYS_GROUND;
    switch (byte) {
    case '[':
    case 'O':
        *k = (line_keys){.state = byte == '[' ? KEYS_CSI : KEYS_SS3};
        return KEY_NONE;
    case ESC:
        k->state = KEYS_ESCAPE;
        return KEY_ESCAPE;
    case '\r':
    case '\n':
        return KEY_ALT_ENTER;
    case 'b':
        return KEY_WORD_LEFT;
    case 'f':
        return KEY_WORD_RIGHT;
    case 'd':
        return KEY_ALT_D;
    case 127:
    case '\b':
        return KEY_ALT_BACKSPACE;
    default:
        return KEY_UNKNOWN;
    }
}

static uint32_t take_part(line_keys *k, unsigned char byte, bool *again) {
    uint32_t c;
    if ((byte & 0xc0) != 0x80) {
        *k = (line_keys){0};
        *again = true;
        return 0xfffd;
    }
    k->part[k->n_part++] = (char)byte;
    if (k->n_part < k->n_wanted)
        return KEY_NONE;
    (void)char_read(k->part, k->n_part, &c);
    *k = (line_keys){0};
    return c;
}

uint32_t line_keys_take(line_keys *k, unsigned char byte, bool *again) {
    *again = false;
    switch (k->state) {
    case KEYS_ESCAPE:
        return take_after_escape(k, byte);
    case KEYS_CSI:
        if (byte < 32) { /* the rest is lost: a key such as Ctrl-C is not */
            *k = (line_keys){0};
            *again = true;
            return KEY_NONE;
        }
        return take_csi(k, byte);
    case KEYS_SS3:
        k->state = KEYS_GROUND;
        return find_sequence(k, (char)byte);
    case KEYS_CHARACTER:
        return take_part(k, byte, again);
    case KEYS_GROUND:
        break;
    }
    if (byte == ESC) {
        *k = (line_keys){.state = KEYS_ESCAPE};
        return KEY_NONE;
    }
    if (byte < 0x80)
        return byte ? byte : KEY_UNKNOWN;
    const size_t n = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 0;
    if (n == 0 || byte >= 0xf5)
        return 0xfffd;
    *k = (line_keys){.state = KEYS_CHARACTER, .part = {(char)byte}, .n_part = 1, .n_wanted = n};
    return KEY_NONE;
}

uint32_t line_keys_idle(line_keys *k) {
    const bool escape = k->state == KEYS_ESCAPE;
    if (escape || k->state == KEYS_CSI || k->state == KEYS_SS3)
        *k = (line_keys){0};
    return escape ? KEY_ESCAPE : KEY_NONE;
}
