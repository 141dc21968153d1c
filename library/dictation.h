/* What a text that is dictated consists of: parts that are heard as a whole (dictating.c), or while they come (dictating_live.c), and the text that is written of each. */
#ifndef LIBRARY_DICTATION_H
#define LIBRARY_DICTATION_H

#include "asking.h"
#include "ear_flow.h"
#include "hearing.h"
#include "job_parts.h"
#include "opening.h"

enum { LLM_DICTATION_PIECE = 1 << 16 /* samples that are read at once */ };

typedef struct dictation {
    llm_context *c;
    const llm_transcribe_params *p;
    const llm_transcribe_way *way;
    llm_eye *ear;
    const llm_arch_sound *how;
    asking asking;
    hearing h;
    const char *code; /* of the language; NULL: not known */
    float *sample;    /* [n_most + 1]: those that were read and not written down yet */
    int64_t n_most, n;
    int64_t at;     /* the first of them, of what is heard */
    int64_t until;  /* what is heard from there on is not wanted */
    bool has_ended; /* the sound, or what of it is wanted */
    llm_tokens prompt;
    /* The answer: its tokens and their text, as it comes; */
    llm_tokens ids;
    char *raw, *text; /* and as UTF-8, with a space before it */
    size_t n_raw, cap_raw, cap_text;
    double logprob; /* of all its tokens */
    int64_t n_drawn;
    llm_job_parts parts; /* what draws them, if is_drawing */
    bool is_drawing;
    size_t n_told; /* bytes of raw that the caller has, as text that is being written */
    uint64_t id;   /* of its text, where that is in the context's own engine */
    bool is_over, lacks_room;
    llm_end why;
    ggl_status st;
    ggl_error err;
    /* Of a sound that is written down while it comes (dictating_live.c). */
    ear_flow *flow;  /* of the part; NULL: it has none yet */
    int64_t n_heard; /* samples of it that the ear has heard */
} dictation;

/* Begins without a sound: what is said is asked for as d->p says. d: zero but for c, p and way; free it with llm_dictation_fini in any case. Statuses of llm_transcribe. */
GGL_NODISCARD ggl_status llm_dictation_begin(dictation *d, ggl_error *err);
void llm_dictation_fini(dictation *d);
/* Tells the language, once it is known. */
void llm_dictation_tell_language(dictation *d, const char *code);
/* How many of the samples are the next part, of which the end is known: there are more than a part has, or the sound has ended. */
int64_t llm_dictation_cut(const dictation *d);
/* How many of the samples are in it in any case. */
int64_t llm_dictation_certain(const dictation *d);
/* Begins the answer to d->prompt, to a part of so many seconds: *p becomes what the engine is asked for. */
GGL_NODISCARD ggl_status llm_dictation_ask(dictation *d, double seconds, llm_sequence_params *p,
                                           ggl_error *err);
/* Ends the text in the context's own engine, if it has not ended: the context's sequence is empty then. st: how it went; it is returned, or why that failed. */
GGL_NODISCARD ggl_status llm_dictation_leave(dictation *d, ggl_status st, ggl_error *err);
/* Ends the answer. st: how it went; what has gone wrong meanwhile is returned. */
GGL_NODISCARD ggl_status llm_dictation_answered(dictation *d, ggl_status st, ggl_error *err);
/* Gives the caller what was written since the last call; is_last: the part ends. GGL_CANCELLED: it wants no more; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_dictation_tell(dictation *d, bool is_last, ggl_error *err);
/* Gives the caller the piece that part of n samples has become, and drops these. */
GGL_NODISCARD ggl_status llm_dictation_end_part(dictation *d, int64_t n, ggl_error *err);

#endif
