#include "expected.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/show.h"

enum {
    MOST_LISTED = 12, /* things that are named one by one */
    MOST_SHOWN = 40   /* bytes of a text that is the only one */
};

typedef struct thing {
    char s[4 * MOST_SHOWN + 8];
} thing;

typedef struct sentence {
    char *buf;
    size_t size, n; /* n: the length that enough room would need */
    thing last;     /* the newest thing, which is written when it is known what follows */
    int n_things;
} sentence;

static void append(sentence *s, const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++, s->n++)
        if (s->n + 1 < s->size)
            s->buf[s->n] = text[i];
}

static void add(sentence *s, const char *text) {
    if (s->n_things > 1)
        append(s, ", ");
    append(s, s->last.s);
    snprintf(s->last.s, sizeof s->last.s, "%s", text);
    s->n_things++;
}

static size_t finish(sentence *s) {
    if (s->n_things > 1)
        append(s, " or ");
    append(s, s->n_things ? s->last.s : "nothing");
    if (s->size > 0)
        s->buf[s->n < s->size ? s->n : s->size - 1] = '\0';
    return s->n;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* The bytes that may come after a set. */
static int live_bytes(llm_parser *p, const llm_stack *s, llm_item_set set, bool live[256]) {
    int n = 0;
    for (unsigned b = 0; b < 256; b++) {
        live[b] = false;
        for (size_t i = 0; i < set.n && !live[b]; i++)
            live[b] = llm_state_next(&p->states, s->item[set.first + i].state, b) != LLM_STATE_DEAD;
        n += live[b];
    }
    return n;
}

/* If all bytes of a range are live, names them as one and removes them. */
static void add_range(sentence *s, bool live[256], unsigned first, unsigned last,
                      const char *name) {
    for (unsigned b = first; b <= last; b++)
        if (!live[b])
            return;
    memset(live + first, 0, last - first + 1);
    add(s, name);
}

static void quote(thing *out, const char *text, size_t n) {
    static const struct {
        char c;
        const char *name;
    } named[] = {
        {' ', "a space"}, {'\n', "a line end"}, {'\t', "a tab"}, {'\r', "a carriage return"}};
    for (size_t i = 0; n == 1 && i < sizeof named / sizeof *named; i++)
        if (text[0] == named[i].c) {
            memcpy(out->s, named[i].name, strlen(named[i].name) + 1);
            return;
        }
    out->s[0] = '\'';
    ggl_show(out->s + 1, sizeof out->s - 2, text, n);
    memcpy(out->s + strlen(out->s), "'", 2);
}

/* Names what begins with a byte: as far as each byte is the only one that may follow. */
static void add_text(sentence *out, llm_parser *p, llm_stack *s, llm_item_set set, unsigned byte) {
    const llm_stack_mark mark = llm_stack_here(s);
    char text[MOST_SHOWN];
    thing whole;
    bool live[256];
    size_t n = 0;
    do {
        text[n++] = (char)byte;
        set = llm_set_step(p, s, set, byte);
        if (set.n == 0 || set.complete || live_bytes(p, s, set, live) != 1)
            break;
        for (byte = 0; !live[byte]; byte++)
            ;
    } while (n < MOST_SHOWN && byte > ' ' && text[0] > ' ');
    llm_stack_back(s, mark);
    quote(&whole, text, n);
    add(out, whole.s);
}

/* Most characters are possible: names those of ASCII that are not. */
static void add_any(sentence *out, const bool live[256]) {
    char text[160] = "any character";
    thing one;
    int n = 0;
    for (unsigned b = 0x20; b < 0x7f; b++) {
        if (live[b] || ++n > MOST_LISTED)
            continue;
        quote(&one, &(char){(char)b}, 1);
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.10s", n == 1 ? " but " : " ", one.s);
    }
    add(out, n > MOST_LISTED ? "one of many characters" : text);
}

/* Names bytes of ASCII, ranges first, and says whether there are other characters. */
static void add_all(sentence *out, llm_parser *p, llm_stack *s, llm_item_set set, bool live[256]) {
    int n = 0;
    add_range(out, live, 'a', 'z', "a small letter");
    add_range(out, live, 'A', 'Z', "a capital letter");
    add_range(out, live, '0', '9', "a digit");
    add_range(out, live, '1', '9', "a digit from 1 to 9");
    for (unsigned b = 0; b < 0x80; b++)
        if (live[b] && ++n <= MOST_LISTED)
            add_text(out, p, s, set, b);
    bool more = n > MOST_LISTED, inside = false;
    for (unsigned b = 0x80; b < 256; b++) {
        more = more || (live[b] && b >= 0xc0);
        inside = inside || (live[b] && b < 0xc0);
    }
    if (more)
        add(out, "another character");
    if (inside)
        add(out, "the rest of a character");
}

size_t llm_expected(llm_parser *p, llm_stack *s, llm_item_set set, char *buf, size_t size) {
    sentence out = {.buf = buf, .size = size};
    bool live[256];
    int n_ascii = 0;
    live_bytes(p, s, set, live);
    for (unsigned b = 0x20; b < 0x7f; b++)
        n_ascii += live[b];
    if (n_ascii > 80)
        add_any(&out, live);
    else
        add_all(&out, p, s, set, live);
    if (set.complete)
        add(&out, "the end of the text");
    return finish(&out);
}
