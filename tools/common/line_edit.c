#include "line_edit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "char_width.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/text.h"
#include "line_buffer.h"
#include "line_keys.h"
#include "line_screen.h"

struct line_editor {
    line_editor_params p;
    line_keys keys;
    line_buffer text, draft; /* draft: what was entered before the history was looked at */
    line_buffer pasted, query;
    line_screen screen;
    line_out out;
    const char *prompt;
    char search_prompt[160];
    size_t at;                 /* entry of the history that is shown; its number of entries: none */
    size_t before;             /* the same, when the search began */
    bool pastes, after_return; /* a pasted text is coming; its last byte was \r */
    bool paused;               /* nothing came for a while in a pasted text */
    bool searches, was_tab, left;
};

void line_words_add(line_words *w, const char *word) {
    char *copy = ggl_copy_text(word);
    if (copy && ggl_grow(&w->word, &w->cap, w->n + 1, sizeof *w->word))
        w->word[w->n++] = copy;
    else
        free(copy);
}

static void words_fini(line_words *w) {
    for (size_t i = 0; i < w->n; i++)
        free(w->word[i]);
    ggl_free(w->word);
}

static void bell(line_editor *e) {
    line_out_text(&e->out, "\a");
}

static void ring_unless(line_editor *e, bool changed) {
    if (!changed)
        bell(e);
}

/* --- history ---------------------------------------------------------------------------------- */

static size_t n_entries(const line_editor *e) {
    return e->p.history ? line_history_n(e->p.history) : 0;
}

/* Shows an entry, or the draft for n_entries. */
static void show_entry(line_editor *e, size_t i) {
    if (e->at == n_entries(e))
        (void)line_buffer_set(&e->draft, line_buffer_text(&e->text), e->text.n);
    e->at = i;
    const char *s =
        i == n_entries(e) ? line_buffer_text(&e->draft) : line_history_get(e->p.history, i);
    (void)line_buffer_set(&e->text, s, strlen(s));
}

/* Moves up in a text of several lines, else to the entry before. */
static void go_up(line_editor *e) {
    line_buffer *b = &e->text;
    const size_t begin = line_buffer_line_begin(b, b->cursor);
    if (begin == 0) {
        if (e->at > 0)
            show_entry(e, e->at - 1);
        else
            bell(e);
        return;
    }
    const size_t above = line_buffer_line_begin(b, begin - 1), col = b->cursor - begin;
    size_t at = above;
    while (at < begin - 1 && at - above < col)
        at = line_buffer_after(b, at);
    b->cursor = at;
}

static void go_down(line_editor *e) {
    line_buffer *b = &e->text;
    const size_t end = line_buffer_line_end(b, b->cursor);
    if (end == b->n) {
        if (e->at < n_entries(e))
            show_entry(e, e->at + 1);
        else
            bell(e);
        return;
    }
    const size_t col = b->cursor - line_buffer_line_begin(b, b->cursor);
    const size_t below = line_buffer_line_end(b, end + 1);
    size_t at = end + 1;
    while (at < below && at - (end + 1) < col)
        at = line_buffer_after(b, at);
    b->cursor = at;
}

/* --- search ----------------------------------------------------------------------------------- */

/* Shows the newest entry before `from` that has the query; false if none has it. */
static bool search_from(line_editor *e, size_t from) {
    const char *query = line_buffer_text(&e->query);
    for (size_t i = from; i > 0; i--) {
        const char *s = line_history_get(e->p.history, i - 1), *found = strstr(s, query);
        if (!found)
            continue;
        show_entry(e, i - 1);
        e->text.cursor = (size_t)(found - s);
        return true;
    }
    return false;
}

static void set_search_prompt(line_editor *e, bool found) {
    snprintf(e->search_prompt, sizeof e->search_prompt,
             "%ssearch '%.100s': ", found ? "" : "nothing found: ", line_buffer_text(&e->query));
}

static void begin_search(line_editor *e) {
    e->searches = true;
    e->before = e->at;
    line_buffer_clear(&e->query);
    set_search_prompt(e, true);
}

