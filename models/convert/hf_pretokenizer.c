/* Finds GGUF's name for the way a tokenizer.json splits text into words, in
 * hf_pretokenizers.txt. */
#include <stdio.h>
#include <string.h>

#include "hf_tokenizer.h"

#include "ggl/internal/show.h"

extern const unsigned char llm_embedded_hf_pretokenizers[];
extern const size_t llm_embedded_hf_pretokenizers_size;

static bool same(ggl_str a, const char *s) {
    return a.n == strlen(s) && memcmp(a.s, s, a.n) == 0;
}

/* Returns v if it is a step of this type, else the first such step in its lists, or NULL. */
const json_value *llm_hf_step(const json_value *v, const char *type) {
    static const char *const lists[] = {"pretokenizers", "normalizers", "processors", "decoders"};
    if (llm_json_is(llm_json_get(v, "type"), type))
        return v;
    for (int k = 0; k < 4; k++) {
        const json_value *list = llm_json_get_kind(v, lists[k], JSON_ARRAY);
        for (size_t i = 0; list && i < list->n; i++) {
            const json_value *found = llm_hf_step(&list->item[i], type);
            if (found)
                return found;
        }
    }
    return NULL;
}

bool llm_hf_flag(const json_value *v, const char *name, bool fallback) {
    const json_value *x = llm_json_get_kind(v, name, JSON_BOOL);
    return x ? x->flag : fallback;
}

/* Appends a word to the line in buf, with a quote on both sides. False: no room. */
static bool put_word(char *buf, size_t size, const char *quote, ggl_str s) {
    size_t n = strlen(buf);
    return s.n < size && (size_t)snprintf(buf + n, size - n, "%s%s%.*s%s", n ? " " : "", quote,
                                          (int)s.n, s.s, quote) < size - n;
}

/* Appends a pre-tokenizer's steps as hf_pretokenizers.txt writes them: "/REGEX/ byte_level".
 * False: a step of another kind. */
static bool describe_step(const json_value *v, char *buf, size_t size) {
    const json_value *list = llm_json_get_kind(v, "pretokenizers", JSON_ARRAY),
                     *type = llm_json_get(v, "type");
    for (size_t i = 0; list && i < list->n; i++)
        if (!describe_step(&list->item[i], buf, size))
            return false;
    if (list)
        return true;
    if (llm_json_is(type, "ByteLevel"))
        return !llm_hf_flag(v, "use_regex", true) ||
               put_word(buf, size, "", (ggl_str){"byte_level", 10});
    if (llm_json_is(type, "Digits"))
        return put_word(buf, size, "/",
                        llm_hf_flag(v, "individual_digits", false) ? (ggl_str){"\\p{N}", 5}
                                                                   : (ggl_str){"\\p{N}+", 6});
    const json_value *regex = llm_json_get_kind(llm_json_get(v, "pattern"), "Regex", JSON_STRING);
    return llm_json_is(type, "Split") && regex && put_word(buf, size, "/", json_str(regex));
}

/* Finds the first line "WORD NAME REST" of the table with this name, or with this rest if name
 * is NULL. Sets *out to the other of the two. */
static bool find_line(const char *word, const char *name, const char *rest, ggl_str *out) {
    const char *s = (const char *)llm_embedded_hf_pretokenizers,
               *end = s + llm_embedded_hf_pretokenizers_size;
    for (const char *next; s < end; s = next) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        stop = stop ? stop : end;
        next = stop + 1;
        size_t n = strlen(word);
        if ((size_t)(stop - s) <= n + 1 || memcmp(s, word, n) != 0 || s[n] != ' ')
            continue;
        const char *key = s + n + 1, *space = memchr(key, ' ', (size_t)(stop - key));
        if (!space)
            continue;
        ggl_str k = {key, (size_t)(space - key)}, v = {space + 1, (size_t)(stop - space - 1)};
        if (name ? same(k, name) : same(v, rest)) {
            *out = name ? v : k;
            return true;
        }
    }
    return false;
}

bool llm_hf_pre_of_class(const char *class_name, ggl_str *pre, bool *both_ends) {
    if (!find_line("class", class_name, NULL, pre))
        return false;
    const char *space = memchr(pre->s, ' ', pre->n);
    *both_ends = space != NULL;
    if (space)
        pre->n = (size_t)(space - pre->s);
    return true;
}

bool llm_hf_pre_of_regex(ggl_str regex, ggl_str *pre) {
    char rest[2048];
    if (memchr(regex.s, 0, regex.n)) /* the rest of it would not be compared */
        return false;
    const int n = snprintf(rest, sizeof rest, "ignore_merges /%.*s/", (int)regex.n, regex.s);
    return regex.n < sizeof rest && (size_t)n < sizeof rest && find_line("pre", NULL, rest, pre);
}

