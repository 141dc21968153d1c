#include "api_shape.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/show.h"

bool json_asks_nothing(const json_value *v) {
    switch ((json_kind)v->kind) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !v->flag;
    case JSON_NUMBER:
        return false;
    default:
        return v->n == 0;
    }
}

bool json_is_true(const json_value *v) {
    return v && v->kind == JSON_BOOL && v->flag;
}

static const shape_row *find_row(const shape_row *table, ggl_str name) {
    for (const shape_row *r = table; r->name; r++)
        if (ggl_str_is(name, r->name))
            return r;
    return NULL;
}

static ggl_status unknown_name(const shape_row *table, ggl_str name, ggl_error *err) {
    char wanted[96];
    const size_t n = ggl_utf8_cut(name.s, name.n, sizeof wanted - 1);
    if (n > 0)
        memcpy(wanted, name.s, n);
    wanted[n] = '\0';
    ggl_nearest near = ggl_nearest_to(wanted);
    for (const shape_row *r = table; r->name; r++)
        if (!(r->kinds & SHAPE_REFUSED))
            ggl_nearest_try(&near, r->name, SIZE_MAX);
    return ggl_fail(err, GGL_USAGE, "unknown field \"%s%s\"%s%s%s", wanted, n < name.n ? ".." : "",
                    near.best ? "; did you mean \"" : "", near.best ? near.best : "",
                    near.best ? "\"?" : "");
}

/* Names the kinds that a row accepts: "a string or an array". */
static const char *kinds_text(unsigned kinds, char *buf, size_t size) {
    buf[0] = '\0';
    for (int k = JSON_BOOL; k <= JSON_OBJECT; k++)
        if (kinds & 1u << k) {
            const size_t at = strlen(buf);
            snprintf(buf + at, size - at, "%s%s", at ? " or " : "", llm_json_kind_text(k));
        }
    return buf;
}

static ggl_status read_row(void *out, const shape_row *r, const json_value *v, ggl_error *err) {
    char wanted[96];
    if (v->kind == JSON_NULL || r->kinds & SHAPE_IGNORED)
        return GGL_OK;
    if (r->kinds & SHAPE_REFUSED && json_asks_nothing(v))
        return GGL_OK;
    if (r->kinds & SHAPE_REFUSED)
        return ggl_fail(err, GGL_UNSUPPORTED, "\"%s\" is not supported: %s", r->name, r->why);
    if (!(r->kinds & 1u << v->kind))
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s, not %s", r->name,
                        kinds_text(r->kinds, wanted, sizeof wanted),
                        llm_json_kind_text((json_kind)v->kind));
    memcpy((char *)out + r->at, &v, sizeof v);
    return GGL_OK;
}

ggl_status read_shape(void *out, size_t size, ignored_fields *x, const json_value *v,
                      const shape_row *table, ggl_error *err) {
    memset(out, 0, size);
    if (v->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_USAGE, "an object is expected, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    for (size_t i = 0; i < v->n; i++) {
        const ggl_str name = json_name(v, i);
        const shape_row *r = find_row(table, name);
        ggl_status st = GGL_OK;
        if (r)
            st = read_row(out, r, &v->item[i], err);
        else if (x->strict)
            st = unknown_name(table, name, err);
        else if (v->item[i].kind != JSON_NULL)
            st = fields_ignore(x, NULL, name, err);
        if (st != GGL_OK)
            return st;
    }
    for (const shape_row *r = table; r->name; r++) {
        const json_value *given;
        if (!(r->kinds & SHAPE_REQUIRED))
            continue;
        memcpy(&given, (char *)out + r->at, sizeof given);
        if (!given)
            return ggl_fail(err, GGL_USAGE, "\"%s\" is missing", r->name);
    }
    return GGL_OK;
}
