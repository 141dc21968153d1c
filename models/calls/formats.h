/* The table of call formats, call_formats.txt, which describes its lines itself. */
#ifndef LLM_CALLS_FORMATS_H
#define LLM_CALLS_FORMATS_H

#include "ggl/internal/alloc.h"
#include "ggl/str.h"

enum { MAX_MARKS = 24, MAX_PATTERNS = 6, MAX_PIECES = 10 };

typedef enum piece_kind {
    PIECE_TEXT,
    PIECE_START, /* ^ */
    PIECE_ANY,   /* *: anywhere */
    PIECE_NAME,
    PIECE_PATH,
    PIECE_ID,
    PIECE_SKIP,
    PIECE_ARGS,
    PIECE_JSON,
    PIECE_MAP,
    PIECE_PYTHON,
    PIECE_LOOSE,
    PIECE_TREE,
    PIECE_PARAMS,
    PIECE_KEY,
    PIECE_VALUE,
    PIECE_STRING,
    PIECE_TYPE
} piece_kind;

typedef struct piece {
    piece_kind kind;
    bool optional; /* TEXT: it and the next piece may be absent */
    ggl_str text;  /* TEXT */
} piece;

typedef struct pattern {
    piece piece[MAX_PIECES];
    int n;
} pattern;

typedef enum mark_role { MARK_THINK, MARK_CALL, MARK_DROP } mark_role;

/* A text at which something begins. Several patterns may begin with the same mark. */
typedef struct mark {
    ggl_str text;
    mark_role role;
    ggl_str close, other_close; /* THINK: either ends it; the second one may be empty */
    bool ends_call;             /* DROP: it is the closing mark of a call */
} mark;

typedef struct call_format {
    mark mark[MAX_MARKS];
    int n_marks;
    pattern call[MAX_PATTERNS], arg;
    int n_calls;
    ggl_str name_key, args_key, id_key; /* alternatives between | */
    ggl_str quote, cut, tag;
    ggl_str verbatim, verbatim_end, skip, skip_end;
    bool lines, late_ids;
    bool first[256];       /* bytes with which marks begin */
    bool may_start;        /* there is a pattern that begins with ^ */
    bool anywhere;         /* there is a pattern that begins with * */
    bool no_memory;        /* a string could not be kept */
    struct ggl_arena text; /* of the strings */
} call_format;

/* Reads the format of a name. GGL_NOT_FOUND, GGL_NOMEM; GGL_FORMAT: an error in the table itself,
 * which a test would find. To be freed by llm_call_format_fini, also after an error. */
GGL_NODISCARD ggl_status llm_call_format_load(call_format *f, ggl_str name, ggl_error *err);
/* Leaves out what the format says of calls: they are text. */
void llm_call_format_drop_calls(call_format *f);
void llm_call_format_fini(call_format *f);

#endif
