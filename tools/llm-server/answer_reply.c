/* What a job writes into its reply. */
#include <stdio.h>

#include "answer_impl.h"
#include "api_recall.h"

/* Sends what the dialect has written. False: out of memory. */
static bool send(job *j) {
    const bool good = !j->out.failed;
    if (good && j->out.n > 0) {
        http_reply_write(j->reply, j->out.s, j->out.n);
        stream_log_write(j->log, j->out.s, j->out.n);
        j->t_said = answers_now(j->answers);
    }
    j->out.n = 0;
    j->out.failed = false;
    return good;
}

static void count_tokens(job *j) {
    answer_counts *c = &j->x.counts;
    c->n_prompt = c->n_reused = c->n_drawn = 0;
    for (int i = 0; i < j->x.n_choices; i++) {
        const answer_choice *choice = &j->x.choice[i];
        const bool is_first = i % j->ask->n_choices == 0;
        c->n_prompt += is_first ? choice->n_prompt : 0;
        c->n_reused += is_first ? choice->n_reused : 0;
        c->n_drawn += choice->n_drawn;
    }
    c->n_sound = c->n_prompt > 0 ? (int64_t)j->ask->n_sound_rows : 0;
    c->total_s = (double)(answers_now(j->answers) - j->t_start) * 1e-9;
}

void job_keep_stream(job *j) {
    /* before the client knows of it, who may come again at once */
    j->log = streams_begin(j->answers->streams, j->resume_id, j->client, j->dialect->stream_type);
}

/* Sends the status line of a stream, with the first thing that there is to say: until then the request may fail with a
 * status of its own, and a proxy may give it to another server if this one is killed. */
static void begin_stream(job *j) {
    if (j->has_begun)
        return;
    j->has_begun = true;
    http_reply_header(j->reply, "Cache-Control", "no-cache");
    http_reply_header(j->reply, "X-Accel-Buffering", "no"); /* nginx passes each piece on at once */
    http_reply_begin(j->reply, 200, j->dialect->stream_type, true);
    if (j->dialect->begin)
        j->dialect->begin(&j->x, &j->out);
    (void)send(j); /* if memory ran out, the next part fails */
}

bool job_give(job *j, int choice, const answer_part *part) {
    if (!j->ask->stream) {
        j->size += part->n_tokens * (1 + j->n_top) + part->text.n / 16;
        return job_hold_part(j, part) && answer_parts_add(&j->parts[choice], part);
    }
    begin_stream(j);
    if (j->dialect->part)
        j->dialect->part(&j->x, &j->x.choice[choice], part, &j->out);
    return send(j);
}

void job_end_choice(job *j, int choice) {
    answer_choice *c = &j->x.choice[choice];
    if (j->ask->stream) {
        begin_stream(j);
        if (j->dialect->end_choice)
            j->dialect->end_choice(&j->x, c, &j->out);
        (void)send(j);
        return;
    }
    c->part = answer_parts_end(&j->parts[choice], &c->n_parts);
}

void job_keep_alive(job *j) {
    const int64_t silent = answers_now(j->answers) - j->t_said;
    if (!j->ask->stream || !j->is_accepted || !j->dialect->alive || silent < j->answers->ping_ns)
        return;
    begin_stream(j);
    j->dialect->alive(&j->x, &j->out);
    (void)send(j);
}

void seat_tell_progress(seat *s, int64_t n_done) {
    job *j = s->job;
    if (!j->ask->return_progress || !j->ask->stream || !j->dialect->progress || n_done <= s->n_told)
        return;
    begin_stream(j);
    s->n_told = n_done;
    j->x.counts.total_s = (double)(answers_now(j->answers) - j->t_start) * 1e-9;
    j->dialect->progress(&j->x, &j->x.choice[s->choice], n_done, &j->out);
    (void)send(j);
}

/* Looks for the sequences of a job among the slots. The first news of a prompt is what did not have to run. */
void job_tell_progress(job *j) {
    if (!j->ask->return_progress || !j->ask->stream)
        return;
    const int n_slots = server_n_slots(j->server);
    for (int k = 0; k < n_slots; k++) {
        const llm_slot_info slot = llm_engine_slot(j->engine, k);
        const bool runs = slot.use == LLM_SLOT_PROMPT || slot.use == LLM_SLOT_GENERATES;
        for (int i = 0; runs && i < j->n_seats; i++) {
            seat *s = &j->seat[i];
            if (!s->is_added || s->id != slot.id || s->n_told == j->x.choice[s->choice].n_prompt)
                continue;
            j->x.choice[s->choice].n_reused = slot.stats.n_reused;
            seat_tell_progress(s, slot.stats.n_reused);
            if (slot.n_past < j->x.choice[s->choice].n_prompt)
                seat_tell_progress(s, slot.n_past);
        }
    }
}

