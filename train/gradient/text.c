/* Makes nodes of the texts of gradients.def:
 *
 *     text   = { name "=" sum ";" } entry { "," entry }       an entry for each tensor of the signature; "-": no gradient
 *     sum    = compare; compare = add [ ("==" | "!=" | "<" | "<=" | ">" | ">=") add ]
 *     add    = product { ("+" | "-") product }
 *     product= signed { ("*" | "/") signed };  signed = { "-" } power;  power = primary [ "**" signed ]
 *     primary= number | name | function "(" sum { "," sum } ")" | "(" sum ")"
 *
 * Names are the arguments of the signature, dy, y (the result), and those that the text defines. A function is an operator that
 * descriptors can call, or size(x), the length of x's rows, or as(x, t), x in the shape of t. Texts are ours, and tests apply
 * each of them, so a mistake in one is reported as a fault of the library, not looked for here. */
#include <math.h>
#include <string.h>

#include "ggl/internal/number.h"
#include "gradient_impl.h"

enum { MOST_NAMES = 16, MOST_ARGUMENTS = 6 };

/* A tensor, or, with t NULL, a number. */
typedef struct quantity {
    ggl_tensor *t;
    double number;
} quantity;

typedef struct named {
    char name[16];
    quantity is;
    bool forward; /* a value of the graph, which may have to be computed again */
} named;

typedef struct text {
    grad_work *w;
    const char *p; /* what is left */
    named at[MOST_NAMES];
    int n;
    bool skips;                /* nobody needs what is read: no nodes are made */
    const ggl_tensor *watched; /* NULL; or what we want to know of: whether its elements are read */
    bool unused, reads;        /* unused: what is read has no part in that */
    bool wrong;
} text;

static quantity number(double x) {
    return (quantity){NULL, x};
}

static quantity mistake(text *s) {
    if (!s->wrong)
        ggl_graph_fail(s->w->g, GGL_USAGE, "a rule of gradients.def cannot be read at '%.40s'",
                       s->p);
    s->wrong = true;
    return number(NAN);
}

static void skip_space(text *s) {
    while (*s->p == ' ')
        s->p++;
}

