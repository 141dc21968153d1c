/* Names of functions, as models write them. */
#include <ctype.h>
#include <string.h>

#include "calls_impl.h"

bool llm_calls_is_name(char ch) {
    return isalnum((unsigned char)ch) || strchr("_-.:/", ch) || (unsigned char)ch >= 0x80;
}

bool llm_calls_can_name(const llm_calls *c, ggl_str name) {
    if (name.n == 0 || llm_calls_function_named(c, name))
        return name.n > 0;
    for (size_t i = 0; i < name.n; i++)
        if (!name.s[i] || !llm_calls_is_name(name.s[i]))
            return false;
    return name.n <= MAX_NAME;
}

/* The name without a number at its end, such as :0 or _0. */
static ggl_str without_number(ggl_str name) {
    size_t n = name.n;
    while (n > 0 && isdigit((unsigned char)name.s[n - 1]))
        n--;
    return n < name.n && n > 1 && strchr(":_.-", name.s[n - 1]) ? (ggl_str){name.s, n - 1} : name;
}

ggl_str llm_calls_tool_name(const llm_calls *c, ggl_str name) {
    static const char prefix[] = "functions";
    enum { N = sizeof prefix - 1 };
    const bool has_prefix =
        name.n > N + 1 && memcmp(name.s, prefix, N) == 0 && name.s[N] && strchr("._:/-", name.s[N]);
    const ggl_str inner = has_prefix ? (ggl_str){name.s + N + 1, name.n - N - 1} : name,
                  tries[] = {name, inner, without_number(inner), without_number(name)};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (llm_calls_function_named(c, tries[i]))
            return tries[i];
    return name;
}

ggl_str llm_calls_cut_name(const call_format *f, ggl_str name) {
    const ggl_str cut = f->cut;
    if (cut.n > 0 && name.n > cut.n && memcmp(name.s + name.n - cut.n, cut.s, cut.n) == 0)
        name.n -= cut.n;
    return name;
}

ggl_str llm_calls_function_of(const llm_calls *c, const attempt *a) {
    return llm_calls_tool_name(c, llm_calls_cut_name(&c->f, llm_calls_slice(c, a->name)));
}

/* functions.NAME:0: what is in front of the last point is left out, and the number; the whole is
 * the call's id. */
void llm_calls_identify(const llm_calls *c, const attempt *a, ggl_str *out, ggl_str *out_id) {
    const ggl_str whole = llm_calls_slice(c, a->name);
    ggl_str name = llm_calls_tool_name(c, whole), id = llm_calls_slice(c, a->id);
    bool path = false;
    for (int i = 0; i < a->p->n; i++)
        path = path || a->p->piece[i].kind == PIECE_PATH;
    if (path && llm_calls_function_named(c, name)) {
        const char *end = name.s + name.n;
        const bool is_numbered = end < whole.s + whole.n; /* the number is left out of the name */
        id = is_numbered ? whole : id;
    } else if (path) {
        const char *colon = memchr(name.s, ':', name.n);
        if (colon) {
            id = name;
            name.n = (size_t)(colon - name.s);
        }
        size_t at = name.n; /* after the last point */
        while (at > 0 && name.s[at - 1] != '.')
            at--;
        name = (ggl_str){name.s + at, name.n - at};
    }
    *out = name;
    *out_id = id;
}
