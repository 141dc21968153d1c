/* References: $id, $anchor, $ref within one document (RFC 3986, RFC 6901). */
#include "schema_impl.h"

#include "common/hex.h"

/* --- URIs ------------------------------------------------------------------------------------- */

static ggl_str cut(ggl_str s, size_t from) {
    return (ggl_str){s.s + from, s.n - from};
}

static size_t find_any(ggl_str s, const char *set) {
    size_t i = 0;
    while (i < s.n && !(s.s[i] && strchr(set, s.s[i])))
        i++;
    return i;
}

/* The length of "scheme:", 0: none. */
static size_t scheme_length(ggl_str uri) {
    const size_t i = find_any(uri, ":/?#");
    return i > 0 && i < uri.n && uri.s[i] == ':' ? i + 1 : 0;
}

/* The length of "scheme://authority". */
static size_t root_length(ggl_str uri) {
    size_t i = scheme_length(uri);
    if (uri.n >= i + 2 && memcmp(uri.s + i, "//", 2) == 0)
        i += 2 + find_any(cut(uri, i + 2), "/?#");
    return i;
}

/* Removes "." and ".." from the path that begins at `root`. Returns the new length. */
static size_t remove_dots(char *s, size_t root, size_t n) {
    size_t out = root;
    for (size_t i = root; i < n;) {
        const size_t len = 1 + find_any((ggl_str){s + i + 1, n - i - 1}, "/");
        const bool one = len == 2 && memcmp(s + i, "/.", 2) == 0;
        const bool two = len == 3 && memcmp(s + i, "/..", 3) == 0;
        while (two && out > root && s[--out] != '/')
            ;
        if (!one && !two) {
            memmove(s + out, s + i, len);
            out += len;
        } else if (i + len == n) {
            s[out++] = '/';
        }
        i += len;
    }
    return out;
}

/* The URI that `ref` (without fragment) means where `base` is the base. */
static ggl_str resolve(schema *s, ggl_str base, ggl_str ref) {
    if (ref.n == 0 || scheme_length(ref) > 0)
        return ref.n ? ref : base;
    size_t keep = scheme_length(base);
    const bool has_root = ref.n >= 2 && memcmp(ref.s, "//", 2) == 0;
    const size_t root = has_root ? keep : root_length(base);
    if (!has_root)
        keep = root;
    if (!has_root && ref.s[0] != '/') {
        size_t end = find_any(base, "?#");
        while (end > root && base.s[end - 1] != '/')
            end--;
        keep = end;
    }
    char *all = llm_schema_alloc(s, base.n + ref.n + 1, 1);
    if (!all)
        return ref;
    if (keep > 0)
        memcpy(all, base.s, keep);
    memcpy(all + keep, ref.s, ref.n);
    const size_t n = keep + ref.n;
    const bool has_path = !has_root && n > root && all[root] == '/';
    return (ggl_str){all, has_path ? remove_dots(all, root, n) : n};
}

