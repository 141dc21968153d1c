/* Reads the fields of a request by a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dialect.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/number.h"
#include "ggl/internal/show.h"
#include "llm/internal/tokenizer.h"

#define MAX_EXACT 9007199254740992.0 /* integers below it are exact in JSON's numbers */

typedef struct reading {
    ask *ask;
    const field *field;
    const json_value *value;
    const server_facts *facts;
    ggl_error *err;
} reading;

static void *target(const reading *r) {
    return (char *)r->ask + r->field->at;
}

static ggl_status no_memory(const reading *r) {
    return ggl_fail(r->err, GGL_NOMEM, "out of memory for \"%s\"", r->field->name);
}

static ggl_status wrong_kind(const reading *r, const char *wanted) {
    return ggl_fail(r->err, GGL_USAGE, "\"%s\" must be %s, not %s", r->field->name, wanted,
                    llm_json_kind_text((json_kind)r->value->kind));
}

const char *field_not(const json_value *v, char got[FIELD_NOT]) {
    got[0] = '\0';
    if (!v)
        return got;
    const char *kind =
        v->kind == JSON_BOOL ? v->flag ? "true" : "false" : llm_json_kind_text((json_kind)v->kind);
    if (v->kind == JSON_STRING)
        snprintf(got, FIELD_NOT, ", not \"%.*s%s\"", (int)ggl_utf8_cut(v->s, v->n, 48), v->s,
                 v->n > 48 ? ".." : "");
    else if (v->kind == JSON_NUMBER)
        snprintf(got, FIELD_NOT, ", not %.10g", v->number);
    else
        snprintf(got, FIELD_NOT, ", not %s", kind);
    return got;
}

ggl_status field_wrong(ggl_error *err, const char *name, const json_value *v, const char *wanted) {
    char got[FIELD_NOT];
    return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s%s", name, wanted, field_not(v, got));
}

/* --- plain values ------------------------------------------------------------------------------- */

/* Reads a number in the field's range, which is limited to least .. most. */
static ggl_status read_number(const reading *r, bool integer, double least, double most,
                              double *out) {
    const json_value *v = r->value;
    const field *f = r->field;
    if (v->kind != JSON_NUMBER)
        return wrong_kind(r, integer ? "an integer" : "a number");
    if (integer && isfinite(v->number) && v->number != floor(v->number))
        return ggl_fail(r->err, GGL_USAGE, "\"%s\" is %g, but must be an integer", f->name,
                        v->number);
    if (f->min != f->max) {
        least = fmax(least, f->min);
        most = fmin(most, f->max);
    }
    if (!(v->number >= least && v->number <= most))
        return ggl_fail(r->err, GGL_USAGE, "\"%s\" is %.10g, but must be from %.16g to %.16g",
                        f->name, v->number, least, most);
    *out = v->number;
    return GGL_OK;
}

static ggl_status read_bool(const reading *r) {
    if (r->value->kind != JSON_BOOL)
        return wrong_kind(r, "true or false");
    *(bool *)target(r) = r->value->flag;
    return GGL_OK;
}

static ggl_status read_int(const reading *r) {
    double x = 0;
    const ggl_status st = read_number(r, true, 1 - MAX_EXACT, MAX_EXACT - 1, &x);
    if (st == GGL_OK)
        *(int64_t *)target(r) = (int64_t)x;
    return st;
}

static ggl_status read_int32(const reading *r) {
    double x = 0;
    const ggl_status st = read_number(r, true, INT32_MIN, INT32_MAX, &x);
    if (st == GGL_OK)
        *(int32_t *)target(r) = (int32_t)x;
    return st;
}

static ggl_status read_float(const reading *r) {
    double x = 0;
    const ggl_status st = read_number(r, false, -3.4028234663852886e38, 3.4028234663852886e38, &x);
    if (st == GGL_OK)
        *(float *)target(r) = (float)x;
    return st;
}

static ggl_status read_double(const reading *r) {
    double x = 0;
    const ggl_status st =
        read_number(r, false, -1.7976931348623157e308, 1.7976931348623157e308, &x);
    if (st == GGL_OK)
        *(double *)target(r) = x;
    return st;
}

static ggl_status read_string(const reading *r) {
    if (r->value->kind != JSON_STRING)
        return wrong_kind(r, "a string");
    *(ggl_str *)target(r) = json_str(r->value);
    return GGL_OK;
}

/* An integer of 64 bits, signed or not; -1: random. A number such as 7.0 or 1e3 is one, too, if a double
 * holds it exactly. */