bool llm_hf_unigram_ends(const char *class_name, const char *kind, int *add_bos, int *add_eos) {
    ggl_str ends = {"", 0};
    bool known = find_line("unigram", class_name[0] ? class_name : kind, NULL, &ends);
    if (!known)
        known = find_line("unigram", class_name[0] ? "*" : "-", NULL, &ends) && class_name[0];
    *add_bos = ends.n >= 3 && memcmp(ends.s, "bos", 3) == 0;
    *add_eos = ends.n >= 3 && memcmp(ends.s + ends.n - 3, "eos", 3) == 0;
    return known;
}

/* Finds the first line of the class, or of the class NAME if it is called NAMEFast. */
static bool find_class(const char *word, const char *class_name, ggl_str *rest) {
    char name[128];
    const size_t n = strlen(class_name);
    const bool fast = n > 4 && strcmp(class_name + n - 4, "Fast") == 0;
    snprintf(name, sizeof name, "%.*s", (int)(fast ? n - 4 : n), class_name);
    return find_line(word, name, NULL, rest);
}

bool llm_hf_ids_of_class(const char *class_name, ggl_str *ids) {
    return find_class("ids", class_name, ids);
}

bool llm_hf_languages_of_class(const char *class_name, ggl_str *tokens) {
    return find_class("languages", class_name, tokens);
}

bool llm_hf_after_pieces(const char *class_name, ggl_str *tokens) {
    return find_class("after", class_name, tokens);
}

bool llm_hf_class_is_typed(const char *class_name) {
    ggl_str rest;
    return find_class("typed", class_name, &rest);
}

bool llm_hf_class_composes(const char *class_name) {
    ggl_str form;
    return find_class("composes", class_name, &form);
}

bool llm_hf_class_folds(const char *class_name) {
    ggl_str flags;
    return find_class("fold", class_name, &flags);
}

/* Describes a pre-tokenizer of tokenizers.txt as above. False: no room, or tokenizer.json cannot have it. */
static bool describe_pre(const table_pre *pre, char *buf, size_t size) {
    snprintf(buf, size, "%s", pre->ignore_merges ? "ignore_merges" : "");
    bool ok = !pre->raw;
    for (int i = 0; i < pre->n_split && ok; i++)
        ok = put_word(buf, size, "/", pre->split[i]);
    return ok;
}

/* Finds the first pre-tokenizer of tokenizers.txt that is described so. */
static bool find_in_table(const char *found, ggl_str *out) {
    char described[4096];
    ggl_str name;
    for (int k = 0; llm_table_name("pre", k, &name); k++) {
        table_pre pre;
        if (llm_table_find_pre(name, &pre, NULL) == GGL_OK &&
            describe_pre(&pre, described, sizeof described) && strcmp(described, found) == 0) {
            *out = name;
            return true;
        }
    }
    return false;
}

bool llm_hf_find_pre(const json_value *file, char *found, size_t size, ggl_str *pre) {
    snprintf(found, size, "%s",
             llm_hf_flag(llm_json_get(file, "model"), "ignore_merges", false) ? "ignore_merges"
                                                                              : "");
    return describe_step(llm_json_get(file, "pre_tokenizer"), found, size) &&
           (find_line("pre", NULL, found, pre) || find_in_table(found, pre));
}

/* Takes the next word of a description: "/REGEX/", of which *regex becomes what is between the slashes, or another one, of
 * which it becomes empty. False: there is none. */
static bool next_step(ggl_str *rest, ggl_str *regex) {
    *regex = (ggl_str){"", 0};
    if (rest->n == 0)
        return false;
    const bool is_regex = rest->s[0] == '/';
    size_t end = is_regex ? 2 : 1; /* an expression has a character, which may be a space */
    while (end < rest->n && !(rest->s[end] == ' ' && (!is_regex || rest->s[end - 1] == '/')))
        end++;
    if (is_regex && end > 2)
        *regex = (ggl_str){rest->s + 1, end - 2};
    end += end < rest->n;
    *rest = (ggl_str){rest->s + end, rest->n - end};
    return true;
}

static void put_split(llm_json_out *out, ggl_str regex) {
    llm_json_format(out,
                    "{'type': 'Split', 'pattern': {'Regex': %.*s}, 'behavior': 'Isolated', "
                    "'invert': false}, ",
                    LLM_JSON_STR(regex));
}

void llm_hf_put_pre(llm_json_out *out, ggl_str name, const table_pre *pre) {
    char word[64];
    ggl_str rest = {"", 0}, regex;
    bool own_words = false; /* ByteLevel cuts words by its own pattern, too */
    snprintf(word, sizeof word, "%.*s", (int)ggl_utf8_cut(name.s, name.n, sizeof word - 1), name.s);
    const bool known = find_line("pre", word, NULL, &rest);
    llm_json_format(out, "{'type': 'Sequence', 'pretokenizers': [");
    while (known && next_step(&rest, &regex)) {
        if (regex.n > 0)
            put_split(out, regex);
        else
            own_words = rest.n == 0; /* the last one: the other word, ignore_merges, comes first */
    }
    for (int i = 0; !known && i < pre->n_split; i++)
        put_split(out, pre->split[i]);
    llm_json_format(out,
                    "{'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true, "
                    "'use_regex': %s}]}",
                    own_words ? "true" : "false");
}
