#include "formats.h"

#include <stdio.h>
#include <string.h>

#include "common/lines.h"
#include "ggl/internal/text.h"
#include "llm/internal/calls.h"

extern const unsigned char llm_call_formats_text[];
extern const size_t llm_call_formats_text_size;

enum { MAX_WORD = 128 };

static ggl_str whole_table(void) {
    return (ggl_str){(const char *)llm_call_formats_text, llm_call_formats_text_size};
}

/* Takes a character of a word; after a backslash in quotes, the one that it stands for. */
static char next_char(ggl_str *line, bool quoted) {
    char c = *line->s++;
    line->n--;
    if (!quoted || c != '\\' || line->n == 0)
        return c;
    c = *line->s++;
    line->n--;
    return c == 'n' ? '\n' : c;
}

/* Reads the next word into `word`; *plain: it was not quoted. Returns its length; 0: none, or too
 * long. */
static size_t next_word(ggl_str *line, char word[MAX_WORD], bool *plain) {
    while (line->n > 0 && *line->s == ' ') {
        line->s++;
        line->n--;
    }
    const bool quoted = line->n > 0 && *line->s == '"';
    *plain = !quoted;
    if (quoted) {
        line->s++;
        line->n--;
    }
    size_t n = 0;
    while (line->n > 0 && *line->s != (quoted ? '"' : ' ')) {
        if (n == MAX_WORD)
            return 0;
        word[n++] = next_char(line, quoted);
    }
    if (quoted && line->n > 0) {
        line->s++;
        line->n--;
    }
    return n;
}

static bool word_is(const char *word, size_t n, const char *text) {
    return ggl_str_is((ggl_str){word, n}, text);
}

/* True if all words of an `in` line stand in the text. */
static bool all_stand_in(ggl_str line, ggl_str text) {
    char word[MAX_WORD];
    bool plain;
    size_t n;
    while ((n = next_word(&line, word, &plain)) > 0)
        if (!ggl_find_bytes(text.s, text.n, word, n))
            return false;
    return true;
}

ggl_str llm_calls_format(ggl_str template_text) {
    ggl_str text = whole_table(), line, name = {0};
    while (llm_take_entry(&text, &line)) {
        char word[MAX_WORD];
        bool plain;
        size_t n = next_word(&line, word, &plain);
        if (word_is(word, n, "format"))
            name = (ggl_str){line.s + 1, line.n - 1};
        else if (word_is(word, n, "in") && template_text.n > 0 && all_stand_in(line, template_text))
            return name;
    }
    return template_text.n > 0 ? (ggl_str){"reasoning", 9} : (ggl_str){"plain", 5};
}

llm_calls_tokens llm_calls_tokens_of(ggl_str format) {
    return llm_calls_format_has_calls(format) ? LLM_CALLS_ALL_TOKENS : LLM_CALLS_THINK_TOKENS;
}

bool llm_calls_is_text(llm_calls_tokens tokens, ggl_str control_token) {
    return tokens == LLM_CALLS_ALL_TOKENS ||
           (tokens == LLM_CALLS_THINK_TOKENS &&
            (ggl_str_is(control_token, "<think>") || ggl_str_is(control_token, "</think>")));
}

ggl_str llm_calls_format_name(int k) {
    static const char begin[] = "format ";
    ggl_str text = whole_table(), line;
    while (llm_take_entry(&text, &line))
        if (line.n > sizeof begin && memcmp(line.s, begin, sizeof begin - 1) == 0 && k-- == 0)
            return (ggl_str){line.s + sizeof begin - 1, line.n - (sizeof begin - 1)};
    return (ggl_str){0};
}

bool llm_calls_format_has_calls(ggl_str name) {
    ggl_str text = whole_table(), line;
    bool found = false;
    while (llm_take_entry(&text, &line)) {
        char word[MAX_WORD];
        bool plain;
        const size_t n = next_word(&line, word, &plain);
        if (word_is(word, n, "format"))
            found = line.n - 1 == name.n && memcmp(line.s + 1, name.s, name.n) == 0;
        else if (found && word_is(word, n, "call"))
            return true;
    }
    return false;
}

