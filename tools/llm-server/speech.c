/* Sounds and the answers about them: each is a turn in the queue of its model (turn_queue.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "common/process.h"
#include "common/speech_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "models.h"
#include "server_impl.h"
#include "speech_form.h"
#include "speech_run.h"

enum { SIGN_SECONDS = 10 }; /* between signs of life in a stream */

typedef struct speech_job {
    turn turn; /* the first member */
    server *s;
    http_reply *r;
    char *body;
    speech_ask ask;
    char request[128];           /* for the log: who asked, and for what */
    memory_hold held, held_text; /* for the body; for what was written */
    double until;                /* when the time for the answer ends; 0: never */
    bool is_late;                /* it has ended */

    os_memory_stream written; /* by `out`: the answer, except for those that `text` is */
    speech_text out;
    char *text; /* of all pieces */
    size_t n_text, cap_text;
    double duration;  /* of the sound, in seconds; less than 0: not known */
    bool lacks_room;  /* for the text */
    bool has_begun;   /* a stream was */
    double last_sent; /* in a stream, in seconds */
    size_t n_told;    /* bytes of the next piece, as add_piece writes it, that a stream has sent */
} speech_job;

static speech_job *job_of(turn *t) {
    return (speech_job *)t;
}

static void free_job(speech_job *j) {
    memory_force(&j->held, 0);
    memory_force(&j->held_text, 0);
    speech_ask_fini(&j->ask);
    ggl_free(j->body);
    ggl_free(j->text);
    if (j->written.to)
        (void)ggl_os_memory_stream_close(&j->written);
    free(j->written.text);
    speech_text_fini(&j->out);
    server_release(j->s); /* which may be freed now */
    ggl_free(j);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Sends a part of a stream, and begins it if it has not begun. */
static void put(speech_job *j, const char *s, size_t n) {
    if (!j->has_begun)
        http_reply_begin(j->r, 200, "text/event-stream", true);
    j->has_begun = true;
    http_reply_write(j->r, s, n);
    j->last_sent = ggl_os_seconds();
}

/* Writes what is wrong with the sound, if anything, as the last member of an object. */
static void put_warnings(const speech_job *j, llm_json_out *out) {
    if (j->out.warnings.n > 0) {
        llm_json_put_text(out, ", \"warnings\": [");
        llm_json_put_text(out, j->out.warnings.text);
        llm_json_put_text(out, "]");
    }
}

static void put_event(speech_job *j, const char *type, const char *member, ggl_str text,
                      bool is_last) {
    llm_json_out out = {0};
    llm_json_format(&out, "data: {'type': 'transcript.text.%s', '%s': %.*s", type, member,
                    LLM_JSON_STR(text));
    if (is_last)
        put_warnings(j, &out);
    llm_json_put_text(&out, "}\n\n");
    j->lacks_room |= out.failed;
    if (!out.failed)
        put(j, out.s, out.n);
    ggl_free(out.s);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Answers with an error, as an event if the stream has begun. */
static void answer_with(speech_job *j, const api_error *e) {
    server_count(j->s, http_reply_is_gone(j->r) ? COUNT_GONE : COUNT_ERRORS);
    if (!j->has_begun) {
        answer_error(&api_openai_chat, e, j->r);
        return;
    }
    llm_json_out out = {0};
    llm_json_put_text(&out, "data: ");
    api_openai_chat.error(e, false, &out);
    llm_json_put_text(&out, "\n\n");
    if (!out.failed)
        put(j, out.s, out.n);
    ggl_free(out.s);
    http_reply_end(j->r);
}

static void fail(speech_job *j, ggl_status st, const ggl_error *err) {
    static const api_error late = {
        .status = 504,
        .type = "timeout",
        .message = "the time for the answer (--max-time) ended before the sound did; send a "
                   "shorter one, or allow more time"};
    static const api_error ends = {
        .status = 503, .type = "overloaded", .message = "the server is ending"};
    /* the library names the sound if that is at fault */
    const char *param = !err                                                             ? NULL
                        : strncmp(err->msg, SOUND_NAME ": ", sizeof SOUND_NAME + 1) == 0 ? "file"
                        : st == GGL_USAGE && strstr(err->msg, "language")              ? "language"
                        : st == GGL_UNSUPPORTED && strstr(err->msg, "takes no prompt") ? "prompt"
                                                                                       : NULL;
    const api_error e = api_error_of(st, err, param);
    /* who is gone reads nothing of what is said here */
    answer_with(j, j->is_late ? &late : st == GGL_CANCELLED ? &ends : &e);
}

/* Sends bytes as the whole answer. */
static void send_all(speech_job *j, const char *type, const char *s, size_t n) {
    const ggl_error no_room = {.msg = "out of memory for the answer (--request-memory)"};
    if (!http_reply_reserve(j->r, n)) {
        fail(j, GGL_NOMEM, &no_room);
        return;
    }
    http_reply_begin(j->r, 200, type, false);
    http_reply_write(j->r, s, n);
    http_reply_end(j->r);
}

static void send_json(speech_job *j, ggl_str text) {
    llm_json_out out = {0};
    llm_json_format(&out, "{'text': %.*s", LLM_JSON_STR(text));
    if (j->ask.api != SPEECH_INFERENCE)
        llm_json_format(&out, ", 'usage': {'type': 'duration', 'seconds': %lld}",
                        speech_text_seconds(j->duration < 0 ? 0 : j->duration));
    put_warnings(j, &out);
    llm_json_put_text(&out, "}\n");
    if (out.failed)
        fail(j, GGL_NOMEM, NULL);
    else
        send_all(j, "application/json", out.s, out.n);
    ggl_free(out.s);
}

static void send_answer(speech_job *j) {
    static const char *const types[N_SPEECH_FORMATS] = {[SPEECH_TEXT] = "text/plain; charset=utf-8",
                                                        [SPEECH_SRT] =
                                                            "application/x-subrip; charset=utf-8",
                                                        [SPEECH_VTT] = "text/vtt; charset=utf-8",
                                                        [SPEECH_VERBOSE] = "application/json"};
    const ggl_str text = {j->text ? j->text : "", j->n_text};
    if (j->ask.streams) {
        put_event(j, "done", "text", text, true);
        http_reply_end(j->r);
    } else if (j->ask.format == SPEECH_JSON) {
        send_json(j, text);
    } else if (j->ask.format == SPEECH_TEXT) {
        send_all(j, types[SPEECH_TEXT], text.s, text.n);
    } else {
        send_all(j, types[j->ask.format], j->written.text, j->written.n);
    }
}

/* --- on the queue's thread -------------------------------------------------------------------- */

static bool is_wanted(turn *t) {
    speech_job *j = job_of(t);
    const double now = ggl_os_seconds();
    j->is_late |= j->until > 0 && now >= j->until;
    if (j->ask.streams && now - j->last_sent >= SIGN_SECONDS)
        put(j, ": it goes on\n\n", 14);
    return !j->is_late && !http_reply_is_gone(j->r);
}

/* Appends to the text. */
static bool add_text(speech_job *j, const char *s, size_t n) {
    if (!ggl_grow(&j->text, &j->cap_text, j->n_text + n + 1, 1))
        return false;
    memcpy(j->text + j->n_text, s, n);
    j->n_text += n;
    return true;
}

/* How many bytes at the beginning of a piece add_piece leaves out. */
static size_t skipped(const speech_job *j, const char *text) {
    return (j->ask.api == SPEECH_INFERENCE || j->n_text == 0) && *text == ' ';
}

/* The text of whisper.cpp has a line for each piece; OpenAI's is that of the model, without the space at its beginning, and as a text ends
 * with a line break. */
static bool add_piece(speech_job *j, const llm_speech *p) {
    const bool has_lines = j->ask.api == SPEECH_INFERENCE;
    const size_t skip = skipped(j, p->text);
    return add_text(j, p->text + skip, p->n - skip) && (!has_lines || add_text(j, "\n", 1));
}

/* The most bytes that are written of a piece: as JSON, in which a byte may become six. */
static size_t most_json(const llm_speech *p) {
    enum { MEMBERS = 350, WORD = 120, BYTE = 6, TOKEN = 12 };
    size_t n = MEMBERS + BYTE * p->n + TOKEN * p->n_id;
    for (size_t k = 0; k < p->n_words; k++)
        n += WORD + BYTE * p->word[k].n;
    return n;
}

/* Sends what is written of a piece. */
static bool on_said(void *user, const char *text, size_t n) {
    speech_job *j = user;
    const size_t skip = j->n_told == 0 ? skipped(j, text) : 0;
    j->n_told += n - skip;
    if (n > skip)
        put_event(j, "delta", "delta", (ggl_str){text + skip, n - skip}, false);
    return !j->lacks_room;
}

static bool on_piece(void *user, const llm_speech *p) {
    speech_job *j = user;
    const size_t before = j->n_text;
    const size_t n_all = j->written.n + j->out.words.n + most_json(p);
    j->lacks_room |= !memory_set(&j->held_text, j->cap_text + j->out.cap_text + p->n + 2 * n_all) ||
                     !add_piece(j, p);
    if (j->lacks_room)
        return false;
    const size_t told = before + j->n_told;
    j->n_told = 0;
    if (j->ask.streams && told < j->n_text)
        put_event(j, "delta", "delta", (ggl_str){j->text + told, j->n_text - told}, false);
    else if (!j->ask.streams && j->ask.format > SPEECH_TEXT)
        speech_text_piece(&j->out, p);
    j->lacks_room |= j->out.failed || !ggl_os_memory_stream_count(&j->written);
    return !j->lacks_room;
}

static bool on_progress(void *user, double done, double all) {
    speech_job *j = user;
    j->duration = all;
    speech_text_window(&j->out, done);
    return true;
}

static void on_language(void *user, const char *code) {
    speech_job *j = user;
    speech_text_language(&j->out, code);
}

static void on_warn(void *user, const char *text) {
    speech_job *j = user;
    char line[sizeof j->request + 512];
    snprintf(line, sizeof line, "%s %s", j->request, text);
    models_warn(model_table(j->s->model_row), line);
    speech_text_warn(&j->out, text);
}

/* Ends what is written. */
static ggl_status close_text(speech_job *j, ggl_error *err) {
    speech_text_end(&j->out, j->duration);
    j->lacks_room |= !ggl_os_memory_stream_close(&j->written);
    if (j->ask.format == SPEECH_TEXT && j->ask.api != SPEECH_INFERENCE && !j->ask.streams)
        j->lacks_room |= !add_text(j, "\n", 1);
    return j->lacks_room ? ggl_fail(err, GGL_NOMEM, "out of memory for the text") : GGL_OK;
}

static void transcribe(turn *t) {
    static const int writers[N_SPEECH_FORMATS] = {
        [SPEECH_SRT] = FORMAT_SRT, [SPEECH_VTT] = FORMAT_VTT, [SPEECH_VERBOSE] = FORMAT_JSON};
    speech_job *j = job_of(t);
    server *s = j->s;
    ggl_error err = {0};
    ggl_status st = GGL_CANCELLED;
    s->hearing = t;
    s->hearing_thread = ggl_os_thread_number();
    llm_transcribe_params p = j->ask.how;
    p.each = on_piece;
    p.said = j->ask.streams ? on_said : NULL;
    p.progress = on_progress;
    p.warn = on_warn;
    p.spoken = on_language;
    p.user = j;
    if (!ggl_os_memory_stream_open(&j->written))
        st = ggl_fail(&err, GGL_NOMEM, "out of memory for a request");
    else if (is_wanted(t))
        st = GGL_OK;
    if (st == GGL_OK) {
        j->out = (speech_text){.to = j->written.to,
                               .format = writers[j->ask.format],
                               .is_translated = p.translate,
                               .has_words = p.words,
                               .words_apart = true,
                               .names_language = true,
                               .has_usage = j->ask.api != SPEECH_INFERENCE,
                               .no_segments = p.words && !j->ask.has_segments,
                               .trims = true};
        speech_text_begin(&j->out);
        speech_text_window(&j->out, p.offset);
        st = s->facts.hears ? llm_transcribe(s->ctx, SOUND_NAME, &p, &err)
                            : speech_run(s, t, &p, &err);
        const ggl_status closed = close_text(j, j->lacks_room || st == GGL_OK ? &err : NULL);
        st = closed == GGL_OK ? st : closed;
    }
    if (st == GGL_OK)
        send_answer(j);
    else
        fail(j, st, &err);
    s->hearing = NULL;
    free_job(j);
}

static void leave(turn *t) {
    speech_job *j = job_of(t);
    fail(j, GGL_CANCELLED, NULL);
    free_job(j);
}

/* --- requests --------------------------------------------------------------------------------- */

static speech_job *new_job(server *s, const http_request *q, http_reply *r) {
    const double now = ggl_os_seconds(), most = s->facts.max_seconds;
    speech_job *j = ggl_calloc(1, sizeof *j);
    if (!j)
        return NULL;
    memory *account = models_memory(model_table(s->model_row));
    *j = (speech_job){.turn = {.client = server_client(s, q),
                               .run = transcribe,
                               .leave = leave,
                               .is_wanted = is_wanted},
                      .s = s,
                      .r = r,
                      .held = {.of = account, .use = MEMORY_REQUESTS},
                      .held_text = {.of = account, .use = MEMORY_ANSWERS},
                      .until = most > 0 ? now + most : 0,
                      .duration = -1,
                      .last_sent = now};
    snprintf(j->request, sizeof j->request, "%s %s %s", q->client, q->method, q->path);
    server_hold(s);
    memory_force(&j->held, q->body.n);
    j->body = http_reply_take_body(r);
    return j;
}

static void refuse(server *s, const api_error *e, server_counter which, http_reply *r) {
    server_count(s, which);
    answer_error(&api_openai_chat, e, r);
}

static void refuse_deaf(server *s, http_reply *r) {
    const char *lack = server_get_facts(s)->lack;
    char text[sizeof server_get_facts(s)->lack + 100];
    snprintf(text, sizeof text, "the model hears no sounds: %s", lack);
    const api_error deaf = {
        .status = 501,
        .type = "unsupported",
        .message = *lack ? text
                         : "the model reads texts, and hears nothing; name one that writes down "
                           "sounds, such as Whisper, or give it an ear (--mmproj)",
        .param = "model"};
    refuse(s, &deaf, COUNT_ERRORS, r);
}

static speech_vad vad_of(const server *s) {
    return !s->o->vad_model ? SPEECH_VAD_NONE : s->o->vad ? SPEECH_VAD_ALL : SPEECH_VAD_ASKED;
}

static void start(server *s, speech_api api, const http_request *q, http_reply *r) {
    ggl_error err = {0};
    const char *param = NULL;
    if (!s->speech) {
        refuse_deaf(s, r);
        return;
    }
    const size_t n = q->body.n;
    speech_job *j = new_job(s, q, r);
    ggl_status st = j ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory for a request");
    if (j)
        st = speech_ask_read(&j->ask, api, vad_of(s), s->facts.strict_fields,
                             q->header(q, "Content-Type"), (ggl_str){j->body ? j->body : "", n},
                             &param, &err);
    if (j)
        server_say_ignored(s, &j->ask.ignored, q, r);
    if (st == GGL_OK && j->ask.finds_speech)
        j->ask.how.vad_model = s->o->vad_model;
    if (st == GGL_OK && j->ask.how.words && !s->facts.has_words) {
        param = "timestamp_granularities[]";
        st = ggl_fail(&err, GGL_UNSUPPORTED,
                      "\"%s\" must be segment: the model does not show when words are said, as one "
                      "such as Whisper does",
                      param);
    }
    if (st != GGL_OK) {
        const api_error e = api_error_of(st, &err, param);
        refuse(s, &e, COUNT_ERRORS, r);
    } else {
        st = turn_queue_add(s->speech, &j->turn, &err);
        if (st == GGL_OK)
            return;
        const api_error full = {.status = 429, .type = "rate_limit", .message = err.msg};
        const api_error ends = api_error_of(st, &err, NULL);
        refuse(s, st == GGL_LIMIT ? &full : &ends, st == GGL_LIMIT ? COUNT_REJECTED : COUNT_ERRORS,
               r);
    }
    if (j)
        free_job(j);
}

void speech_transcribe(server *s, const http_request *q, http_reply *r) {
    start(s, SPEECH_TRANSCRIPTIONS, q, r);
}

void speech_translate(server *s, const http_request *q, http_reply *r) {
    start(s, SPEECH_TRANSLATIONS, q, r);
}

void speech_infer(server *s, const http_request *q, http_reply *r) {
    start(s, SPEECH_INFERENCE, q, r);
}
