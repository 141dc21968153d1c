/* Reads tokenizers.txt, which describes its lines itself. The text is short, so each look-up
 * reads it from the start. */
#include <stdio.h>
#include <string.h>

#include "tokenizer_table.h"

#include "common/lines.h"
#include "ggl/internal/nearest.h"

extern const unsigned char llm_tokenizers_text[];
extern const size_t llm_tokenizers_text_size;

static bool str_same(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static ggl_str next_word(ggl_str *line) {
    size_t n = 0;
    while (line->n > 0 && line->s[0] == ' ') {
        line->s++;
        line->n--;
    }
    while (n < line->n && line->s[n] != ' ')
        n++;
    ggl_str word = {line->s, n};
    line->s += n;
    line->n -= n;
    return word;
}

static ggl_str whole_table(void) {
    return (ggl_str){(const char *)llm_tokenizers_text, llm_tokenizers_text_size};
}

bool llm_table_name(const char *what, int k, ggl_str *out) {
    ggl_str text = whole_table(), line;
    while (llm_take_entry(&text, &line)) {
        if (!ggl_str_is(next_word(&line), what))
            continue;
        for (ggl_str word = next_word(&line); word.n > 0 && !ggl_str_is(word, ":");
             word = next_word(&line)) {
            *out = word;
            if (k-- == 0)
                return true;
            if (strcmp(what, "model") == 0)
                break; /* kind and flags follow */
        }
    }
    return false;
}

bool llm_table_word(const char *what, int k, int i, ggl_str *out) {
    ggl_str text = whole_table(), line;
    while (llm_take_entry(&text, &line))
        if (ggl_str_is(next_word(&line), what) && k-- == 0) {
            do
                *out = next_word(&line);
            while (i-- > 0);
            return out->n > 0;
        }
    return false;
}

/* Fails with "KEY is 'x', which is not supported here (supported: a, b, ..); did you mean 'y'?", naming as many as fit. */
static ggl_status unsupported(const char *what, const char *key, ggl_str name, ggl_error *err) {
    char list[160] = "", wanted[GGL_NEAREST_LENGTH + 1];
    ggl_str known, meant = {"", 0};
    bool is_full = false;
    snprintf(wanted, sizeof wanted, "%.*s",
             (int)(name.n < GGL_NEAREST_LENGTH ? name.n : GGL_NEAREST_LENGTH), name.s);
    ggl_nearest near = ggl_nearest_to(wanted);
    for (int k = 0; llm_table_name(what, k, &known); k++) {
        const size_t used = strlen(list);
        ggl_nearest_try(&near, known.s, known.n);
        if (near.best == known.s)
            meant = known;
        const bool fits = used + known.n + 8 <= sizeof list;
        if (!is_full && fits)
            snprintf(list + used, sizeof list - used, "%s%.*s", k > 0 ? ", " : "", (int)known.n,
                     known.s);
        else if (!is_full)
            strcat(list, ", ..");
        is_full |= !fits;
    }
    return ggl_fail(
        err, GGL_UNSUPPORTED, "%s is '%.*s', which is not supported here (supported: %s)%s%.*s%s",
        key, (int)(name.n < 40 ? name.n : 40), name.s, list, meant.n > 0 ? "; did you mean '" : "",
        (int)meant.n, meant.s, meant.n > 0 ? "'?" : "");
}

static ggl_status table_wrong(ggl_str line, ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT, "tokenizers.txt: near '%.*s'",
                    (int)(line.n < 60 ? line.n : 60), line.s);
}

/* Parses a flag like "bos=11". */
static bool flag_id(ggl_str flag, const char *name, int32_t *out) {
    size_t n = strlen(name);
    int32_t id = 0;
    if (flag.n <= n || memcmp(flag.s, name, n) != 0)
        return false;
    for (; n < flag.n && flag.s[n] >= '0' && flag.s[n] <= '9' && id < 1 << 24; n++)
        id = id * 10 + (flag.s[n] - '0');
    *out = id;
    return n == flag.n;
}

/* Parses "pre=gemma4". */
static bool flag_pre(ggl_str flag, table_model *out) {
    if (flag.n <= 4 || memcmp(flag.s, "pre=", 4) != 0)
        return false;
    out->pre = (ggl_str){flag.s + 4, flag.n - 4};
    return true;
}

