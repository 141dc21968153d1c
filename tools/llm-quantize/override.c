/* --tensor-type, --tensor-type-file and --override-kv. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/pattern.h"
#include "job.h"

static int read_override(const char *flag, quant_override *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return tool_error(TOOL, 2, "%s: '%s' is not PATTERN=TYPE", flag, text);
    o->text = text;
    int code = read_type(flag, equals + 1, false, &o->type);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    const ggl_status st = tool_pattern(&o->pattern, text, (size_t)(equals - text), &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 2, "%s: %s", flag, err.msg);
}

static const char spaces[] = " \t\r\n";

/* Returns how many words the text has. */
static size_t count_words(const char *s) {
    size_t n = 0;
    for (s += strspn(s, spaces); *s; s += strspn(s, spaces), n++)
        s += strcspn(s, spaces);
    return n;
}

int read_tensor_types(job *j) {
    enum { MOST = 16 << 20 };
    quant_choice *c = &j->choice;
    const arg_list *list = &j->o.tensor_types;
    size_t size = 0, n = list->n;
    if (j->o.tensor_type_file) {
        j->type_file = tool_read_at_most(TOOL, j->o.tensor_type_file, MOST, &size);
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
    for (char *s = j->type_file; code < 0 && c->n_override < n;) {
        s += strspn(s, spaces);
        char *end = s + strcspn(s, spaces);
        char *next = *end ? end + 1 : end;
        *end = '\0';
        code = read_override("--tensor-type-file", &c->override[c->n_override], s);
        c->n_override += code < 0;
        s = next;
    }
    return code;
}

static bool read_value(quant_key *k, const char *type, size_t n, const char *value) {
    char *end;
    errno = 0;
    if (n == 3 && memcmp(type, "int", 3) == 0) {
        const long long v = strtoll(value, &end, 10);
        k->type = v >= 0 && v <= UINT32_MAX ? GGL_GGUF_U32 : GGL_GGUF_I64;
        if (k->type == GGL_GGUF_U32)
            k->is.u32 = (uint32_t)v;
        else
            k->is.i64 = v;
        return *value && !*end && errno == 0;
    }
    if (n == 5 && memcmp(type, "float", 5) == 0) {
        k->type = GGL_GGUF_F32;
        k->is.f32 = strtof(value, &end);
        return *value && !*end && isfinite(k->is.f32);
    }
    if (n == 4 && memcmp(type, "bool", 4) == 0) {
        k->type = GGL_GGUF_BOOL;
        k->is.truth = strcmp(value, "true") == 0;
        return k->is.truth || strcmp(value, "false") == 0;
    }
    k->type = GGL_GGUF_STRING;
    k->is.text = value;
    return n == 3 && memcmp(type, "str", 3) == 0;
}

int read_key_overrides(job *j) {
    const arg_list *list = &j->o.override_kv;
    j->key = calloc(list->n + 1, sizeof *j->key);
    if (!j->key)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->s[i], *equals = strchr(text, '=');
        const char *colon = equals ? strchr(equals, ':') : NULL;
        const size_t n = equals ? (size_t)(equals - text) : 0;
        quant_key *k = &j->key[i];
        if (n >= sizeof k->key)
            return tool_error(TOOL, 2, "--override-kv: the key '%.40s..' is too long", text);
        memcpy(k->key, text, n);
        if (!colon || n == 0 || !read_value(k, equals + 1, (size_t)(colon - equals - 1), colon + 1))
            return tool_error(
                TOOL, 2,
                "--override-kv: '%s' is not KEY=TYPE:VALUE, with the TYPE int, float, "
                "bool (true, false) or str",
                text);
    }
    return -1;
}
