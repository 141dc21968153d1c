/* The tensors of the folder that a convert section reads; see conversion.h. */
#include <stdio.h>
#include <string.h>

#include "conversion.h"

static st_tensor *find_exactly(const arch_conversion *c, const char *stem, bool is_bias) {
    char name[700];
    if (c->own_bias) { /* its own line may give the full name */
        snprintf(name, sizeof name, "%s.bias", stem);
        st_tensor *t = llm_safetensors_find(c->source, name);
        return t ? t : llm_safetensors_find(c->source, stem);
    }
    snprintf(name, sizeof name, "%s.%s", stem, is_bias ? "bias" : "weight");
    st_tensor *t = llm_safetensors_find(c->source, name);
    /* of a norm in old files; of packed types (section_packed.c); without an ending */
    static const char *const ends[] = {".gamma", ".weight_packed", ".qweight", "", "_packed"};
    if (!t && is_bias) {
        snprintf(name, sizeof name, "%s.beta", stem);
        return llm_safetensors_find(c->source, name);
    }
    for (size_t k = 0; k < sizeof ends / sizeof *ends && !t; k++) {
        snprintf(name, sizeof name, "%s%s", stem, ends[k]);
        t = llm_safetensors_find(c->source, name);
    }
    return t;
}

st_tensor *llm_arch_convert_find_source(const arch_conversion *c, const char *stem, bool is_bias) {
    char name[700];
    st_tensor *t = find_exactly(c, stem, is_bias);
    for (const arch_mapping *m = c->section->map; m && !t; m = m->next) {
        const size_t n = m->kind == MAP_PREFIX ? strlen(m->name) : 0;
        if (m->kind != MAP_PREFIX || strncmp(stem, m->name, n) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", m->other, stem + n);
        t = find_exactly(c, name, is_bias);
    }
    return t;
}

static bool any_begins(const llm_safetensors *source, const char *begin, size_t n) {
    for (size_t i = 0; i < source->n_tensor; i++)
        if (source->tensor[i].name.n >= n && memcmp(source->tensor[i].name.s, begin, n) == 0)
            return true;
    return false;
}

bool llm_arch_convert_has_sources(const arch_conversion *c, const char *name, size_t n) {
    char other[700];
    bool has = any_begins(c->source, name, n);
    for (const arch_mapping *m = c->section->map; m && !has; m = m->next) {
        const size_t skip = m->kind == MAP_PREFIX ? strlen(m->name) : 0;
        if (m->kind != MAP_PREFIX || skip > n || strncmp(name, m->name, skip) != 0)
            continue;
        snprintf(other, sizeof other, "%s%.*s", m->other, (int)(n - skip), name + skip);
        has = any_begins(c->source, other, strlen(other));
    }
    return has;
}

void llm_arch_convert_use(arch_conversion *c, st_tensor *t) {
    if (!t->used) {
        t->line = c->making;
        t->makes = c->made;
    }
    t->used = true;
}
