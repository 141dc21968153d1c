/* The tree of a parsed template. Lists of nodes are linked by `next`. */
#ifndef LLM_TEMPLATE_NODE_H
#define LLM_TEMPLATE_NODE_H

#include "llm/internal/template.h"
#include "value.h"

typedef enum tn_kind {
    /* expressions */
    TN_CONST, /* value */
    TN_NAME,  /* id */
    TN_LIST,  /* a: elements */
    TN_TUPLE, /* a: elements */
    TN_DICT,  /* a: PAIRs (a: key, b: value) */
    TN_PAIR,
    TN_ATTR,    /* a.name */
    TN_INDEX,   /* a[b] */
    TN_SLICE,   /* a[b:c:d] */
    TN_CALL,    /* a(arguments b) */
    TN_FILTER,  /* a | name(arguments b); in a filter block a is NULL */
    TN_TEST,    /* a is name(arguments b) */
    TN_ARG,     /* of a call: a; by name unless name.n is 0; `op` '*' or 'D' (**): spread */
    TN_NOT,     /* not a */
    TN_NEGATE,  /* -a */
    TN_PLUS,    /* +a */
    TN_BINARY,  /* a op b; op is a character: + - * / % ~, 'f' (//) or 'p' (**) */
    TN_COMPARE, /* a, then b: COMPARISONs (a: operand, op: a tn_compare) */
    TN_COMPARISON,
    TN_AND,
    TN_OR,
    TN_COND, /* a if b else c; c NULL: undefined */
    /* statements */
    TN_TEXT,     /* value */
    TN_PRINT,    /* {{ a }} */
    TN_IF,       /* if a: b, else: c */
    TN_FOR,      /* for target a in b, if d: body c, else: e */
    TN_SET,      /* target a = b */
    TN_SET_TEXT, /* target a = what c prints, through the filters b */
    TN_FILTERED, /* prints what c prints, through the filters b */
    TN_WITH,     /* a: SETs, c: body */
    TN_MACRO,    /* id; a: PARAMs (id, a: default or NULL), c: body */
    TN_PARAM,
    TN_CALLER, /* {% call(a: PARAMs) b %} c {% endcall %} */
    TN_BREAK,
    TN_CONTINUE
} tn_kind;

typedef enum tn_compare { TN_EQ, TN_NE, TN_LT, TN_LE, TN_GT, TN_GE, TN_IN, TN_NOT_IN } tn_compare;

typedef struct tn {
    tn_kind kind;
    int op;
    int line;
    int id; /* index of a variable's name */
    ggl_str name;
    const struct tv_builtin *builtin; /* FILTER, TEST; NULL: the name is unknown */
    tv value;
    struct tn *a, *b, *c, *d, *e;
    struct tn *next;
} tn;

typedef struct tn_name { /* a variable's name */
    ggl_str text;
} tn_name;

struct llm_template {
    tv_heap heap; /* nodes and texts */
    char *name;
    tn *body;
    tn_name *names;
    size_t n_names, cap_names;
    ggl_index by_name;
};

/* Parses the text, a copy in t's arena; fails as llm_tv_fail does. */
void llm_tn_parse(llm_template *t, const char *text, size_t size);
/* Fails because a FILTER or TEST has no builtin. */
_Noreturn void llm_tn_unknown(tv_heap *h, const tn *t);
/* Returns the index of the variable's name; adds it. */
int llm_tn_name_id(llm_template *t, ggl_str name);

/* Returns the index of the variable's name; SIZE_MAX: the template does not mention it. */
size_t llm_tn_find(const llm_template *t, ggl_str name);

#endif