static ggl_status read_seed(const reading *r) {
    const double x = r->value->kind == JSON_NUMBER ? r->value->number : 0;
    uint64_t magnitude = 0;
    bool negative = false;
    if (r->value->kind != JSON_NUMBER)
        return wrong_kind(r, "an integer");
    bool fits = llm_json_integer(r->value, &magnitude, &negative);
    if (!fits && fabs(x) < MAX_EXACT) {
        double exact = 0;
        const ggl_status st = read_number(r, true, 1 - MAX_EXACT, MAX_EXACT - 1, &exact);
        if (st != GGL_OK)
            return st;
        fits = true;
        magnitude = (uint64_t)fabs(exact);
        negative = exact < 0;
    }
    if (!fits || (negative && magnitude > (uint64_t)1 << 63))
        return ggl_fail(r->err, GGL_USAGE,
                        "\"%s\" must be an integer from -9223372036854775808 to "
                        "18446744073709551615",
                        r->field->name);
    r->ask->has_seed = !(negative && magnitude == 1);
    r->ask->sampling.seed = negative ? 0 - magnitude : magnitude;
    return GGL_OK;
}

/* --- stop strings ------------------------------------------------------------------------------- */

static ggl_status read_stops(const reading *r) {
    const json_value *v = r->value;
    const bool one = v->kind == JSON_STRING;
    if (!one && v->kind != JSON_ARRAY)
        return wrong_kind(r, "a string or a list of strings");
    const size_t n = one ? 1 : v->n;
    ggl_str *stop = ggl_arena_alloc(&r->ask->arena, n + 1, sizeof *stop);
    if (!stop)
        return no_memory(r);
    for (size_t i = 0; i < n; i++) {
        const json_value *s = one ? v : &v->item[i];
        if (s->kind != JSON_STRING)
            return ggl_fail(r->err, GGL_USAGE, "\"%s\": string %zu is %s", r->field->name, i + 1,
                            llm_json_kind_text((json_kind)s->kind));
        if (s->n == 0)
            return ggl_fail(r->err, GGL_USAGE,
                            "\"%s\": string %zu is empty, and would end every answer at once",
                            r->field->name, i + 1);
        stop[i] = json_str(s);
    }
    r->ask->stop = stop;
    r->ask->n_stops = n;
    return GGL_OK;
}

/* --- biases ------------------------------------------------------------------------------------- */

typedef struct bias_list {
    llm_logit_bias *bias;
    size_t n, cap;
    size_t *place; /* [n_vocab]: 1 + the index of a token's bias; 0: it has none */
} bias_list;

static ggl_status check_sum(const reading *r, const llm_logit_bias *b) {
    if (b->bias < INFINITY)
        return GGL_OK;
    return ggl_fail(r->err, GGL_USAGE, "\"%s\": the biases of token %d add up to infinity",
                    r->field->name, (int)b->id);
}

/* Biases of the same token are added up. */
static ggl_status add_bias(const reading *r, bias_list *l, double id, float bias) {
    if (!(id >= 0 && id < (double)r->facts->n_vocab) || id != floor(id))
        return ggl_fail(r->err, GGL_USAGE,
                        "\"%s\": %.10g is not a token; the vocabulary has 0 to %.0f",
                        r->field->name, id, (double)(r->facts->n_vocab - 1));
    if (!l->place)
        l->place = ggl_calloc((size_t)r->facts->n_vocab, sizeof *l->place);
    if (!l->place || !ggl_grow(&l->bias, &l->cap, l->n + 1, sizeof *l->bias))
        return no_memory(r);
    size_t *place = &l->place[(size_t)id];
    if (*place) {
        l->bias[*place - 1].bias += bias;
        return check_sum(r, &l->bias[*place - 1]);
    }
    l->bias[l->n++] = (llm_logit_bias){(int32_t)id, bias};
    *place = l->n;
    return GGL_OK;
}

/* A bias for each token of a text. */
static ggl_status add_text_bias(const reading *r, bias_list *l, ggl_str text, float bias) {
    llm_tokens ids = {0};
    ggl_status st = GGL_OK;
    if (!r->facts->tokenizer)
        return ggl_fail(r->err, GGL_UNSUPPORTED,
                        "\"%s\": the model has no tokenizer for texts; give ids", r->field->name);
    if (text.n > 0)
        st = ask_hold_text(r->ask, text.n, r->err);
    if (text.n > 0 && st == GGL_OK)
        st = llm_tokenize(r->facts->tokenizer, text.s, text.n, 0, &ids, r->err);
    for (size_t i = 0; i < ids.n && st == GGL_OK; i++)
        st = add_bias(r, l, ids.id[i], bias);
    llm_tokens_fini(&ids);
    return st;
}