static void end_with_error(job *j) {
    const api_error failed = {.status = j->status, .type = j->type, .message = j->failure.msg},
                    e = answer_error_of(&failed, j->reply);
    if (j->has_begun || j->log)
        j->dialect->error(&e, true, &j->out);
    if (j->has_begun) {
        (void)send(j);
        http_reply_end(j->reply);
        return;
    }
    if (!j->out.failed) /* for those who resume the stream */
        stream_log_write(j->log, j->out.s, j->out.n);
    answer_error(j->dialect, &e, j->reply);
}

/* The body of an answer without a stream. False: out of memory. */
static bool write_whole(job *j) {
    for (int i = 0; i < j->x.n_choices; i++)
        if (!j->x.choice[i].part)
            return false;
    if (j->ask->compares)
        job_compare(j);
    j->x.n_choices -= j->ask->compares; /* the query is not listed */
    j->dialect->whole(&j->x, &j->out);
    j->x.n_choices += j->ask->compares;
    return !j->out.failed;
}

/* Adds what a request had and was answered to its conversation. */
static void add_to_talk(const job *j, ggl_str text) {
    const ask_keeping *k = &j->ask->keep;
    const ggl_str id = {k->conversation, strlen(k->conversation)};
    llm_json *sent = NULL, *body = NULL;
    llm_json_out had = {0}, gave = {0};
    if (recall_parse(&sent, k->sent, NULL) == GGL_OK && recall_parse(&body, text, NULL) == GGL_OK) {
        const json_value *output = llm_json_get_kind(&body->root, "output", JSON_ARRAY);
        openai_put_talk_items(k->conversation, &sent->root, &had);
        if (output)
            llm_json_put_value(&gave, output);
    }
    if (gave.n > 0 && !had.failed && !gave.failed)
        (void)store_append(j->answers->store, id, j->client, (ggl_str){had.s, had.n},
                           (ggl_str){gave.s, gave.n});
    ggl_free(had.s);
    ggl_free(gave.s);
    llm_json_free(sent);
    llm_json_free(body);
}

/* Keeps the answer for requests that name it; the client may come with one as soon as it has read the end. */
static void keep_answer(job *j) {
    const ask_keeping *k = &j->ask->keep;
    const dialect *d = j->dialect;
    llm_json_out whole = {0};
    if (!k->is_wanted || !d->kept)
        return;
    if (j->ask->stream)
        d->kept(&j->x, &whole);
    const llm_json_out *text = j->ask->stream ? &whole : &j->out;
    stored x = {.owner = j->client,
                .created = j->x.created,
                .sent = k->sent,
                .fixed = k->fixed,
                .answer = {text->s, text->n}};
    snprintf(x.id, sizeof x.id, "%s%s", d->id_prefix, j->x.id);
    snprintf(x.parent, sizeof x.parent, "%s", k->parent ? k->parent : "");
    if (!text->failed)
        (void)store_put(j->answers->store, &x);
    if (!text->failed && k->conversation)
        add_to_talk(j, x.answer);
    ggl_free(whole.s);
}

static void write_reply(job *j) {
    if (!j->has_failed && !j->ask->stream && !write_whole(j)) {
        j->has_failed = true;
        const api_error e = api_error_of(GGL_NOMEM, NULL, NULL);
        j->status = e.status;
        j->type = e.type;
        (void)ggl_fail(&j->failure, GGL_NOMEM, "out of memory for an answer");
    }
    if (j->has_failed) {
        j->out.n = 0;
        j->out.failed = false;
        end_with_error(j);
        return;
    }
    keep_answer(j);
    if (j->ask->stream)
        begin_stream(j);
    else
        http_reply_begin(j->reply, 200, "application/json", false);
    if (j->ask->stream && j->dialect->end)
        j->dialect->end(&j->x, &j->out);
    (void)send(j);
    http_reply_end(j->reply);
}

/* The job is in no list any more. */
static void finish_reply(void *ctx) {
    job *j = ctx;
    http_reply *r = j->reply;
    if (http_reply_is_gone(r) && !j->log)
        http_reply_end(r);
    else
        write_reply(j);
    job_free(j);
}

/* True if the answer is kept, and that takes long: texts are copied, and of a conversation parsed. */
static bool keeps_long(const job *j) {
    enum { LONG = 1 << 15 };
    const ask_keeping *k = &j->ask->keep;
    return k->is_wanted && j->dialect->kept && (k->conversation || k->sent.n + k->fixed.n > LONG);
}

void job_end_reply(job *j) {
    const answer_choice *last = &j->x.choice[j->x.n_choices - 1];
    const size_t n_floats =
        (size_t)(last->first_vector + last->n_vectors) * (size_t)answer_width(&j->x);
    count_tokens(j);
    const bool is_long = j->size + n_floats > ANSWER_LONG && !j->ask->stream;
    if ((is_long || keeps_long(j)) && !j->has_failed)
        http_reply_later(j->reply, finish_reply, j);
    else
        finish_reply(j);
}
