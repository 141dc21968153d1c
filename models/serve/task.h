/* A task: a sequence of the engine, from llm_engine_add until its callback `ended`. */
#ifndef LLM_TASK_H
#define LLM_TASK_H

#include "llm/internal/engine.h"
#include "sequence.h"
#include "id_table.h"

enum { TASK_N_STOPS = 16 };

/* A search of beams: one task for each place of a beam. The first is that of the caller, which runs the prompt; the others get
 * slots when it has run. The group runs, waits and ends as one. */
typedef struct group {
    llm_beams *beams;
    struct task *member[LLM_MAX_BEAMS]; /* [n]; the beam in place i is that of member[i] */
    int32_t n;
    int32_t n_left; /* beams whose logits are to come before the next step of the search */
} group;

typedef struct task {
    table_node node; /* key: the sequence's id */
    llm_sequence_params p;
    seq q;                                             /* owns its tokens */
    enum { TASK_WAITS, TASK_RUNS, TASK_LEAVES } where; /* in the queue, in run[], in leaving */
    struct task *prev, *next;                          /* in the queue, or in leaving */
    struct client *client;                             /* in the queue */
    int32_t *type; /* [n_begin], of a text that is seen whole; NULL: all are 0 */
    float *share;  /* of q */
    int32_t *text; /* of q: read by the model before it writes; NULL: the tokens are its prompt */
    llm_diffuser *
        diffuser; /* NULL: it draws one token after the other. Its q.token has room for the text, of q.n tokens */
    group *group;    /* NULL: it has no beams */
    int32_t place;   /* in the group */
    int64_t n_given; /* tokens of the text, prompt included, that the caller has */
    int64_t n_found; /* tokens of the prompt that are a text which a slot had read before */
    int64_t
        n_begin; /* tokens that the sequence begins with: the prompt, or of a text that is read the model's own token */
    /* --- while it runs */
    bool reads;                 /* it runs its prompt: no token was drawn since it got a place */
    bool waits;                 /* for the other beams of its group: it has nothing to run */
    bool has_begun;             /* a slot holds its tokens */
    bool has_begun_before;      /* t_begun and n_reused of its statistics are set */
    uint64_t turn;              /* tasks that began later make room first */
    int guesser;                /* index of its guesser; -1: none */
    int64_t stop[TASK_N_STOPS]; /* positions at which a piece of its prompt has to end; ascending */
    int n_stops;
    int64_t save_at; /* the first tokens that are to be saved when they have run; 0: none */
    uint64_t leader; /* the task that runs the common beginning of both; 0: none */
    int64_t lead_to; /* tokens of that beginning */
    /* the prompt's tokens whose logits, embeddings or scores were shown already, or are not wanted */
    int64_t n_prompted;
    int64_t embed_end; /* the end of those whose embeddings or scores are wanted */
    /* --- in a step, whose batch has n_piece of its tokens from index `first` on: those of positions
     * from .. from + n_piece - 1.
     *
     *     position   0        from        n_before - 1    n_before
     *     tokens     | in slot | to be run | the last one | guesses ... |
     *                          |<- n_piece: as many of these as there is room for ->|
     *
     * The next token is drawn from the logits of the last one (row 0), those after it from the logits
     * of the guesses (rows 1, 2, ...), as long as these are right. What it draws does not change n_before. */
    int64_t first, n_piece, from, n_before;
    bool is_under_way; /* its batch is not collected yet */
    bool is_full;      /* the context is, and it is to shift before the next step */
    /* --- whose tokens are asked for */
    const float *
        *row; /* [n_rows] of q.n_ahead_max + 1: the logits of the last batch, until the next one */
    int64_t n_rows;
    int64_t n_held;  /* tokens that its slot held when it began to read */
    bool is_stopped; /* by its progress */
    int64_t keep_at; /* the tokens after which a copy of the slot is kept; 0: none is */
    /* --- when it is over */
    bool is_over;
    llm_end why;
    ggl_error err;
    llm_sequence_stats stats;
} task;

/* Checks the parameters and copies the prompt. n_guess_max: its guesser's (llm_seq_init), which may
 * change from step to step; NULL if none. Statuses as for llm_engine_add. */
ggl_status llm_task_new(task **out, llm_session *s, const llm_sequence_params *p,
                        const llm_guesser *guesser, int64_t n_guess_max, ggl_error *err);
/* Frees the other tasks of its group, too, if it is the first one. */
void llm_task_free(task *t);
/* True if it has a token to run next. */
static inline bool llm_task_generates(const task *t) {
    return !t->reads && !t->waits && !t->is_over;
}
/* True for all but the first task of a group. */
static inline bool llm_task_is_beam(const task *t) {
    return t->group && t->place > 0;
}
/* Makes room for all tokens that it may draw. Call before it runs. */
ggl_status llm_task_make_room(task *t, ggl_error *err);

/* Notes why it ends; the first reason counts. */
void llm_task_over(task *t, llm_end why);
/* With LLM_END_FAILED; err is copied. */
void llm_task_failed(task *t, const ggl_error *err);
/* True if logits or embeddings of the prompt are shown. */
static inline bool llm_task_shows(const task *t) {
    return t->p.prompted || t->p.embedded;
}
/* Drops tokens, since the context is full, and lets the rest run again. Not while its batch is under way. Returns false if
 * no token can be dropped. */
bool llm_task_shift(task *t);
/* Returns how many tokens have to run before the next can be drawn. */
int64_t llm_task_todo(const task *t);
/* Returns how many tokens a task that generates runs next: its last one, and at most n_guess guesses. */
int64_t llm_task_next(const task *t, int64_t n_guess);
/* True if the task may use tokens that other sequences have run. False if logits or embeddings are still to be
 * shown for tokens of the prompt before the last one, since these must run. */
bool llm_task_reuses(const task *t);
/* Makes a piece of its tokens end after the first n tokens. Returns false if these have run already, or if there are
 * too many such positions. */
bool llm_task_add_stop(task *t, int64_t n);
/* Returns the most tokens that its next piece may have. */
int64_t llm_task_until_stop(const task *t);

#endif
