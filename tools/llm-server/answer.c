/* Answers: jobs on the engine's thread. */
#include <math.h>
#include <stdio.h>

#include "answer_impl.h"
#include "ggl/internal/math.h"

static void job_end_if_done(job *j);

static const api_error ending = {
    .status = 503, .type = "overloaded", .message = "the server is ending"};

/* Records how long the first token of an answer took. */
static void on_first_token(job *j) {
    const double s = (double)(answers_now(j->answers) - j->t_start) * 1e-9;
    answers_times *t = &j->answers->first_tokens;
    int k = 0;
    while (k < ANSWERS_BOUNDS && s > answers_bound[k])
        k++;
    t->n[k]++;
    t->sum += s;
    j->x.counts.first_s = s;
    j->has_first = true;
}

static void list_add(job *j) {
    answers *x = j->answers;
    j->next = x->first;
    j->at = &x->first;
    if (x->first)
        x->first->at = &j->next;
    x->first = j;
    x->n++;
}

static void list_remove(job *j) {
    *j->at = j->next;
    if (j->next)
        j->next->at = j->at;
    j->answers->n--;
}

/* --- the end of jobs ---------------------------------------------------------------------------- */

static void job_fail_as(job *j, ggl_status st, const ggl_error *err) {
    const api_error e = api_error_of(st, err, NULL);
    job_fail(j, &e);
}

/* Ends a stream that is kept, and that nobody wants any more. */
static void job_end_kept(job *j) {
    static const api_error cancelled = {.status = 400,
                                        .type = "invalid_request",
                                        .message = "the stream was cancelled by another request"},
                           alone = {.status = 504,
                                    .type = "timeout",
                                    .message =
                                        "nobody has read the stream for the time of --resume-time"};
    job_fail(j, stream_log_is_cancelled(j->log) ? &cancelled : &alone);
}

/* True if nobody waits for the answer any more; the job is then stopped. */
static bool job_is_gone(job *j) {
    const bool is_there = !http_reply_is_gone(j->reply);
    if (stream_log_is_wanted(j->log, is_there))
        return false;
    if (j->is_over)
        return true;
    if (!is_there)
        server_count(j->server, COUNT_GONE);
    if (j->log)
        job_end_kept(j);
    else
        job_stop(j);
    return true;
}

static void job_end_if_done(job *j) {
    const bool is_done = j->is_over || j->n_ended == j->x.n_choices;
    if (!is_done || j->n_running > 0 || j->n_holds > 0)
        return;
    list_remove(j);
    job_end_reply(j);
}

/* --- drawn tokens ------------------------------------------------------------------------------- */

/* Describes a token with its log-probabilities, which are valid until the next call for the job. */
static answer_token describe_token(seat *s, int32_t id, const float *logits) {
    job *j = s->job;
    const ask *a = j->ask;
    answer_token t = {.id = id, .logprob = NAN, .top = j->top};
    const size_t n_vocab = (size_t)j->x.facts->n_vocab;
    if (a->n_top < 0 || !logits)
        return t;
    if (!a->sampled_probs) {
        llm_logprob chosen = {.id = id};
        t.n_top = llm_logprobs(logits, (int32_t)n_vocab, &chosen, j->top, j->n_top);
        t.logprob = chosen.logprob;
        return t;
    }
    const size_t n = llm_sampler_candidates(s->parts.sampler, j->candidate, n_vocab);
    for (size_t i = 0; i < n && i < n_vocab; i++) {
        const llm_candidate *c = &j->candidate[i];
        if (i < j->n_top)
            j->top[t.n_top++] = (llm_logprob){c->id, ggl_log(c->p)};
        if (c->id == id)
            t.logprob = ggl_log(c->p);
    }
    return t;
}

