/* Names of mixes and types. */
#include <stdio.h>
#include <string.h>

#include "common/hints.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"
#include "job.h"

int read_type(const char *flag, const char *name, const ggl_type_info **out) {
    ggl_error err = {0};
    return type_error(flag, llm_quant_type_read(out, name, &err), &err);
}

int type_error(const char *flag, ggl_status s, const ggl_error *err) {
    if (s != GGL_NOT_FOUND)
        return s == GGL_OK ? -1 : tool_error(TOOL, 1, "%s: %s", flag, err->msg);
    const bool asks = err->msg[strlen(err->msg) - 1] == '?'; /* "did you mean ..?" */
    return tool_error(TOOL, 2, "%s: %s%s" TOOL " --help lists them", flag, err->msg,
                      asks ? " " : "; ");
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
           ggl_case_compare(name, "COPY") == 0;
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
