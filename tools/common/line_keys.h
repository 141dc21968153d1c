/* Reads what a terminal sends, byte by byte, as keys: characters, control keys, escape sequences,
 * pasted text. */
#ifndef TOOLS_LINE_KEYS_H
#define TOOLS_LINE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key is a character's code point (control keys: 1 to 31, and 127 for Backspace), or one of these. */
enum {
    KEY_NONE = 0,            /* no key is complete yet */
    KEY_FIRST = 0x110000,    /* past all characters */
    KEY_UNKNOWN = KEY_FIRST, /* an escape sequence without a meaning here */
    KEY_ESCAPE,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_UP,
    KEY_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_DELETE,
    KEY_WORD_LEFT,
    KEY_WORD_RIGHT,
    KEY_ALT_ENTER,
    KEY_ALT_BACKSPACE,
    KEY_ALT_D,
    KEY_PASTE_BEGIN,
    KEY_PASTE_END
};

#define KEY_CTRL(letter) ((letter)&31)

typedef struct line_keys { /* all zeros: no byte was read */
    enum { KEYS_GROUND, KEYS_ESCAPE, KEYS_CSI, KEYS_SS3, KEYS_CHARACTER } state;
    int param[3], n_params; /* of a CSI sequence */
    char part[4];           /* first bytes of a character */
    size_t n_part, n_wanted;
} line_keys;

/* Takes a byte; returns the key that it completes, or KEY_NONE. *again is set if the byte ended an
 * incomplete character and must be passed again. A byte that begins no character is U+FFFD. */
uint32_t line_keys_take(line_keys *k, unsigned char byte, bool *again);
/* The terminal has sent nothing for a while: returns KEY_ESCAPE if the last byte was that key, not the
 * beginning of a sequence. */
uint32_t line_keys_idle(line_keys *k);

#endif