/* Takes a key of the search; false: it ends the search, and has its usual meaning. */
static bool search_key(line_editor *e, uint32_t key, const char *s, size_t n) {
    bool found = true;
    if (key == KEY_CTRL('G') || key == KEY_ESCAPE || key == KEY_CTRL('C')) {
        show_entry(e, e->before);
        e->searches = false;
        return true;
    }
    if (key == KEY_CTRL('R')) {
        found = e->query.n > 0 && search_from(e, e->at);
    } else if (key == 127 || key == '\b') {
        (void)line_buffer_delete(&e->query, line_buffer_before(&e->query, e->query.n), e->query.n);
        found = e->query.n == 0 || search_from(e, n_entries(e));
    } else if (n > 0 && key >= 32) {
        (void)line_buffer_insert(&e->query, s, n);
        found = search_from(e, e->at < n_entries(e) ? e->at + 1 : n_entries(e));
    } else {
        e->searches = false;
        return false;
    }
    ring_unless(e, found);
    set_search_prompt(e, found);
    return true;
}

/* --- completion ------------------------------------------------------------------------------- */

static line_view view(const line_editor *e) {
    return (line_view){.prompt = e->searches ? e->search_prompt : e->prompt,
                       .s = line_buffer_text(&e->text),
                       .n = e->text.n,
                       .cursor = e->text.cursor};
}

/* Writes a word, which may be the name of a file: without the bytes that terminals obey. */
static void put_word(line_editor *e, const char *s) {
    for (size_t i = 0, n = strlen(s), len; i < n; i += len) {
        uint32_t c;
        len = char_read(s + i, n - i, &c);
        if (c == 0xfffd || c < 32 || (c >= 127 && c < 160))
            line_out_text(&e->out, "?");
        else
            line_out_put(&e->out, s + i, len);
    }
}

/* Lists the words in columns below the text. */
static void list_words(line_editor *e, const line_words *w) {
    int width = 0, col = 0;
    for (size_t i = 0; i < w->n; i++) {
        const int own = line_text_width(w->word[i], strlen(w->word[i])) + 2;
        width = own > width ? own : width;
    }
    line_view v = view(e);
    line_screen_leave(&e->screen, &v, &e->out);
    for (size_t i = 0; i < w->n && i < 200; i++) {
        if (col > 0 && col + width > e->screen.n_cols) {
            line_out_text(&e->out, "\r\n");
            col = 0;
        }
        put_word(e, w->word[i]);
        for (int k = line_text_width(w->word[i], strlen(w->word[i])); k < width; k++)
            line_out_text(&e->out, " ");
        col += width;
    }
    line_out_text(&e->out, "\r\n");
}

static size_t common_length(const line_words *w) {
    size_t n = strlen(w->word[0]);
    for (size_t i = 1; i < w->n; i++) {
        size_t same = 0;
        while (same < n && w->word[0][same] == w->word[i][same])
            same++;
        n = same;
    }
    while (n > 0 && ((unsigned char)w->word[0][n] & 0xc0) == 0x80)
        n--; /* whole characters */
    return n;
}

static void complete(line_editor *e) {
    line_words w = {0};
    line_buffer *b = &e->text;
    if (e->p.complete)
        e->p.complete(e->p.ctx, line_buffer_text(b), b->cursor, &w);
    const size_t n = w.n > 0 ? common_length(&w) : 0, had = b->cursor - w.start;
    if (w.n == 0) {
        bell(e);
    } else if (n > had || (w.n == 1 && n == had)) {
        (void)line_buffer_delete(b, w.start, b->cursor);
        (void)line_buffer_insert(b, w.word[0], n);
    } else if (e->was_tab) {
        list_words(e, &w);
    } else {
        bell(e);
    }
    words_fini(&w);
}

/* --- keys ------------------------------------------------------------------------------------- */

static line_result do_enter(line_editor *e) {
    line_buffer *b = &e->text;
    const bool slash = b->cursor == b->n && b->n > 0 && b->s[b->n - 1] == '\\';
    if (slash)
        (void)line_buffer_delete(b, b->n - 1, b->n);
    if (slash == e->p.multiline)
        return LINE_DONE;
    (void)line_buffer_insert(b, "\n", 1);
    return LINE_MORE;
}