/* --- a format --------------------------------------------------------------------------------- */

static const char *const field_names[] = {
    [PIECE_START] = "^",         [PIECE_ANY] = "*",           [PIECE_TREE] = "{tree}",
    [PIECE_NAME] = "{name}",     [PIECE_PATH] = "{path}",     [PIECE_ID] = "{id}",
    [PIECE_SKIP] = "{skip}",     [PIECE_ARGS] = "{args}",     [PIECE_JSON] = "{json}",
    [PIECE_MAP] = "{map}",       [PIECE_PYTHON] = "{python}", [PIECE_LOOSE] = "{loose}",
    [PIECE_PARAMS] = "{params}", [PIECE_KEY] = "{key}",       [PIECE_VALUE] = "{value}",
    [PIECE_STRING] = "{string}", [PIECE_TYPE] = "{type}",
};

/* Copies the next word of a line; n == 0 if none. */
static bool take(call_format *f, ggl_str *line, ggl_str *out, bool *plain) {
    char word[MAX_WORD];
    *out = (ggl_str){NULL, next_word(line, word, plain)};
    if (out->n == 0)
        return true;
    out->s = ggl_arena_strndup(&f->text, word, out->n);
    f->no_memory = !out->s;
    return out->s != NULL;
}

static piece piece_of(ggl_str word, bool plain) {
    for (int k = PIECE_START; plain && k <= PIECE_TYPE; k++)
        if (ggl_str_is(word, field_names[k]))
            return (piece){.kind = (piece_kind)k};
    piece p = {.kind = PIECE_TEXT, .text = word};
    if (plain && word.n > 1 && word.s[0] == '?') {
        p.optional = true;
        p.text = (ggl_str){word.s + 1, word.n - 1};
    }
    return p;
}

/* Adds a mark, unless it is there already: patterns may share one. False: too many. */
static bool add_mark(call_format *f, ggl_str text, mark_role role, ggl_str close) {
    for (int i = 0; i < f->n_marks; i++)
        if (f->mark[i].text.n == text.n && memcmp(f->mark[i].text.s, text.s, text.n) == 0)
            return true;
    if (f->n_marks == MAX_MARKS)
        return false;
    f->mark[f->n_marks++] = (mark){.text = text, .role = role, .close = close};
    f->first[(unsigned char)text.s[0]] = true;
    return true;
}

static bool read_pattern(call_format *f, ggl_str *line, pattern *p) {
    for (;;) {
        ggl_str word;
        bool plain;
        if (!take(f, line, &word, &plain))
            return false;
        if (word.n == 0)
            return p->n > 1;
        if (p->n == MAX_PIECES)
            return false;
        p->piece[p->n++] = piece_of(word, plain);
    }
}

static bool read_call(call_format *f, ggl_str *line) {
    if (f->n_calls == MAX_PATTERNS)
        return false;
    pattern *p = &f->call[f->n_calls++];
    if (!read_pattern(f, line, p))
        return false;
    f->may_start = f->may_start || p->piece[0].kind == PIECE_START;
    f->anywhere = f->anywhere || p->piece[0].kind == PIECE_ANY;
    if (p->piece[0].kind != PIECE_TEXT)
        return p->piece[0].kind <= PIECE_ANY;
    return add_mark(f, p->piece[0].text, MARK_CALL, (ggl_str){0});
}

static bool read_drop(call_format *f, ggl_str *line) {
    for (;;) {
        ggl_str word;
        bool plain;
        if (!take(f, line, &word, &plain))
            return false;
        if (word.n == 0)
            return true;
        if (!add_mark(f, word, MARK_DROP, (ggl_str){0}))
            return false;
    }
}

static bool add_think(call_format *f, ggl_str open, ggl_str close, ggl_str other) {
    if (!add_mark(f, open, MARK_THINK, close))
        return false;
    f->mark[f->n_marks - 1].other_close = other;
    return true;
}