/* Writes the tokens of the prompt that are known by now, the first time with the prompt's text. */
static bool give_echo(seat *s) {
    const ggl_str none = {"", 0};
    const answer_part part = {.kind = PART_CONTENT,
                              .text = s->has_echoed ? none : seat_prompt(s)->text,
                              .token = s->echo,
                              .n_tokens = s->n_echo};
    if (s->has_echoed && s->n_echo == 0)
        return true;
    s->has_echoed = true;
    s->n_echo = 0;
    return job_give(s->job, s->choice, &part);
}

/* Finds the prompt's next token in the prompt's text. Returns how many bytes at its beginning are not there. */
static size_t n_hidden_in_prompt(seat *s, int32_t id) {
    const llm_tokenizer *t = server_tokenizer(s->job->server);
    const ggl_str all = seat_prompt(s)->text, text = llm_token_text(t, id, true);
    const ggl_str rest = {all.s + s->echo_at, all.n - s->echo_at};
    const bool is_there = text.n <= rest.n && memcmp(rest.s, text.s, text.n) == 0;
    if (!is_there && llm_token_text(t, id, false).n == 0)
        return text.n;
    const size_t n_hidden =
        !is_there && text.n > 0 && text.s[0] == ' ' && rest.n > 0 && rest.s[0] != ' ';
    s->echo_at += text.n - n_hidden < rest.n ? text.n - n_hidden : rest.n;
    return n_hidden;
}

/* Adds the prompt's token i. logits: those after the token before it; NULL: it is the first. */
static void add_echo(seat *s, size_t i, const float *logits) {
    job *j = s->job;
    const int32_t id = seat_prompt(s)->ids.id[i];
    llm_logprob chosen = {.id = id, .logprob = NAN}, *top = s->echo_top + s->n_echo * j->n_top;
    const int32_t n_vocab = (int32_t)j->x.facts->n_vocab;
    const size_t n = logits ? llm_logprobs(logits, n_vocab, &chosen, top, j->n_top) : 0;
    s->echo[s->n_echo++] =
        (answer_token){.id = id,
                       .text = llm_token_text(server_tokenizer(j->server), id, true),
                       .n_hidden = n_hidden_in_prompt(s, id),
                       .logprob = chosen.logprob,
                       .top = top,
                       .n_top = n};
    if (s->n_echo == ANSWER_ECHO_PIECE && !give_echo(s))
        job_fail_as(j, GGL_NOMEM, NULL);
}

/* Adds the log-probability of the prompt's next token. A prompt runs in pieces, so little is written in each
 * step. */
static void on_prompted(void *ctx, int64_t i, const float *logits) {
    seat *s = ctx;
    if (!s->echo || s->job->is_over || job_is_gone(s->job))
        return;
    if (i == 0)
        add_echo(s, 0, NULL);
    if ((size_t)i + 1 < seat_prompt(s)->ids.n)
        add_echo(s, (size_t)i + 1, logits);
}

static bool on_token(void *ctx, int32_t id, const float *logits) {
    seat *s = ctx;
    job *j = s->job;
    ggl_error err = {0};
    if (j->is_over || job_is_gone(j))
        return false;
    if (j->x.choice[s->choice].n_drawn == 0) {
        job_tell_progress(j); /* all of a short prompt has run in this step */
        seat_tell_progress(s, j->x.choice[s->choice].n_prompt);
    }
    if (!j->has_first)
        on_first_token(j);
    j->x.choice[s->choice].n_drawn++;
    ggl_status st =
        give_echo(s) ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory for an answer");
    if (st == GGL_OK && !j->ask->ignore_eos &&
        llm_tokenizer_is_eog(server_tokenizer(j->server), id))
        return true;
    const answer_token t = describe_token(s, id, logits);
    if (st == GGL_OK)
        st = job_hold_matchers(j, &err);
    if (st == GGL_OK)
        st = answer_text_token(&s->text, &t, &err);
    if (st == GGL_OK)
        st = seat_limit_reasoning(s, &err);
    if (st != GGL_OK)
        job_fail_as(j, st, &err);
    return st == GGL_OK && answer_text_found(&s->text) < 0 && !answer_text_is_over(&s->text);
}