static line_result do_end(line_editor *e) {
    line_buffer *b = &e->text;
    if (b->n == 0)
        return LINE_END;
    ring_unless(e, line_buffer_delete(b, b->cursor, line_buffer_after(b, b->cursor)));
    return LINE_MORE;
}

static void kill_to(line_editor *e, size_t to) {
    const size_t at = e->text.cursor;
    ring_unless(e, line_buffer_kill(&e->text, to < at ? to : at, to < at ? at : to));
}

/* Keys that move the cursor or delete; false if it is another key. */
static bool move_key(line_editor *e, uint32_t key) {
    line_buffer *b = &e->text;
    const size_t at = b->cursor;
    switch (key) {
    case KEY_LEFT:
    case KEY_CTRL('B'):
        b->cursor = line_buffer_before(b, at);
        return true;
    case KEY_RIGHT:
    case KEY_CTRL('F'):
        b->cursor = line_buffer_after(b, at);
        return true;
    case KEY_HOME:
    case KEY_CTRL('A'):
        b->cursor = line_buffer_line_begin(b, at);
        return true;
    case KEY_END:
    case KEY_CTRL('E'):
        b->cursor = line_buffer_line_end(b, at);
        return true;
    case KEY_WORD_LEFT:
        b->cursor = line_buffer_word_before(b, at);
        return true;
    case KEY_WORD_RIGHT:
        b->cursor = line_buffer_word_after(b, at);
        return true;
    case KEY_UP:
    case KEY_CTRL('P'):
        go_up(e);
        return true;
    case KEY_DOWN:
    case KEY_CTRL('N'):
        go_down(e);
        return true;
    default:
        return false;
    }
}

static bool delete_key(line_editor *e, uint32_t key) {
    line_buffer *b = &e->text;
    const size_t at = b->cursor;
    switch (key) {
    case 127:
    case '\b':
        ring_unless(e, line_buffer_delete(b, line_buffer_before(b, at), at));
        return true;
    case KEY_DELETE:
        ring_unless(e, line_buffer_delete(b, at, line_buffer_after(b, at)));
        return true;
    case KEY_CTRL('K'): /* at the end of a line: its newline */
        kill_to(e, at < b->n && b->s[at] == '\n' ? at + 1 : line_buffer_line_end(b, at));
        return true;
    case KEY_CTRL('U'):
        kill_to(e, line_buffer_line_begin(b, at));
        return true;
    case KEY_CTRL('W'):
        kill_to(e, line_buffer_space_before(b, at));
        return true;
    case KEY_ALT_BACKSPACE:
        kill_to(e, line_buffer_word_before(b, at));
        return true;
    case KEY_ALT_D:
        kill_to(e, line_buffer_word_after(b, at));
        return true;
    case KEY_CTRL('Y'):
        ring_unless(e, line_buffer_yank(b));
        return true;
    case KEY_CTRL('T'):
        ring_unless(e, line_buffer_swap(b));
        return true;
    default:
        return false;
    }
}

static line_result other_key(line_editor *e, uint32_t key, const char *s, size_t n) {
    switch (key) {
    case '\r':
        return do_enter(e);
    case '\n':
    case KEY_ALT_ENTER:
        (void)line_buffer_insert(&e->text, "\n", 1);
        break;
    case KEY_CTRL('C'):
        return LINE_INTERRUPT;
    case KEY_CTRL('D'):
        return do_end(e);
    case KEY_CTRL('Z'):
        return LINE_SUSPEND;
    case KEY_CTRL('L'):
        line_out_text(&e->out, "\033[H\033[2J");
        e->screen.drawn = 0;
        break;
    case KEY_CTRL('R'):
        begin_search(e);
        break;
    case '\t':
        complete(e);
        break;
    case KEY_PASTE_BEGIN:
        e->pastes = true;
        break;
    default:
        if (n > 0 && key >= 32)
            ring_unless(e, line_buffer_insert(&e->text, s, n));
    }
    return LINE_MORE;
}

/* --- pasted text ------------------------------------------------------------------------------ */

static void insert_pasted(line_editor *e) {
    if (e->pasted.n > 0)
        ring_unless(e, line_buffer_insert(&e->text, e->pasted.s, e->pasted.n));
    line_buffer_clear(&e->pasted);
}