static bool same(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

/* --- the index -------------------------------------------------------------------------------- */

static bool add_resource(schema *s, ggl_str uri, const json_value *node) {
    if (!ggl_grow(&s->resource, &s->cap_resources, s->n_resources + 1, sizeof *s->resource)) {
        llm_schema_fail(s, GGL_NOMEM, node, NULL, "out of memory");
        return false;
    }
    s->resource[s->n_resources++] = (resource){uri, node};
    return true;
}

static bool add_anchor(schema *s, int32_t home, ggl_str name, const json_value *node,
                       bool is_dynamic) {
    if (!ggl_grow(&s->anchor, &s->cap_anchors, s->n_anchors + 1, sizeof *s->anchor)) {
        llm_schema_fail(s, GGL_NOMEM, node, NULL, "out of memory");
        return false;
    }
    s->anchor[s->n_anchors++] = (anchor){home, name, node, is_dynamic};
    return true;
}

/* Takes note of an object's identifiers. Returns its resource; -1: the status is set. */
static int32_t index_object(schema *s, const json_value *v, int32_t home) {
    const json_value *id = llm_json_get_kind(v, s->draft == 4 ? "id" : "$id", JSON_STRING);
    const json_value *name = llm_json_get_kind(v, "$anchor", JSON_STRING);
    if (!id && s->draft != 4) /* old schemas often lack $schema */
        id = llm_json_get_kind(v, "id", JSON_STRING);
    const bool is_ref = llm_json_get_kind(v, "$ref", JSON_STRING) != NULL;
    if (id && v != &s->doc->root && !(is_ref && s->draft <= 7)) { /* there, $ref hides it */
        const ggl_str uri = json_str(id);
        const size_t hash = find_any(uri, "#");
        if (hash > 0) {
            const ggl_str full = resolve(s, s->resource[home].uri, (ggl_str){uri.s, hash});
            if (!add_resource(s, full, v))
                return -1;
            home = (int32_t)s->n_resources - 1;
        }
        if (hash + 1 < uri.n && uri.s[hash + 1] != '/' &&
            !add_anchor(s, home, cut(uri, hash + 1), v, false))
            return -1;
    }
    if (name && !add_anchor(s, home, json_str(name), v, false))
        return -1;
    const json_value *dynamic = llm_json_get_kind(v, "$dynamicAnchor", JSON_STRING);
    if (dynamic && !add_anchor(s, home, json_str(dynamic), v, true))
        return -1;
    return home;
}

/* Remembers to which resource an object with a reference belongs. */
static bool note_home(schema *s, const json_value *v, int32_t home) {
    if (!llm_json_get(v, "$ref") && !llm_json_get(v, "$dynamicRef") &&
        !llm_json_get(v, "$recursiveRef"))
        return true;
    const void **slot = llm_schema_slot(s, &s->home, v, 0);
    if (slot)
        *slot = (const void *)(uintptr_t)(home + 1);
    return slot != NULL;
}

/* What the value of a keyword is made of. */
typedef enum content {
    CONTENT_DATA, /* no schemas, so no identifiers: "$id" is data here, too */
    CONTENT_SCHEMA,
    CONTENT_LIST, /* an array of schemas, or one */
    CONTENT_TABLE /* an object of schemas */
} content;

static content content_of(ggl_str word) {
    static const struct {
        const char *word;
        content content;
    } row[] = {{"$defs", CONTENT_TABLE},
               {"additionalItems", CONTENT_SCHEMA},
               {"additionalProperties", CONTENT_SCHEMA},
               {"allOf", CONTENT_LIST},
               {"anyOf", CONTENT_LIST},
               {"contains", CONTENT_SCHEMA},
               {"contentSchema", CONTENT_SCHEMA},
               {"definitions", CONTENT_TABLE},
               {"dependencies", CONTENT_TABLE},
               {"dependentSchemas", CONTENT_TABLE},
               {"else", CONTENT_SCHEMA},
               {"if", CONTENT_SCHEMA},
               {"items", CONTENT_LIST},
               {"not", CONTENT_SCHEMA},
               {"oneOf", CONTENT_LIST},
               {"patternProperties", CONTENT_TABLE},
               {"prefixItems", CONTENT_LIST},
               {"properties", CONTENT_TABLE},
               {"propertyNames", CONTENT_SCHEMA},
               {"then", CONTENT_SCHEMA},
               {"unevaluatedItems", CONTENT_SCHEMA},
               {"unevaluatedProperties", CONTENT_SCHEMA}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (ggl_str_is(word, row[i].word))
            return row[i].content;
    return CONTENT_DATA;
}

/* Takes note of identifiers where schemas are, and of references everywhere: a JSON pointer may lead into
 * what is no schema by its place, such as the value of an unknown keyword. */
static bool index_value(schema *s, const json_value *v, int32_t home, content what) {
    if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
        return true;
    const bool is_schema =
        v->kind == JSON_OBJECT && (what == CONTENT_SCHEMA || what == CONTENT_LIST);
    if (is_schema && (home = index_object(s, v, home)) < 0)
        return false;
    if (v->kind == JSON_OBJECT && !note_home(s, v, home))
        return false;
    for (uint32_t i = 0; i < v->n; i++) {
        const content inside = is_schema              ? content_of(json_name(v, i))
                               : what == CONTENT_DATA ? CONTENT_DATA
                                                      : CONTENT_SCHEMA;
        if (!index_value(s, &v->item[i], home, inside))
            return false;
    }
    return true;
}

bool llm_schema_index(schema *s) {
    const json_value *root = &s->doc->root;
    const json_value *id = llm_json_get_kind(root, "$id", JSON_STRING);
    if (!id)
        id = llm_json_get_kind(root, "id", JSON_STRING);
    ggl_str uri = id ? json_str(id) : (ggl_str){"", 0};
    uri.n = find_any(uri, "#");
    return add_resource(s, uri, root) && index_value(s, root, 0, CONTENT_SCHEMA);
}

/* --- targets ---------------------------------------------------------------------------------- */

/* Resolves the escapes of a pointer's token in place: %XX first, then ~1 and ~0. */
static size_t unescape(char *t, size_t n) {
    size_t out = 0;
    for (size_t i = 0; i < n; i++)
        if (t[i] == '%' && i + 2 < n && llm_hex_digit(t[i + 1]) >= 0 &&
            llm_hex_digit(t[i + 2]) >= 0) {
            t[out++] = (char)(llm_hex_digit(t[i + 1]) << 4 | llm_hex_digit(t[i + 2]));
            i += 2;
        } else {
            t[out++] = t[i];
        }
    n = out;
    out = 0;
    for (size_t i = 0; i < n; i++)
        if (t[i] == '~' && i + 1 < n && (t[i + 1] == '0' || t[i + 1] == '1'))
            t[out++] = t[++i] == '0' ? '~' : '/';
        else
            t[out++] = t[i];
    return out;
}

static const json_value *child(schema *s, const json_value *v, ggl_str token) {
    if (v->kind == JSON_OBJECT) {
        for (uint32_t i = 0; i < v->n; i++)
            if (same(json_name(v, i), token)) {
                llm_exprs_count(s->g, i / 8);
                return &v->item[i];
            }
        return NULL;
    }
    uint64_t index = 0;
    for (size_t i = 0; i < token.n && index <= v->n; i++) {
        if (token.s[i] < '0' || token.s[i] > '9')
            return NULL;
        index = index * 10 + (uint64_t)(token.s[i] - '0');
    }
    return v->kind == JSON_ARRAY && token.n > 0 && index < v->n ? &v->item[index] : NULL;
}

static const json_value *walk(schema *s, const json_value *v, ggl_str pointer) {
    char *t = llm_schema_alloc(s, pointer.n + 1, 1);
    if (!t)
        return NULL;
    while (v && pointer.n > 0) {
        pointer = cut(pointer, 1);
        const size_t len = find_any(pointer, "/");
        memcpy(t, pointer.s, len);
        v = child(s, v, (ggl_str){t, unescape(t, len)});
        pointer = cut(pointer, len);
    }
    return v;
}

/* Returns NULL if no schema has the anchor, and sets the status if two have it. */
static const anchor *find_anchor(schema *s, const json_value *node, int32_t home, ggl_str name) {
    const anchor *found = NULL;
    llm_exprs_count(s->g, s->n_anchors / 8);
    for (size_t i = 0; i < s->n_anchors; i++) {
        const anchor *a = &s->anchor[i];
        if (a->resource != home || !same(a->name, name) || (found && found->node == a->node))
            continue;
        if (found) {
            llm_schema_fail(s, GGL_FORMAT, node, NULL, "two schemas have the anchor '%.*s'",
                            (int)(name.n < 200 ? name.n : 200), name.s);
            return NULL;
        }
        found = a;
    }
    return found;
}

/* Sets *home to the resource, or -1 if none has this URI. False if two have it. */
static bool find_resource(schema *s, const json_value *node, ggl_str uri, int32_t *home) {
    *home = -1;
    llm_exprs_count(s->g, s->n_resources / 8);
    for (size_t i = 0; i < s->n_resources; i++) {
        if (!same(s->resource[i].uri, uri))
            continue;
        if (*home >= 0) {
            llm_schema_fail(s, GGL_FORMAT, node, "$ref", "two schemas have the $id '%.*s'",
                            (int)(uri.n < 200 ? uri.n : 200), uri.s);
            return false;
        }
        *home = (int32_t)i;
    }
    return true;
}

/* The target of a reference, as $ref means it. *by: the anchor that names it; NULL if none does. */
static const json_value *find_target(schema *s, const json_value *node, const char *word,
                                     ggl_str ref, const anchor **by) {
    *by = NULL;
    const void **slot = llm_schema_slot(s, &s->home, node, 0);
    int32_t home = slot && *slot ? (int32_t)(uintptr_t)*slot - 1 : 0;
    const size_t hash = find_any(ref, "#");
    const ggl_str fragment = hash < ref.n ? cut(ref, hash + 1) : (ggl_str){"", 0};
    if (hash > 0) {
        const ggl_str uri = resolve(s, s->resource[home].uri, (ggl_str){ref.s, hash});
        if (!find_resource(s, node, uri, &home))
            return NULL;
        if (home < 0) {
            llm_schema_fail(s, GGL_UNSUPPORTED, node, word,
                            "'%.*s' is in another document, which is not read",
                            (int)(ref.n < 200 ? ref.n : 200), ref.s);
            return NULL;
        }
    }
    const json_value *v = s->resource[home].node;
    if (fragment.n > 0 && fragment.s[0] == '/') {
        v = walk(s, v, fragment);
    } else if (fragment.n > 0) {
        *by = find_anchor(s, node, home, fragment);
        v = *by ? (*by)->node : NULL;
    }
    if (!v)
        llm_schema_fail(s, GGL_FORMAT, node, word, "there is no '%.*s' in the document",
                        (int)(ref.n < 200 ? ref.n : 200), ref.s);
    return v;
}

const json_value *llm_schema_target(schema *s, const json_value *node, ggl_str ref) {
    const anchor *by;
    return find_target(s, node, "$ref", ref, &by);
}

static const json_value *several_scopes(schema *s, const json_value *node, const char *word) {
    llm_schema_fail(
        s, GGL_UNSUPPORTED, node, word,
        "where it leads depends on how its schema is reached: several schemas with an $id "
        "have this anchor, but the document itself does not");
    return NULL;
}

/* A dynamic reference leads to the anchor of this name in the outermost resource that was entered and has
 * it. The document itself is always the outermost one; and where only one resource has the anchor, there is
 * no choice. */
const json_value *llm_schema_dynamic_target(schema *s, const json_value *node, ggl_str ref) {
    const anchor *by, *only = NULL;
    const json_value *v = find_target(s, node, "$dynamicRef", ref, &by);
    if (!v || !by || !by->is_dynamic)
        return v; /* as $ref */
    bool several = false;
    for (size_t i = 0; i < s->n_anchors; i++) {
        const anchor *a = &s->anchor[i];
        if (!a->is_dynamic || !same(a->name, by->name))
            continue;
        if (a->resource == 0)
            return a->node;
        several = several || (only && only->resource != a->resource);
        only = a;
    }
    return several ? several_scopes(s, node, "$dynamicRef") : v;
}

/* The predecessor of draft 2019-09: "#", which leads to the outermost resource with $recursiveAnchor if the
 * resource at hand has it. */
const json_value *llm_schema_recursive_target(schema *s, const json_value *node) {
    const void **slot = llm_schema_slot(s, &s->home, node, 0);
    const json_value *root = s->resource[slot && *slot ? (size_t)(uintptr_t)*slot - 1 : 0].node;
    const json_value *here = llm_json_get_kind(root, "$recursiveAnchor", JSON_BOOL);
    const json_value *top = llm_json_get_kind(s->resource[0].node, "$recursiveAnchor", JSON_BOOL);
    if (!here || !here->flag || s->n_resources == 1)
        return root;
    return top && top->flag ? s->resource[0].node : several_scopes(s, node, "$recursiveRef");
}