/* --- the end of choices ------------------------------------------------------------------------- */

static double seconds(int64_t from, int64_t to) {
    return from > 0 && to > from ? (double)(to - from) * 1e-9 : 0;
}

static void take_stats(answer_choice *c, const llm_sequence_stats *stats) {
    c->n_prompt = stats->n_prompt;
    c->n_reused = stats->n_reused;
    c->n_drawn = stats->n_drawn;
    c->n_guessed = stats->n_guessed;
    c->n_right = stats->n_right;
    c->slot = stats->slot;
    c->has_shifted = stats->n_dropped > 0;
    c->prompt_s = seconds(stats->t_begun, stats->t_prompt);
    c->generate_s = seconds(stats->t_prompt, stats->t_last);
}

/* Lets the job fail if the sequence ended without an answer. */
static void check_end(job *j, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    static const api_error late = {.status = 504,
                                   .type = "timeout",
                                   .message = "the time limit has passed before the answer began"};
    if (why == LLM_END_FAILED && err && err->status == GGL_CANCELLED && job_is_gone(j))
        return; /* the step was stopped because nobody waits for it */
    if (why == LLM_END_FAILED)
        job_fail_as(j, err ? err->status : GGL_IO, err);
    else if (why == LLM_END_CANCELLED && !j->is_over)
        job_fail(j, &ending);
    else if (why == LLM_END_DEADLINE && stats->t_prompt == 0)
        job_fail(j, &late);
}

static void set_finish(seat *s, llm_end why) {
    static const finish finishes[] = {[LLM_END_EOG] = FINISH_STOP,
                                      [LLM_END_MAX] = FINISH_LENGTH,
                                      [LLM_END_CONTEXT] = FINISH_LENGTH,
                                      [LLM_END_STOPPED] = FINISH_STOP_STRING,
                                      [LLM_END_CANCELLED] = FINISH_CANCELLED,
                                      [LLM_END_DEADLINE] = FINISH_DEADLINE,
                                      [LLM_END_FAILED] = FINISH_CANCELLED};
    answer_choice *c = &s->job->x.choice[s->choice];
    const int32_t found = answer_text_found(&s->text);
    c->finish = finishes[why];
    if (why == LLM_END_MAX && s->parts.matcher && llm_matcher_must_end(s->parts.matcher))
        c->finish = FINISH_STOP; /* the last token completed it */
    c->context_full = why == LLM_END_CONTEXT;
    if (found >= 0) {
        c->finish = FINISH_STOP_STRING;
        c->stop = s->job->ask->stop[found];
    }
    if ((why == LLM_END_STOPPED && answer_text_calls(&s->text)) ||
        (c->finish == FINISH_STOP && s->text.n_calls > 0))
        c->finish = FINISH_CALLS;
}

/* Writes the rest of a choice. */
static void end_choice(seat *s, llm_end why) {
    job *j = s->job;
    ggl_error err = {0};
    if (ask_has_rows(j->ask)) {
        const ggl_status st =
            j->ask->kind == ASK_CHOOSE ? seat_end_choose(s, &err) : seat_end_embedding(s, &err);
        if (st != GGL_OK)
            job_fail_as(j, GGL_IO, &err); /* the model is at fault, not the request */
        job_end_choice(j, s->choice);
        return;
    }
    ggl_status st =
        give_echo(s) ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory for an answer");
    if (st == GGL_OK)
        st = answer_text_end(&s->text, why != LLM_END_EOG && answer_text_found(&s->text) < 0, &err);
    if (st != GGL_OK) {
        job_fail_as(j, st, &err);
        return;
    }
    set_finish(s, why);
    j->x.counts.n_reasoning += s->text.n_reasoning;
    job_end_choice(j, s->choice);
}

static void job_go_on(job *j);