/* Collects a pasted text, without its control characters: \r\n and \r become newlines. */
static void paste_key(line_editor *e, uint32_t key, const char *s, size_t n) {
    const bool second = key == '\n' && e->after_return;
    e->after_return = key == '\r';
    if (key == KEY_PASTE_END) {
        e->pastes = false;
        insert_pasted(e);
    } else if (key == '\r' || (key == '\n' && !second)) {
        (void)line_buffer_insert(&e->pasted, "\n", 1);
    } else if (n > 0 && (key >= 32 || key == '\t') && key != 127) {
        (void)line_buffer_insert(&e->pasted, s, n);
    }
}

/* --- the public functions --------------------------------------------------------------------- */

line_editor *line_editor_new(const line_editor_params *p) {
    line_editor *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->p = *p;
    e->screen = (line_screen){.n_cols = 80, .n_rows = 24};
    e->prompt = "";
    return e;
}

void line_editor_free(line_editor *e) {
    if (!e)
        return;
    line_buffer_fini(&e->text);
    line_buffer_fini(&e->draft);
    line_buffer_fini(&e->pasted);
    line_buffer_fini(&e->query);
    ggl_free(e->out.s);
    free(e);
}

void line_editor_resize(line_editor *e, int n_cols, int n_rows) {
    const line_view v = view(e);
    line_screen_resize(&e->screen, &v, n_cols, n_rows);
}

void line_editor_begin(line_editor *e, const char *prompt) {
    e->prompt = prompt;
    line_buffer_clear(&e->text);
    line_buffer_clear(&e->draft);
    e->at = n_entries(e);
    e->searches = e->was_tab = e->left = false;
    e->screen.top = e->screen.drawn = 0;
}

void line_editor_leave(line_editor *e) {
    if (e->left)
        return;
    insert_pasted(e);
    e->searches = false;
    const line_view v = view(e);
    line_screen_leave(&e->screen, &v, &e->out);
    e->left = true;
}

void line_editor_forget(line_editor *e) {
    e->screen.drawn = 0;
}

void line_editor_idle(line_editor *e) {
    if (e->pastes) { /* the rest of an escape sequence may come late */
        insert_pasted(e);
        e->paused = true;
        return;
    }
    const uint32_t key = line_keys_idle(&e->keys);
    if (key == KEY_ESCAPE && e->searches)
        (void)search_key(e, key, NULL, 0);
}

static line_result take_key(line_editor *e, uint32_t key) {
    char s[4];
    const size_t n = key >= KEY_FIRST ? 0 : char_write(key, s); /* the others are no characters */
    line_result r = LINE_MORE;
    if (e->pastes && e->paused && key == KEY_CTRL('C')) { /* the mark of its end was lost */
        e->pastes = false;
        insert_pasted(e);
        r = LINE_INTERRUPT;
    } else if (e->pastes)
        paste_key(e, key, s, n);
    else if (!(e->searches && search_key(e, key, s, n)) && !move_key(e, key) && !delete_key(e, key))
        r = other_key(e, key, s, n);
    e->paused = false;
    e->was_tab = key == '\t';
    return r;
}

line_result line_editor_feed(line_editor *e, const char *bytes, size_t n, size_t *used) {
    line_result r = LINE_MORE;
    size_t i = 0;
    while (i < n && r == LINE_MORE) {
        bool again;
        const uint32_t key = line_keys_take(&e->keys, (unsigned char)bytes[i], &again);
        i += !again;
        if (key != KEY_NONE)
            r = take_key(e, key);
    }
    if (r != LINE_MORE && r != LINE_SUSPEND)
        line_editor_leave(e);
    *used = i;
    return r;
}

const char *line_editor_draw(line_editor *e, size_t *n) {
    if (!e->left) {
        const line_view v = view(e);
        line_screen_draw(&e->screen, &v, &e->out);
    }
    *n = e->out.n;
    e->out.n = 0;
    return e->out.s ? e->out.s : "";
}

const char *line_editor_text(const line_editor *e, size_t *n) {
    *n = e->text.n;
    return line_buffer_text(&e->text);
}
