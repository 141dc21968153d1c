/* Puts JSON values together in an arena, beside those of a parsed text. What they hold is borrowed: strings, and the values of
 * other documents. */
#ifndef LLM_JSON_MAKE_H
#define LLM_JSON_MAKE_H

#include <string.h>

#include "json.h"

typedef struct llm_json_member {
    ggl_str name;
    json_value value;
} llm_json_member;

/* s: less than 4 GiB of UTF-8, as strings of documents are. */
static inline json_value llm_json_of_str(ggl_str s) {
    return (json_value){.kind = JSON_STRING, .n = (uint32_t)s.n, .s = s.s ? s.s : ""};
}
static inline json_value llm_json_of_text(const char *s) {
    return llm_json_of_str((ggl_str){s, strlen(s)});
}
static inline json_value llm_json_of_bool(bool flag) {
    return (json_value){.kind = JSON_BOOL, .flag = flag};
}
static inline llm_json_member llm_json_member_of(const char *name, json_value value) {
    return (llm_json_member){{name, strlen(name)}, value};
}

/* Make an object of n members, or an array of n values. False: out of memory. */
bool llm_json_make_object(json_value *out, ggl_arena *arena, const llm_json_member *m, size_t n);
bool llm_json_make_array(json_value *out, ggl_arena *arena, const json_value *v, size_t n);
/* Copies an object with another value for one of its members, which is added if it is not there. False: out of memory. */
bool llm_json_make_with(json_value *out, ggl_arena *arena, const json_value *object,
                        const char *name, json_value value);

#endif