/* One of the texts of a search of beams has ended: the next one is that of the next choice. */
static void on_text(void *ctx, llm_end why, const llm_sequence_stats *stats) {
    seat *s = ctx;
    job *j = s->job;
    ggl_error err = {0};
    const int next = s->choice + 1;
    if (j->is_over)
        return;
    j->n_ended++;
    take_stats(&j->x.choice[s->choice], stats);
    end_choice(s, why);
    seat_clear(s);
    const ggl_status st = seat_prepare(s, next, &err);
    s->choice = next;
    if (st != GGL_OK)
        job_fail_as(j, st, &err);
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    seat *s = ctx;
    job *j = s->job;
    while (!j->is_over && (s->choice + 1) % job_n_texts(j) != 0)
        on_text(ctx, why, stats); /* the search was stopped before it had texts */
    s->is_added = false;
    j->n_running--;
    j->n_ended++;
    j->n_holds++;
    take_stats(&j->x.choice[s->choice], stats);
    check_end(j, why, stats, err);
    if (!j->is_over)
        end_choice(s, why);
    seat_clear(s);
    job_go_on(j);
    j->n_holds--;
    job_end_if_done(j);
}

/* --- the beginning ------------------------------------------------------------------------------ */

/* Returns how many tokens a full context keeps. The begin token is one more, as in llama.cpp: many models need it. */
static int64_t n_kept(const job *j, const job_prompt *p) {
    const int64_t n = j->ask->n_keep;
    return n + (n >= 0 && p->ids.id[0] == llm_tokenizer_bos(server_tokenizer(j->server)));
}

/* Adds a choice to the engine. GGL_LIMIT: its queue is full. */
static ggl_status add_choice(seat *s, ggl_error *err) {
    job *j = s->job;
    const ask *a = j->ask;
    const job_prompt *p = seat_prompt(s);
    float share[LLM_ARCH_MAX_TASKS];
    memcpy(share, j->share, sizeof share);
    if (p->task > 0)
        share[p->task - 1] = 1;
    llm_sequence_params params = {.size = sizeof params,
                                  .prompt = p->ids.id,
                                  .n_prompt = p->ids.n,
                                  .client = j->client,
                                  .deadline = j->deadline,
                                  .no_reuse = a->no_cache,
                                  .prompted = s->echo ? on_prompted : NULL,
                                  .token = on_token,
                                  .ended = on_end,
                                  .ctx = s,
                                  .in_slot = a->only_slot + 1,
                                  .share = j->n_shares > 0 ? share : NULL,
                                  .n_beginning = p->n_beginning};
    if (a->kind == ASK_CHOOSE) {
        seat_choose_params(s, &params);
    } else if (ask_has_rows(a)) {
        seat_embed_params(s, &params);
    } else {
        s->parts.way.n_keep = n_kept(j, p);
        llm_job_describe(&s->parts, &params);
    }
    if (params.beams) {
        params.n_texts = job_n_texts(j);
        params.text_ended = on_text;
    }
    const ggl_status st = llm_engine_add(j->engine, &params, &s->id, err);
    if (st == GGL_OK) {
        s->is_added = true;
        j->n_running++;
    }
    return st;
}

/* The engine has refused a choice. For the job's first choice that is an error; others wait until there is room. */
static void on_refused(job *j, ggl_status st, const ggl_error *err) {
    const api_error full = {.status = 429,
                            .type = "rate_limit",
                            .message = "too many requests wait already; try again later"};
    if (st != GGL_LIMIT) {
        job_fail_as(j, st, err);
    } else if (j->n_running + j->n_ended == 0) {
        server_count(j->server, COUNT_REJECTED);
        job_fail(j, &full);
    }
}

/* Ends the choice of a text without tokens, which has a vector without the engine. False: the seat has no such choice. */
static bool end_if_empty(seat *s) {
    job *j = s->job;
    if (s->choice < 0 || j->is_over || !ask_has_rows(j->ask) || seat_prompt(s)->ids.n > 0)
        return false;
    j->n_ended++;
    end_choice(s, LLM_END_MAX);
    seat_clear(s);
    return true;
}