static bool flag_bool(ggl_str flag, table_model *out) {
    const struct {
        const char *name;
        bool *set;
    } flags[] = {{"add_bos", &out->add_bos},       {"add_eos", &out->add_eos},
                 {"always_bos", &out->always_bos}, {"always_eos", &out->always_eos},
                 {"cls_sep", &out->cls_sep},       {"dna", &out->dna}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (ggl_str_is(flag, flags[i].name))
            return *flags[i].set = true;
    return false;
}

ggl_status llm_table_find_model(ggl_str name, table_model *out, ggl_error *err) {
    ggl_str text = whole_table(), line;
    while (llm_take_entry(&text, &line)) {
        if (!ggl_str_is(next_word(&line), "model") || !str_same(next_word(&line), name))
            continue;
        *out = (table_model){.kind = next_word(&line), .bos = -1, .eos = -1, .unknown = -1};
        for (ggl_str flag = next_word(&line); flag.n > 0; flag = next_word(&line)) {
            if (!flag_bool(flag, out) && !flag_pre(flag, out) &&
                !flag_id(flag, "bos=", &out->bos) && !flag_id(flag, "eos=", &out->eos) &&
                !flag_id(flag, "unknown=", &out->unknown))
                return table_wrong(flag, err);
        }
        return GGL_OK;
    }
    return unsupported("model", "tokenizer.ggml.model", name, err);
}

ggl_str llm_table_model_of_kind(const char *kind) {
    ggl_str name;
    for (int k = 0; llm_table_name("model", k, &name); k++) {
        table_model row;
        if (llm_table_find_model(name, &row, NULL) == GGL_OK && ggl_str_is(row.kind, kind))
            return name;
    }
    return (ggl_str){"", 0};
}

/* Returns the text between the first and the last slash of a line. */
static bool between_slashes(ggl_str line, ggl_str *out) {
    const char *first = memchr(line.s, '/', line.n);
    size_t n = line.n;
    while (n > 0 && line.s[n - 1] != '/')
        n--;
    if (!first || (size_t)(first - line.s) + 1 >= n)
        return false;
    *out = (ggl_str){first + 1, n - 2 - (size_t)(first - line.s)};
    return true;
}

bool llm_table_find_pattern(ggl_str name, ggl_str *out) {
    ggl_str text = whole_table(), line;
    while (llm_take_entry(&text, &line))
        if (ggl_str_is(next_word(&line), "pattern") && str_same(next_word(&line), name))
            return between_slashes(line, out);
    return false;
}

/* Reads a split line: an expression, or the name of one. */
static bool read_split(ggl_str line, ggl_str *out) {
    return between_slashes(line, out) || llm_table_find_pattern(next_word(&line), out);
}

static bool pre_flag(ggl_str flag, table_pre *out) {
    const struct {
        const char *name;
        bool *set;
    } flags[] = {{"ignore_merges", &out->ignore_merges},
                 {"add_bos", &out->add_bos},
                 {"always_bos", &out->always_bos},
                 {"raw", &out->raw},
                 {"spaced", &out->spaced},
                 {"newlines", &out->newlines},
                 {"drop_white", &out->drop_white}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (ggl_str_is(flag, flags[i].name))
            return *flags[i].set = true;
    return false;
}

/* True if a pre line contains this name. Also reads the flags after it. */
static bool pre_line(ggl_str line, ggl_str name, table_pre *out, bool *wrong) {
    bool found = false;
    ggl_str word = next_word(&line);
    for (; word.n > 0 && !ggl_str_is(word, ":"); word = next_word(&line))
        found = found || str_same(word, name);
    for (word = next_word(&line); found && word.n > 0; word = next_word(&line)) {
        *wrong = !pre_flag(word, out) || *wrong;
    }
    return found;
}

ggl_status llm_table_find_pre(ggl_str name, table_pre *out, ggl_error *err) {
    ggl_str text = whole_table(), line;
    bool found = false, wrong = false;
    *out = (table_pre){0};
    while (llm_take_entry(&text, &line)) {
        ggl_str rest = line, what = next_word(&rest);
        if (ggl_str_is(what, "pre")) {
            if (found && out->n_split > 0)
                return GGL_OK;
            /* a pre-tokenizer's names may take several lines */
            found = pre_line(rest, name, out, &wrong) || found;
        } else if (found && ggl_str_is(what, "split")) {
            wrong = wrong || out->n_split == TABLE_MAX_SPLITS ||
                    !read_split(rest, &out->split[out->n_split++]);
        }
        if (wrong)
            return table_wrong(line, err);
    }
    return found ? GGL_OK : unsupported("pre", "tokenizer.ggml.pre", name, err);
}