static bool read_line(call_format *f, ggl_str line) {
    char word[MAX_WORD];
    bool plain;
    const size_t n = next_word(&line, word, &plain);
    ggl_str close = {0}, open, other = {0};
    if (word_is(word, n, "in"))
        return true;
    if (word_is(word, n, "think"))
        return take(f, &line, &open, &plain) && take(f, &line, &close, &plain) && close.n > 0 &&
               take(f, &line, &other, &plain) && add_think(f, open, close, other);
    if (word_is(word, n, "drop"))
        return read_drop(f, &line);
    if (word_is(word, n, "call"))
        return read_call(f, &line);
    if (word_is(word, n, "arg"))
        return read_pattern(f, &line, &f->arg);
    if (word_is(word, n, "keys"))
        return take(f, &line, &f->name_key, &plain) && take(f, &line, &f->args_key, &plain) &&
               take(f, &line, &f->id_key, &plain);
    if (word_is(word, n, "lines"))
        return f->lines = true;
    if (word_is(word, n, "late-ids"))
        return f->late_ids = true;
    if (word_is(word, n, "verbatim"))
        return take(f, &line, &f->verbatim, &plain) && take(f, &line, &f->verbatim_end, &plain);
    if (word_is(word, n, "skip"))
        return take(f, &line, &f->skip, &plain) && take(f, &line, &f->skip_end, &plain);
    if (word_is(word, n, "quote"))
        return take(f, &line, &f->quote, &plain);
    if (word_is(word, n, "tag"))
        return take(f, &line, &f->tag, &plain);
    return word_is(word, n, "cut") && take(f, &line, &f->cut, &plain);
}

/* The marks that close calls are left out where they stand alone, as after a call whose text
 * ended early. */
static bool add_closing_marks(call_format *f) {
    for (int i = 0; i < f->n_calls; i++) {
        const piece *last = &f->call[i].piece[f->call[i].n - 1];
        const int n = f->n_marks;
        if (last->kind != PIECE_TEXT || last->text.n <= 3)
            continue;
        if (!add_mark(f, last->text, MARK_DROP, (ggl_str){0}))
            return false;
        if (f->n_marks > n)
            f->mark[n].ends_call = true;
    }
    return true;
}

void llm_call_format_drop_calls(call_format *f) {
    int n = 0;
    for (int k = 0; k < f->n_marks; k++)
        if (f->mark[k].role != MARK_CALL && !f->mark[k].ends_call)
            f->mark[n++] = f->mark[k];
    f->n_marks = n;
    f->n_calls = 0;
    f->may_start = f->anywhere = false;
}

static ggl_status not_found(ggl_str name, ggl_error *err) {
    char list[1024];
    size_t n = 0;
    ggl_str s;
    for (int k = 0; (s = llm_calls_format_name(k)).n > 0 && n < sizeof list; k++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.*s", k ? ", " : "", (int)s.n, s.s);
    return ggl_fail(err, GGL_NOT_FOUND, "there is no call format \"%.*s\"; there are %s",
                    (int)(name.n < 64 ? name.n : 64), name.s, list);
}

ggl_status llm_call_format_load(call_format *f, ggl_str name, ggl_error *err) {
    memset(f, 0, sizeof *f);
    f->name_key = (ggl_str){"name", 4};
    f->args_key = (ggl_str){"arguments|parameters", 20};
    f->id_key = (ggl_str){"id", 2};
    ggl_str text = whole_table(), line;
    bool found = false;
    while (llm_take_entry(&text, &line)) {
        ggl_str rest = line;
        char word[MAX_WORD];
        bool plain;
        const size_t n = next_word(&rest, word, &plain);
        if (word_is(word, n, "format")) {
            if (found)
                break;
            found = rest.n - 1 == name.n && memcmp(rest.s + 1, name.s, name.n) == 0;
        } else if (found && !read_line(f, line))
            return f->no_memory
                       ? ggl_fail(err, GGL_NOMEM, "out of memory for a call format")
                       : ggl_fail(err, GGL_FORMAT, "call_formats.txt: \"%.*s\" cannot be read",
                                  (int)line.n, line.s);
    }
    if (!found)
        return not_found(name, err);
    return add_closing_marks(f) ? GGL_OK
                                : ggl_fail(err, GGL_FORMAT, "call_formats.txt: too many marks");
}

void llm_call_format_fini(call_format *f) {
    ggl_arena_fini(&f->text);
}