/* Adds choices to the engine, as many as there are seats and room in its queue. */
static void job_go_on(job *j) {
    ggl_status st = GGL_OK;
    ggl_error err = {0};
    for (int i = 0; i < j->n_seats && st == GGL_OK && !j->is_over; i++) {
        seat *s = &j->seat[i];
        do {
            if (s->choice < 0 && !j->is_over && j->n_seated * job_n_texts(j) < j->x.n_choices)
                st = seat_prepare(s, j->n_seated++ * job_n_texts(j), &err);
        } while (st == GGL_OK && end_if_empty(s));
        if (st == GGL_OK && s->choice >= 0 && !s->is_added)
            st = add_choice(s, &err);
    }
    if (st != GGL_OK)
        on_refused(j, st, &err);
    if (!j->is_accepted && j->n_running > 0 && !j->is_over) {
        j->is_accepted = true;
        if (j->ask->stream)
            job_keep_stream(j);
    }
}

static void job_begin(void *ctx, llm_engine *e) {
    job *j = ctx;
    j->engine = e;
    j->n_seated = j->n_seats;
    list_add(j);
    j->n_holds++;
    if (!job_is_gone(j))
        job_go_on(j);
    j->n_holds--;
    job_end_if_done(j);
}

void answers_tick(answers *x, llm_engine *e) {
    (void)e;
    job *j = x->first;
    if (j)
        j->n_holds++;
    while (
        j) { /* it is held, so that its place in the list is there when others have ended meanwhile */
        if (!job_is_gone(j)) {
            if (j->n_running + j->n_ended < j->x.n_choices)
                job_go_on(j);
            job_tell_progress(j);
            job_keep_alive(j);
        }
        job *next = j->next;
        if (next)
            next->n_holds++;
        j->n_holds--;
        job_end_if_done(j);
        j = next;
    }
}

void answers_end(answers *x) {
    while (x->first) {
        job *j = x->first;
        job_fail(j, &ending);
        job_end_if_done(j);
    }
}

/* What the model does in place of what is asked for. */
typedef struct why_not {
    const char *does; /* NULL: it can do that. After "this server" or "the model" */
    const char *then; /* what would help, if no other model can */
} why_not;

static why_not find_why_not(const ask *a, const server_facts *f) {
    const bool classifies = *f->why_no_rank.msg != 0;
    if (f->hears)
        return (why_not){"writes down sounds (/v1/audio/transcriptions), and nothing else", ""};
    if (a->kind == ASK_EMBED && f->n_embd == 0)
        return classifies ? (why_not){"has scores of labels, and gives no embeddings", ""}
               : f->n_score > 0
                   ? (why_not){"ranks documents (/v1/rerank), and gives no embeddings", ""}
                   : (why_not){"gives no embeddings", "start it with --embeddings"};
    if (a->kind == ASK_RANK && classifies)
        return (why_not){"has scores of labels, and ranks no documents", f->why_no_rank.msg};
    if (a->kind == ASK_RANK && f->n_score == 0 && !f->all_vectors)
        return f->writes
                   ? (why_not){"ranks no documents", "start it with a reranker and --reranking"}
                   : (why_not){"gives embeddings (/v1/embeddings), and ranks no documents", ""};
    if (a->kind == ASK_CHOOSE && f->writes && (f->diffuses || f->reads_text))
        return (why_not){"does not continue texts, and so compares no labels", ""};
    if ((ask_has_rows(a) && a->kind != ASK_CHOOSE) || f->writes)
        return (why_not){NULL, ""};
    return classifies ? (why_not){"has scores of labels, and writes no texts", ""}
           : f->n_score > 0
               ? (why_not){"ranks documents (/v1/rerank), and writes no texts", ""}
               : (why_not){"gives embeddings (/v1/embeddings), and writes no texts", ""};
}