/* Reads a number, or false: never. */
static ggl_status bias_value(const reading *r, const json_value *v, float *out) {
    const bool never = v->kind == JSON_BOOL && !v->flag;
    if (!never && v->kind != JSON_NUMBER)
        return ggl_fail(r->err, GGL_USAGE, "\"%s\": a bias must be a number or false, not %s",
                        r->field->name,
                        v->kind == JSON_BOOL ? "true" : llm_json_kind_text((json_kind)v->kind));
    *out = never ? -INFINITY : (float)v->number;
    if (*out < INFINITY)
        return GGL_OK;
    return ggl_fail(r->err, GGL_USAGE, "\"%s\": a bias is %g, but must be finite, or false",
                    r->field->name, v->number);
}

static bool is_number(ggl_str s) {
    size_t i = 0;
    while (i < s.n && s.s[i] >= '0' && s.s[i] <= '9')
        i++;
    return s.n > 0 && i == s.n;
}

static ggl_status bias_of_name(const reading *r, bias_list *l, ggl_str name, const json_value *v) {
    float bias = 0;
    const ggl_status st = bias_value(r, v, &bias);
    if (st != GGL_OK)
        return st;
    return is_number(name) ? add_bias(r, l, ggl_number_value(name.s, name.n), bias)
                           : add_text_bias(r, l, name, bias);
}

static ggl_status bias_of_pair(const reading *r, bias_list *l, const json_value *pair) {
    float bias = 0;
    if (pair->kind != JSON_ARRAY || pair->n != 2 ||
        (pair->item[0].kind != JSON_NUMBER && pair->item[0].kind != JSON_STRING))
        return ggl_fail(r->err, GGL_USAGE,
                        "\"%s\": each element must be a pair such as [15043, -1.5]",
                        r->field->name);
    const ggl_status st = bias_value(r, &pair->item[1], &bias);
    if (st != GGL_OK)
        return st;
    return pair->item[0].kind == JSON_NUMBER ? add_bias(r, l, pair->item[0].number, bias)
                                             : add_text_bias(r, l, json_str(&pair->item[0]), bias);
}

static ggl_status read_bias(const reading *r) {
    const json_value *v = r->value;
    bias_list l = {0};
    ggl_status st = GGL_OK;
    if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
        return wrong_kind(r, "an object or a list of pairs");
    for (size_t i = 0; i < v->n && st == GGL_OK; i++)
        st = v->kind == JSON_OBJECT ? bias_of_name(r, &l, json_name(v, i), &v->item[i])
                                    : bias_of_pair(r, &l, &v->item[i]);
    llm_logit_bias *bias =
        st == GGL_OK ? ggl_arena_alloc(&r->ask->arena, l.n + 1, sizeof *bias) : NULL;
    if (st == GGL_OK && !bias)
        st = no_memory(r);
    if (st == GGL_OK) {
        if (l.n > 0)
            memcpy(bias, l.bias, l.n * sizeof *bias);
        r->ask->sampling.bias = bias;
        r->ask->sampling.n_bias = l.n;
    }
    ggl_free(l.bias);
    ggl_free(l.place);
    return st;
}

/* --- other rows --------------------------------------------------------------------------------- */

static ggl_status read_fn(const reading *r) {
    return r->field->fn(r->ask, r->value, r->facts, r->err);
}

static ggl_status read_ignored(const reading *r) {
    (void)r;
    return GGL_OK;
}

static ggl_status read_refused(const reading *r) {
    const field *f = r->field;
    ggl_error own = {0};
    if (f->fn && f->fn(r->ask, r->value, r->facts, &own) == GGL_OK)
        return GGL_OK;
    return ggl_fail(r->err, GGL_UNSUPPORTED, "\"%s\" is not supported%s%s", f->name,
                    f->why ? ": " : "", f->why ? f->why : "");
}

static ggl_status (*const readers[])(const reading *r) = {
    [FIELD_BOOL] = read_bool,   [FIELD_INT] = read_int,         [FIELD_INT32] = read_int32,
    [FIELD_FLOAT] = read_float, [FIELD_DOUBLE] = read_double,   [FIELD_STRING] = read_string,
    [FIELD_SEED] = read_seed,   [FIELD_STOPS] = read_stops,     [FIELD_BIAS] = read_bias,
    [FIELD_FN] = read_fn,       [FIELD_IGNORED] = read_ignored, [FIELD_REFUSED] = read_refused,
};

/* --- unknown names ------------------------------------------------------------------------------ */

