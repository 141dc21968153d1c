/* Names of mixes and types. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/hints.h"
#include "ggl/nearest.h"
#include "job.h"

static void nearest(const char *name, const char *known, const char **best, size_t *distance) {
    char a[64], b[64];
    size_t n = 0, m = 0;
    for (; name[n] && n < 63; n++)
        a[n] = (char)(name[n] | 0x20); /* ignores case */
    for (; known[m] && m < 63; m++)
        b[m] = (char)(known[m] | 0x20);
    size_t d = ggl_same_letters(a, n, b, m) ? 0 : args_distance(a, n, b, m);
    if (d < *distance) {
        *distance = d;
        *best = known;
    }
}

/* Reports "--x: 'q8_9' is no type; did you mean 'q8_0'?". */
static int unknown_type(const char *flag, const char *name, bool mixes) {
    const char *best = NULL;
    size_t distance = strlen(name) / 3 + 2;
    for (int k = 0; mixes && llm_quant_mix_at(k); k++)
        nearest(name, llm_quant_mix_at(k)->name, &best, &distance);
    for (int k = 0; ggl_type_at(k); k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            nearest(name, ggl_type_at(k)->name, &best, &distance);
    if (best)
        return tool_error(TOOL, 2, "%s: '%s' is not a type; did you mean '%s'?", flag, name, best);
    return tool_error(TOOL, 2, "%s: '%s' is not a type; --help lists them", flag, name);
}

int read_type(const char *flag, const char *name, bool mixes, const ggl_type_info **out) {
    ggl_error err = {0};
    *out = llm_quant_type_find(name, &err);
    if (*out)
        return -1;
    for (int k = 0; ggl_type_at(k); k++)
        if (strcasecmp(ggl_type_at(k)->name, name) == 0)
            return tool_error(TOOL, 1, "%s: %s", flag, err.msg);
    for (int id = 0; id < 256; id++)
        if (ggl_type_foreign_name(id) && strcasecmp(ggl_type_foreign_name(id), name) == 0)
            return tool_error(TOOL, 1, "%s: %s", flag, err.msg);
    return unknown_type(flag, name, mixes);
}

const char *type_name(const char *text) {
    int64_t number;
    bool range;
    if (!args_read_int(text, &number, &range))
        return text;
    for (int k = 0; llm_quant_mix_at(k); k++)
        if (llm_quant_mix_at(k)->file_type == number)
            return llm_quant_mix_at(k)->name;
    return text;
}

bool is_type_name(const char *text) {
    ggl_error err = {0};
    const char *name = type_name(text);
    return llm_quant_mix_find(name) || llm_quant_type_find(name, &err) ||
           strcasecmp(name, "COPY") == 0;
}

/* Prints the names after a heading. */
static void list_names(const char *heading, const char *(*name_at)(int k)) {
    char text[1024] = "";
    size_t n = 0;
    const char *name;
    putchar('\n');
    tool_print_wrapped(heading, 0, 0);
    fputs("  ", stdout);
    for (int k = 0; n < sizeof text && (name = name_at(k)); k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n && *name ? " " : "", name);
    tool_print_wrapped(text, 2, 2);
}

static const char *mix_at(int k) {
    return llm_quant_mix_at(k) ? llm_quant_mix_at(k)->name : NULL;
}

/* "" stands for a type that weights cannot have. */
static const char *type_at(int k) {
    const ggl_type_info *t = ggl_type_at(k);
    return !t ? NULL : llm_quant_type_usable(t) ? t->name : "";
}

void list_types(void) {
    list_names("mixes (most of a file in one type, more important tensors in others)", mix_at);
    list_names("types", type_at);
    putchar('\n');
    tool_print_wrapped("COPY: each tensor keeps its type, except those that flags name", 0, 0);
}

const char *const *all_types(void) {
    enum { MOST = 128 };
    static const char *name[MOST + 1];
    int n = 0;
    for (int k = 0; n < MOST && mix_at(k); k++)
        name[n++] = mix_at(k);
    for (int k = 0; n < MOST && type_at(k); k++)
        if (*type_at(k))
            name[n++] = type_at(k);
    if (n < MOST)
        name[n++] = "COPY";
    name[n] = NULL;
    return name;
}