/* True if the text goes on with the symbol, which is then read. */
static bool reads(text *s, const char *symbol) {
    skip_space(s);
    const size_t n = strlen(symbol);
    if (strncmp(s->p, symbol, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* Reads a name; false if there is none. */
static bool read_name(text *s, char *name, size_t size) {
    skip_space(s);
    size_t n = 0;
    while (is_letter(s->p[n]) || (n > 0 && s->p[n] >= '0' && s->p[n] <= '9'))
        n++;
    if (n == 0 || n >= size)
        return false;
    memcpy(name, s->p, n);
    name[n] = 0;
    s->p += n;
    return true;
}

static void define(text *s, const char *name, quantity is, bool forward) {
    if (s->n == MOST_NAMES || strlen(name) >= sizeof s->at->name) {
        mistake(s);
        return;
    }
    named *x = &s->at[s->n++];
    strcpy(x->name, name);
    x->is = is;
    x->forward = forward;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static ggl_tensor *as_tensor(text *s, quantity x) {
    return x.t ? x.t : ggl_graph_number(s->w->g, x.number);
}

static quantity node(text *s, ggl_op op, ggl_tensor *const *src, int n_src, const double *num,
                     int n_num) {
    ggl_tensor *t = ggl_graph_op(s->w->g, op, src, n_src, num, n_num);
    s->wrong |= !t;
    return t ? (quantity){t, 0} : number(NAN);
}

static double of_numbers(ggl_op op, double a, double b) {
    return op == GGL_OP_ADD   ? a + b
           : op == GGL_OP_SUB ? a - b
           : op == GGL_OP_MUL ? a * b
           : op == GGL_OP_DIV ? a / b
           : op == GGL_OP_POW ? pow(a, b)
                              : NAN; /* no rule compares numbers */
}

static quantity binary(text *s, ggl_op op, quantity a, quantity b) {
    if (s->skips || s->wrong)
        return number(0);
    if (!a.t && !b.t)
        return number(of_numbers(op, a.number, b.number));
    ggl_tensor *src[2] = {as_tensor(s, a), as_tensor(s, b)};
    return node(s, op, src, 2, NULL, 0);
}

/* A constant with its sign changed: numbers of 64 bits stay such, so that frequencies keep their precision. */
static quantity negative_constant(text *s, const ggl_tensor *x) {
    const size_t n = x->size / sizeof(double);
    double *v = ggl_calloc(n + 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = -((const double *)x->data)[i];
    quantity y = {v ? ggl_graph_const(s->w->g, x->n_dims, x->ne, v) : NULL, 0};
    if (!v)
        ggl_graph_fail(s->w->g, GGL_NOMEM, "out of memory for gradients");
    s->wrong |= !y.t;
    ggl_free(v);
    return y;
}

/* -x. What is the same for all of the batch is negated once, so that all rotations share a table. */
static quantity negative(text *s, quantity x) {
    if (s->skips || s->wrong || !x.t)
        return number(-x.number);
    const bool shares = !ggl_is_batched(x.t) && !s->w->in_body;
    const grad_note *known = ggl_grad_note(s->w, x.t);
    if (shares && known && known->negative)
        return (quantity){known->negative, 0};
    const quantity y = x.t->op == GGL_OP_CONST && x.t->type == GGL_F64
                           ? negative_constant(s, x.t)
                           : binary(s, GGL_OP_SUB, number(0), x);
    grad_note *note = shares ? ggl_grad_note(s->w, x.t) : NULL;
    if (note)
        note->negative = y.t;
    return y;
}

static quantity call(text *s, const char *name, const quantity *x, int n) {
    if (s->skips || s->wrong)
        return number(0);
    if (strcmp(name, "size") == 0)
        return n == 1 && x->t ? number((double)x->t->ne[0]) : mistake(s);
    if (strcmp(name, "as") == 0) {
        quantity y = {n == 2 && x[0].t && x[1].t
                          ? ggl_grad_reshape(s->w, x[0].t, x[1].t->n_dims, x[1].t->ne)
                          : NULL,
                      0};
        return y.t ? y : mistake(s);
    }
    const ggl_op op = ggl_op_find(name);
    if (op == GGL_OP_COUNT)
        return mistake(s);
    ggl_tensor *src[MOST_ARGUMENTS];
    double num[MOST_ARGUMENTS];
    int n_src = 0, n_num = 0, i = 0;
    const ggl_op_info info = ggl_op_get(op);
    for (int k = 0; k < info.n_params; k++) {
        const ggl_param p = ggl_op_param(op, k);
        if (p.kind == GGL_PARAM_TENSOR && i < n)
            src[n_src++] = as_tensor(s, x[i++]);
        else if (p.kind == GGL_PARAM_NUMBER && i < n)
            num[n_num++] = x[i].t ? NAN : x[i].number, i++;
    }
    return i == n ? node(s, op, src, n_src, num, n_num) : mistake(s);
}

/* --- expressions ------------------------------------------------------------------------------ */

static quantity read_sum(text *s);

static quantity value_of(text *s, const char *name) {
    for (int i = s->n; i-- > 0;)
        if (strcmp(s->at[i].name, name) == 0) {
            quantity x = s->at[i].is;
            s->reads |= s->at[i].forward && x.t && x.t == s->watched && !s->unused;
            if (s->at[i].forward && !s->skips && x.t)
                x.t = ggl_grad_value(s->w, x.t);
            return x;
        }
    return mistake(s);
}

static quantity read_primary(text *s) {
    char name[16];
    quantity x[MOST_ARGUMENTS];
    skip_space(s);
    const size_t digits = ggl_number_length(s->p, strlen(s->p));
    if (digits > 0 && *s->p != '+' && *s->p != '-') {
        s->p += digits;
        return number(ggl_number_value(s->p - digits, digits));
    }
    if (reads(s, "(")) {
        x[0] = read_sum(s);
        return reads(s, ")") ? x[0] : mistake(s);
    }
    if (!read_name(s, name, sizeof name))
        return mistake(s);
    if (!reads(s, "("))
        return value_of(s, name);
    int n = 0;
    const bool unused = s->unused;
    s->unused |= strcmp(name, "size") == 0 || strcmp(name, "as") == 0; /* they need shapes alone */
    do
        x[n++] = read_sum(s);
    while (n < MOST_ARGUMENTS && !s->wrong && reads(s, ","));
    s->unused = unused;
    return reads(s, ")") ? call(s, name, x, n) : mistake(s);
}

static quantity read_signed(text *s) {
    if (reads(s, "-"))
        return negative(s, read_signed(s));
    quantity x = read_primary(s);
    return reads(s, "**") ? binary(s, GGL_OP_POW, x, read_signed(s)) : x;
}

static quantity read_product(text *s) {
    quantity x = read_signed(s);
    for (;;)
        if (reads(s, "*"))
            x = binary(s, GGL_OP_MUL, x, read_signed(s));
        else if (reads(s, "/"))
            x = binary(s, GGL_OP_DIV, x, read_signed(s));
        else
            return x;
}

static quantity read_add(text *s) {
    quantity x = read_product(s);
    for (;;)
        if (reads(s, "+"))
            x = binary(s, GGL_OP_ADD, x, read_product(s));
        else if (reads(s, "-"))
            x = binary(s, GGL_OP_SUB, x, read_product(s));
        else
            return x;
}

static quantity read_sum(text *s) {
    static const ggl_op order[] = {GGL_OP_EQ, GGL_OP_NE, GGL_OP_LE,
                                   GGL_OP_GE, GGL_OP_LT, GGL_OP_GT};
    quantity x = read_add(s);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (reads(s, ggl_op_get(order[i]).name))
            return binary(s, order[i], x, read_add(s));
    return x;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Defines the names of an operator's arguments. Sources are counted in *n_src. */
static void define_arguments(text *s, const ggl_tensor *t) {
    int i_src = 0, i_num = 0;
    for (int k = 0; k < ggl_op_get(t->op).n_params; k++) {
        const ggl_param p = ggl_op_param(t->op, k);
        if (p.kind == GGL_PARAM_NUMBER && !p.variadic)
            define(s, p.name, number(t->num[i_num++]), false);
        else if (p.kind != GGL_PARAM_NUMBER)
            define(s, p.name, (quantity){t->src[i_src++], 0}, true);
    }
}

/* The same for a composite with a signature such as "x #eps". */
static void define_signature(text *s, const ggl_tensor *t, const char *signature) {
    int i_src = 0, i_num = 0;
    for (const char *p = signature; *p; p += strspn(p, " ")) {
        const bool is_number = *p == '#';
        char name[16] = {0};
        p += is_number;
        const size_t n = strcspn(p, " ");
        memcpy(name, p, n < sizeof name ? n : sizeof name - 1);
        if (is_number ? i_num >= t->n_num : i_src >= t->n_src)
            mistake(s);
        else if (is_number)
            define(s, name, number(t->num[i_num++]), false);
        else
            define(s, name, (quantity){t->src[i_src++], 0}, true);
        p += n;
    }
}

/* Reads the definitions that precede the entries. */
static void read_definitions(text *s) {
    for (;;) {
        const char *back = s->p;
        char name[16];
        if (!read_name(s, name, sizeof name) || !reads(s, "=") || *s->p == '=') {
            s->p = back;
            return;
        }
        define(s, name, read_sum(s), false);
        if (!reads(s, ";"))
            mistake(s);
        if (s->wrong)
            return;
    }
}

/* Reads the text of t's rule, and adds to the gradients of its sources unless something is watched. all: as if all were active. */
static void read_rule(text *s, const grad_rule *rule, ggl_tensor *t, ggl_tensor *dy, bool all) {
    grad_work *w = s->w;
    s->p = rule->text;
    if (rule->signature)
        define_signature(s, t, rule->signature);
    else
        define_arguments(s, t);
    define(s, "dy", (quantity){dy, 0}, false);
    define(s, "y", (quantity){t, 0}, true);
    s->skips = s->watched != NULL;
    read_definitions(s);
    for (int k = 0; k < t->n_src && !s->wrong; k++) {
        const char *back = s->p;
        if (reads(s, "-") && (*s->p == ',' || *s->p == 0)) {
            /* no gradient */
        } else {
            s->p = back;
            s->unused = !all && !ggl_grad_is_active(w, t->src[k]);
            s->skips = s->unused || s->watched;
            const quantity d = read_sum(s);
            if (!s->skips && !s->wrong)
                ggl_grad_add(w, t, t->src[k], as_tensor(s, d));
        }
        if (!reads(s, ","))
            break;
    }
    skip_space(s);
    if (*s->p && !s->wrong)
        mistake(s);
}

void ggl_grad_apply(grad_work *w, const grad_rule *rule, ggl_tensor *t, ggl_tensor *dy) {
    text s = {.w = w};
    read_rule(&s, rule, t, dy, false);
}

bool ggl_grad_reads(grad_work *w, const grad_rule *rule, const ggl_tensor *t, const ggl_tensor *x,
                    bool all) {
    text s = {.w = w, .watched = x};
    read_rule(&s, rule, (ggl_tensor *)t, NULL, all); /* makes no nodes */
    return s.reads;
}
