/* --tensor-type, --tensor-type-file and --override-kv. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "job.h"
#include "ggl/internal/os_fs.h"

static int read_override(const char *flag, quant_override *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return tool_error(TOOL, 2, "%s: '%s' is not PATTERN=TYPE", flag, text);
    o->text = text;
    int code = read_type(flag, equals + 1, &o->type);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    const ggl_status st =
        llm_pattern_read(&o->pattern, (ggl_str){text, (size_t)(equals - text)}, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 2, "%s: %s", flag, err.msg);
}

/* Cuts the next line out of *s, without its comment (from # on). NULL if none. */
static char *next_line(char **s) {
    char *line = *s, *end = line + strcspn(line, "\n");
    if (!*line)
        return NULL;
    *s = *end ? end + 1 : end;
    *end = '\0';
    line[strcspn(line, "#")] = '\0';
    return line;
}

/* Cuts the next word out of *s. NULL if none. */
static char *next_word(char **s) {
    static const char spaces[] = " \t\r";
    char *word = *s + strspn(*s, spaces), *end = word + strcspn(word, spaces);
    if (!*word)
        return NULL;
    *s = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

/* Reads the words of a file's text, which it cuts into pieces. */
static int read_file_types(job *j, size_t most) {
    quant_choice *c = &j->choice;
    char flag[OS_MOST_PATH + 64], *line, *word;
    int code = -1, n_line = 0;
    for (char *s = j->type_file; code < 0 && (line = next_line(&s));) {
        snprintf(flag, sizeof flag, "--tensor-type-file: %s:%d", j->o.tensor_type_file, ++n_line);
        while (code < 0 && c->n_override < most && (word = next_word(&line))) {
            code = read_override(flag, &c->override[c->n_override], word);
            c->n_override += code < 0;
        }
    }
    return code;
}

/* Returns how many words the text can have at most. */
static size_t count_words(const char *s) {
    size_t n = 1;
    for (; *s; s++)
        n += strchr(" \t\r\n", *s) != NULL;
    return n;
}

int read_tensor_types(job *j) {
    enum { MOST = 16 << 20 };
    quant_choice *c = &j->choice;
    const arg_list *list = &j->o.tensor_types;
    size_t size = 0, n = list->n;
    if (j->o.tensor_type_file) {
        j->type_file = tool_read_raw_text(TOOL, j->o.tensor_type_file, MOST, &size);
        if (!j->type_file)
            return 1;
        if (strlen(j->type_file) != size)
            return tool_error(TOOL, 1, "--tensor-type-file: %s is not a text",
                              j->o.tensor_type_file);
        n += count_words(j->type_file);
    }
    c->override = calloc(n + 1, sizeof *c->override);
    if (!c->override)
        return tool_error(TOOL, 1, "out of memory");
    int code = -1;
    for (size_t i = 0; code < 0 && i < list->n; i++) {
        code = read_override("--tensor-type", &c->override[i], list->s[i]);
        c->n_override += code < 0;
    }
    return code < 0 && j->type_file ? read_file_types(j, n) : code;
}

int read_key_overrides(job *j) {
    const arg_list *list = &j->o.override_kv;
    ggl_error err = {0};
    j->key = calloc(list->n + 1, sizeof *j->key);
    if (!j->key)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < list->n; i++)
        if (llm_quant_read_key(&j->key[i], list->s[i], &err) != GGL_OK)
            return tool_error(TOOL, 2, "--override-kv: %s", err.msg);
    return -1;
}

/* Overrides that change no key of IN are often misspelled. */
void note_key_overrides(const job *j) {
    for (size_t i = 0; i < j->o.override_kv.n; i++) {
        const quant_key *k = &j->key[i];
        const ggl_gguf_value *v = ggl_gguf_find(j->file, k->key);
        if (!v)
            tool_note(TOOL, "--override-kv: %s has no key '%s'; it is added", j->o.in, k->key);
        else if (v->is_array)
            tool_note(TOOL, "--override-kv: '%s' is a list in %s, and becomes one value", k->key,
                      j->o.in);
        else if (v->type != k->type)
            tool_note(TOOL, "--override-kv: '%s' is of type %s in %s, and becomes %s", k->key,
                      ggl_gguf_type_name(v->type), j->o.in, ggl_gguf_type_name(k->type));
    }
}
