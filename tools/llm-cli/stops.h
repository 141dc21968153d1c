/* Ends a text at a stop string. Text goes to a text_stream as soon as it can be no part of one. */
#ifndef TOOLS_STOPS_H
#define TOOLS_STOPS_H

#include "common/args.h"
#include "ggl/str.h"
#include "llm/internal/stop.h"
#include "text_stream.h"

typedef struct stops_options {
    arg_list reverse, stop; /* -r, --stop */
} stops_options;

#define STOPS_OPTIONS(o)                                                                           \
    {"-r --reverse-prompt", ARG_LIST, &(o).reverse, .value = "TEXT",                               \
     .help = "end the text after TEXT was generated; repeatable"},                                 \
    {                                                                                              \
        "--stop", ARG_LIST, &(o).stop, .value = "TEXT",                                            \
                                       .help = "the same, but TEXT itself is not printed"          \
    }

typedef struct stops {
    llm_stop *strings;
    size_t n_reverse; /* the first of the strings are printed when they are found */
    char *waiting;    /* [cap], n of them; hidden[i]: byte i is not to be printed */
    bool *hidden;
    size_t n, cap, cap_hidden;
    bool found;
} stops;

/* escape: resolve \n and the like. Fails with GGL_NOMEM. */
GGL_NODISCARD ggl_status stops_init(stops *s, const stops_options *o, bool escape, ggl_error *err);
void stops_fini(stops *s);
/* Reads the text of the next token. hidden: it takes part in stop strings, but is never printed (a
 * control token). Sets s->found when the text has ended; what follows is dropped. */
GGL_NODISCARD ggl_status stops_put(stops *s, text_stream *out, ggl_str text, bool hidden,
                                   ggl_error *err);
/* Begins another text; nothing waits. */
void stops_reset(stops *s);
/* Ends the text: prints what still waits. */
void stops_end(stops *s, text_stream *out);

#endif