enum { MOST_IGNORED = 1 << 16, MOST_SHOWN = 60 };

size_t fields_enter(ignored_fields *x, const char *name) {
    const size_t n = strlen(x->within);
    if (*name && n + strlen(name) + 2 <= sizeof x->within)
        snprintf(x->within + n, sizeof x->within - n, "%s%s", n > 0 ? "." : "", name);
    return n;
}

void fields_leave(ignored_fields *x, size_t before) {
    x->within[before] = '\0';
}

/* Writes a name as a header may carry it. */
static size_t show_name(char *out, const char *of, ggl_str name) {
    size_t n = 0;
    for (; *of; of++)
        out[n++] = *of;
    if (n > 0)
        out[n++] = '.';
    for (size_t i = 0; i < name.n && i < MOST_SHOWN; i++)
        out[n++] = (char)(name.s[i] > ' ' && name.s[i] < 127 && name.s[i] != ',' ? name.s[i] : '?');
    out[n] = '\0';
    return n;
}

/* True if a list such as "a, bc" has the name. */
static bool has_name(const char *list, const char *name, size_t n) {
    for (const char *at = list; *at; at += strspn(at, ", ")) {
        const size_t size = strcspn(at, ",");
        if (size == n && memcmp(at, name, n) == 0)
            return true;
        at += size;
    }
    return false;
}

ggl_status fields_ignore(ignored_fields *x, const char *of, ggl_str name, ggl_error *err) {
    char shown[2 * MOST_SHOWN];
    const size_t n = show_name(shown, of ? of : x->within, name), at = strlen(x->names);
    const bool is_full = at > 2 && x->names[at - 1] == '.' && x->names[at - 2] == '.';
    if (x->n++ >= MOST_IGNORED)
        return ggl_fail(err, GGL_LIMIT, "there are more than %d unknown fields", MOST_IGNORED);
    if (is_full || has_name(x->names, shown, n))
        return GGL_OK;
    const bool fits = at + n + sizeof ", , .." <= sizeof x->names;
    snprintf(x->names + at, sizeof x->names - at, "%s%s", at > 0 ? ", " : "", fits ? shown : "..");
    return GGL_OK;
}

/* --- objects ------------------------------------------------------------------------------------ */

static bool is_known(const field *table, ggl_str name) {
    const field *f = table;
    while (f->name && !ggl_str_is(name, f->name))
        f++;
    return f->name != NULL;
}

static ggl_status unknown(ask *a, const field *table, ggl_str name, const char **param,
                          ggl_error *err) {
    const int shown = (int)ggl_utf8_cut(name.s, name.n, 80);
    char *wanted = ggl_arena_strndup(&a->arena, name.s, (size_t)shown);
    if (!wanted)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a field's name");
    *param = wanted;
    ggl_nearest near = ggl_nearest_to(wanted);
    for (const field *f = table; f->name; f++)
        if (f->kind != FIELD_REFUSED)
            ggl_nearest_try(&near, f->name, SIZE_MAX);
    return ggl_fail(err, GGL_USAGE, "unknown field \"%.*s%s\"%s%s%s", shown, name.s,
                    (size_t)shown < name.n ? ".." : "", near.best ? "; did you mean \"" : "",
                    near.best ? near.best : "", near.best ? "\"?" : "");
}

ggl_status read_fields(ask *a, const json_value *object, const field *table,
                       const server_facts *facts, const char **param, ggl_error *err) {
    ggl_status st = GGL_OK;
    *param = NULL;
    if (object->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_USAGE, "a JSON object is expected, not %s",
                        llm_json_kind_text((json_kind)object->kind));
    for (size_t i = 0; i < object->n && st == GGL_OK; i++) {
        const ggl_str name = json_name(object, i);
        if (is_known(table, name) || (object->item[i].kind == JSON_NULL && !a->ignored.strict))
            continue;
        st = a->ignored.strict ? unknown(a, table, name, param, err)
                               : fields_ignore(&a->ignored, NULL, name, err);
    }
    for (const field *f = table; f->name && st == GGL_OK; f++) {
        const json_value *v = llm_json_get(object, f->name);
        const bool reads_null = f->kind == FIELD_FN && f->min == 1;
        if (!v || (v->kind == JSON_NULL && !reads_null))
            continue;
        *param = f->name;
        const reading r = {a, f, v, facts, err};
        const size_t outer = fields_enter(&a->ignored, f->name);
        st = readers[f->kind](&r);
        fields_leave(&a->ignored, outer);
    }
    if (st == GGL_OK)
        *param = NULL;
    return st;
}
