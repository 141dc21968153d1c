#include "override_options.h"

#include <stdlib.h>
#include <string.h>

#include "quant/keys.h"
#include "report.h"

/* True if s begins with KEY=TYPE: of a known type. So a comma in a text ends it only if an override follows. */
static bool begins_override(const char *s) {
    static const char *const types[] = {"=int:", "=float:", "=bool:", "=str:"};
    const size_t n = strcspn(s, "=,");
    for (size_t i = 0; n > 0 && i < sizeof types / sizeof *types; i++)
        if (strncmp(s + n, types[i], strlen(types[i])) == 0)
            return true;
    return false;
}

/* Cuts a text at the commas between overrides, and adds these. */
static void split(tool_overrides *o, char *s) {
    o->text[o->n++] = s;
    for (char *comma = strchr(s, ','); comma; comma = strchr(comma + 1, ','))
        if (begins_override(comma + 1)) {
            *comma = '\0';
            o->text[o->n++] = comma + 1;
        }
}

/* Makes room for the copy, and for as many overrides as the commas allow. */
static bool make_room(tool_overrides *o) {
    size_t bytes = 1, most = o->given.n + 1;
    for (size_t i = 0; i < o->given.n; i++) {
        bytes += strlen(o->given.s[i]) + 1;
        for (const char *c = o->given.s[i]; *c; c++)
            most += *c == ',';
    }
    o->copy = calloc(bytes, 1);
    o->text = calloc(most, sizeof *o->text);
    return o->copy && o->text;
}

int overrides_read(const char *tool, tool_overrides *o) {
    ggl_error err = {0};
    if (!make_room(o))
        return tool_error(tool, 1, "out of memory");
    char *to = o->copy;
    for (size_t i = 0; i < o->given.n; i++) {
        const size_t n = strlen(o->given.s[i]) + 1;
        split(o, memcpy(to, o->given.s[i], n));
        to += n;
    }
    for (size_t i = 0; i < o->n; i++) {
        quant_key k;
        if (llm_quant_read_key(&k, o->text[i], &err) != GGL_OK)
            return tool_error(tool, 2, "--override-kv: %s", err.msg);
    }
    return -1;
}

void overrides_fini(tool_overrides *o) {
    args_list_fini(&o->given);
    free(o->text);
    free(o->copy);
    *o = (tool_overrides){.n = 0};
}