/* Says why the model cannot give what is asked for, and names one beside it that can; NULL: it can. */
static const char *why_not_here(const server *s, const ask *a, char *text, size_t size) {
    const why_not why = find_why_not(a, server_get_facts(s));
    const char *other = why.does ? server_other(s, a->kind) : NULL;
    if (!why.does)
        return NULL;
    if (other)
        snprintf(text, size,
                 "the model %s, but %.100s of this server can do that: name it in \"model\"",
                 why.does, other);
    else
        snprintf(text, size, "this server %s%s%.240s", why.does, *why.then ? "; " : "", why.then);
    return text;
}

/* With a vector for each token, documents are ranked by the similarity of these to the query's. */
static bool compare(ask *a) {
    const size_t n = a->n_prompts;
    ask_prompt *all = ggl_arena_alloc(&a->arena, n + 1, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < n; i++)
        all[i] = a->prompt[i];
    all[n].text = a->query;
    a->prompt = all;
    a->n_prompts = n + 1;
    a->kind = ASK_EMBED;
    a->compares = true;
    return true;
}

/* Ends a job that has not begun. */
static void refuse(job *j, const api_error *e) {
    const dialect *d = j->dialect;
    http_reply *r = j->reply;
    api_error own = *e;
    if (j->n_too_long > 0) {
        own.type = "too_long";
        own.n_prompt = j->n_too_long;
        own.n_ctx = j->x.facts->n_ctx;
    }
    if (http_reply_is_gone(r))
        server_count(j->server, COUNT_GONE);
    job_free(j);
    answer_error(d, &own, r);
}

static void fail_before(job *j, ggl_status st, const ggl_error *err, const char *param) {
    const api_error e = st == GGL_OK ? ending : api_error_of(st, err, param);
    refuse(j, &e);
}

/* Prepares a job, whose pictures were looked at, and hands it to the engine. */
static void prepare(job *j) {
    ggl_error err = {0};
    const char *param = NULL;
    const ggl_status st = job_prepare(j, &param, &err);
    if (st == GGL_OK && j->ask->kind == ASK_CHAT)
        answer_say_notes(j->server, j->ask, &j->prompt->changes, j->reply);
    if (st == GGL_OK && j->ask->kind == ASK_CHAT && j->x.facts->shares_prompts)
        answer_count_beginning(j->server, j->ask, j->prompt);
    if (st != GGL_OK || !server_post(j->server, job_begin, j))
        fail_before(j, st, &err, param);
}

static void on_looked(void *ctx, const api_error *e) {
    job *j = ctx;
    if (e)
        refuse(j, e);
    else
        prepare(j);
}

void answer_start(server *s, const dialect *d, ask *a, const http_request *q, http_reply *r) {
    char prefix[ANSWER_PREFIX];
    if (answer_prefix(a, prefix))
        http_reply_header(r, "X-Prefix", prefix);
    if (a->is_empty) {
        answer_empty(s, d, a, r);
        return;
    }
    char text[400];
    const api_error lacks = {
        .status = 501, .type = "unsupported", .message = why_not_here(s, a, text, sizeof text)};
    if (lacks.message) {
        ask_free(a);
        answer_error(d, &lacks, r);
        return;
    }
    const bool good = a->kind != ASK_RANK || server_get_facts(s)->n_score > 0 || compare(a);
    job *j = good ? job_new(s, d, a, q, r) : NULL;
    if (!j) {
        ask_free(a);
        answer_failed(d, GGL_NOMEM, NULL, NULL, r);
        return;
    }
    if (a->n_images == 0) {
        prepare(j);
        return;
    }
    ggl_error err = {0};
    const char *param = NULL;
    const ggl_status st = job_check_limits(j, &param, &err);
    if (st == GGL_OK)
        server_look(s, a, r, j->client, j->deadline, on_looked, j);
    else
        fail_before(j, st, &err, param);
}
