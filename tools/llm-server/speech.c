/* Speech that is written down: forms with a sound, and their answers. A sound takes the model as a whole: others wait in the
 * engine's mailbox, in order. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "answer_impl.h"
#include "common/process.h"
#include "common/speech_text.h"
#include "llm/llm.h"
#include "models.h"
#include "multipart.h"
#include "server_impl.h"

enum { MOST_PARTS = 64 };

typedef struct speech_job {
    server *s;
    http_reply *r;
    char *body, *language, *prompt;
    ggl_str file;
    int format; /* of formats[] */
    bool translates, streams, has_begun;
    double temperature, until;
    memory_hold held; /* for the body */
    speech_text out;
    char *text; /* of all pieces */
    size_t n_text, cap_text;
    double duration;
} speech_job;

static const char *const formats[] = {"json", "text", "srt", "vtt", "verbose_json", NULL};
static const int writers[] = {FORMAT_TEXT, FORMAT_TEXT, FORMAT_SRT, FORMAT_VTT, FORMAT_JSON};
static const char *const types[] = {"application/json", "text/plain; charset=utf-8",
                                    "application/x-subrip; charset=utf-8",
                                    "text/vtt; charset=utf-8", "application/json"};

/* --- fields ----------------------------------------------------------------------------------- */

static bool is(ggl_str s, const char *word) {
    return s.n == strlen(word) && memcmp(s.s, word, s.n) == 0;
}

static ggl_status set_file(speech_job *j, ggl_str v, ggl_error *err) {
    j->file = v;
    return v.n > 0 ? GGL_OK : ggl_fail(err, GGL_USAGE, "\"file\" is empty: the bytes of a sound");
}

static ggl_status copy(char **out, ggl_str v, const char *name, ggl_error *err) {
    ggl_free(*out);
    *out = ggl_calloc(v.n + 1, 1);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(*out, v.s, v.n);
    return memchr(v.s, '\0', v.n) ? ggl_fail(err, GGL_USAGE, "\"%s\" has a byte 0", name) : GGL_OK;
}

static ggl_status set_language(speech_job *j, ggl_str v, ggl_error *err) {
    const ggl_status st = copy(&j->language, v, "language", err);
    if (st == GGL_OK && v.n == 0) {
        ggl_free(j->language); /* as if it were not given */
        j->language = NULL;
    }
    return st;
}

static ggl_status set_prompt(speech_job *j, ggl_str v, ggl_error *err) {
    return copy(&j->prompt, v, "prompt", err);
}

static ggl_status set_format(speech_job *j, ggl_str v, ggl_error *err) {
    for (j->format = 0; formats[j->format]; j->format++)
        if (is(v, formats[j->format]))
            return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "\"response_format\" must be json, text, srt, vtt or verbose_json");
}

static ggl_status set_temperature(speech_job *j, ggl_str v, ggl_error *err) {
    char text[32], *end = text;
    snprintf(text, sizeof text, "%.*s", v.n < sizeof text ? (int)v.n : 0, v.s);
    j->temperature = strtod(text, &end);
    return end != text && !*end && j->temperature >= 0 && j->temperature <= 1
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"temperature\" must be a number from 0 to 1");
}

static ggl_status set_stream(speech_job *j, ggl_str v, ggl_error *err) {
    j->streams = is(v, "true") || is(v, "1") || is(v, "True");
    return j->streams || is(v, "false") || is(v, "0") || is(v, "False")
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "\"stream\" must be true or false");
}

static ggl_status set_times(speech_job *j, ggl_str v, ggl_error *err) {
    (void)j;
    return is(v, "segment") ? GGL_OK
                            : ggl_fail(err, GGL_UNSUPPORTED,
                                       "\"timestamp_granularities[]\" must be segment: the server "
                                       "gives no times of words");
}

static ggl_status set_nothing(speech_job *j, ggl_str v, ggl_error *err) {
    (void)j, (void)v, (void)err;
    return GGL_OK;
}

static const struct {
    const char *name;
    ggl_status (*set)(speech_job *j, ggl_str v, ggl_error *err);
} fields[] = {{"file", set_file},
              {"model", set_nothing}, /* chose the server */
              {"language", set_language},
              {"prompt", set_prompt},
              {"response_format", set_format},
              {"temperature", set_temperature},
              {"stream", set_stream},
              {"timestamp_granularities[]", set_times},
              {NULL}};

static ggl_status read_form(speech_job *j, ignored_fields *ignored, const http_request *q,
                            const char **param, ggl_error *err) {
    char boundary[MULTIPART_BOUNDARY + 1];
    multipart_part part[MOST_PARTS];
    size_t n = 0;
    const char *type = q->header(q, "Content-Type");
    if (!multipart_is_type(type))
        return ggl_fail(err, GGL_USAGE, "the request must be a form: multipart/form-data");
    ggl_status st = multipart_boundary(type, boundary, err);
    if (st == GGL_OK)
        st = multipart_read(part, MOST_PARTS, &n, boundary,
                            (ggl_str){j->body ? j->body : "", q->body.n}, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        size_t k = 0;
        while (fields[k].name && !is(part[i].name, fields[k].name))
            k++;
        *param = fields[k].name;
        st = fields[k].name ? fields[k].set(j, part[i].data, err)
                            : fields_ignore(ignored, NULL, part[i].name, err);
    }
    if (st == GGL_OK && !j->file.s) {
        *param = "file";
        st = ggl_fail(err, GGL_USAGE, "\"file\" is missing: the bytes of a sound");
    }
    return st;
}

/* --- on the engine's thread ------------------------------------------------------------------- */

static void put_event(speech_job *j, const char *type, const char *member, ggl_str text) {
    llm_json_out out = {0};
    llm_json_put_text(&out, "data: {\"type\": \"transcript.text.");
    llm_json_put_text(&out, type);
    llm_json_put_text(&out, "\", \"");
    llm_json_put_text(&out, member);
    llm_json_put_text(&out, "\": ");
    llm_json_put_string(&out, text);
    llm_json_put_text(&out, "}\n\n");
    if (!j->has_begun)
        http_reply_begin(j->r, 200, "text/event-stream", true);
    j->has_begun = true;
    if (!out.failed)
        http_reply_write(j->r, out.s, out.n);
    ggl_free(out.s);
}

static bool goes_on(const speech_job *j) {
    return !http_reply_is_gone(j->r) && !server_ends(j->s) &&
           (j->until <= 0 || process_seconds() < j->until);
}

static bool on_piece(void *user, const llm_speech *p) {
    speech_job *j = user;
    const size_t skip = j->n_text == 0 && p->n > 0 && p->text[0] == ' ';
    if (!ggl_grow(&j->text, &j->cap_text, j->n_text + p->n + 1, 1)) {
        j->out.failed = true;
        return false;
    }
    memcpy(j->text + j->n_text, p->text + skip, p->n - skip);
    j->n_text += p->n - skip;
    if (j->streams)
        put_event(j, "delta", "delta", (ggl_str){p->text + skip, p->n - skip});
    else
        speech_text_piece(&j->out, p);
    return goes_on(j);
}

static bool on_progress(void *user, double done, double all) {
    speech_job *j = user;
    (void)done;
    j->duration = all;
    return goes_on(j);
}

static void free_job(speech_job *j) {
    memory_force(&j->held, 0);
    server_release(j->s);
    ggl_free(j->body);
    ggl_free(j->language);
    ggl_free(j->prompt);
    ggl_free(j->text);
    ggl_free(j);
}

static void send(speech_job *j, const char *bytes, size_t n) {
    const ggl_str text = {j->text ? j->text : "", j->n_text};
    llm_json_out out = {0};
    if (j->streams) {
        put_event(j, "done", "text", text);
    } else if (j->format == 0) {
        llm_json_put_text(&out, "{\"text\": ");
        llm_json_put_string(&out, text);
        llm_json_put_text(&out, "}");
        admin_send(&out, j->r);
        return;
    } else {
        http_reply_begin(j->r, 200, types[j->format], false);
        http_reply_write(j->r, bytes, n);
    }
    http_reply_end(j->r);
}

static void fail(speech_job *j, ggl_status st, const ggl_error *err) {
    server_count(j->s, http_reply_is_gone(j->r) ? COUNT_GONE : COUNT_ERRORS);
    if (!j->has_begun) {
        answer_failed(&api_openai_chat, st, err, st == GGL_CANCELLED ? NULL : "file", j->r);
        return;
    }
    llm_json_out out = {0};
    const api_error e = api_error_of(st, err, NULL);
    llm_json_put_text(&out, "data: ");
    api_openai_chat.error(&e, false, &out);
    llm_json_put_text(&out, "\n\n");
    if (!out.failed)
        http_reply_write(j->r, out.s, out.n);
    ggl_free(out.s);
    http_reply_end(j->r);
}

static void transcribe(void *ctx, llm_engine *e) {
    speech_job *j = ctx;
    ggl_error err = {0};
    char *bytes = NULL;
    size_t n = 0;
    const double most = j->s->facts.max_seconds;
    (void)e;
    j->until = most > 0 ? process_seconds() + most : 0;
    j->s->n_speech--;
    j->out = (speech_text){.format = writers[j->format], .is_translated = j->translates};
    j->out.to = open_memstream(&bytes, &n);
    const llm_transcribe_params p = {.size = sizeof p,
                                     .language = j->language,
                                     .prompt = j->prompt,
                                     .translate = j->translates,
                                     .temperature = (float)j->temperature,
                                     .data = j->file.s,
                                     .n_data = j->file.n,
                                     .each = on_piece,
                                     .progress = on_progress,
                                     .user = j};
    ggl_status st = !j->out.to   ? ggl_fail(&err, GGL_NOMEM, "out of memory")
                    : goes_on(j) ? GGL_OK
                                 : ggl_fail(&err, GGL_CANCELLED, "the server is ending");
    if (st == GGL_OK) {
        speech_text_begin(&j->out);
        st = llm_transcribe(j->s->ctx, "file", &p, &err);
        speech_text_end(&j->out, j->duration);
    }
    const bool failed = j->out.to && (ferror(j->out.to) || j->out.failed);
    if (j->out.to && fclose(j->out.to) != 0)
        st = ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (failed)
        st = ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        send(j, bytes, n);
    else
        fail(j, st, &err);
    free(bytes);
    free_job(j);
}

/* --- requests --------------------------------------------------------------------------------- */

static void start(server *s, bool translates, const http_request *q, http_reply *r) {
    static const api_error deaf = {.status = 400,
                                   .type = "invalid_request",
                                   .message =
                                       "the model does not hear; name one that does, such as "
                                       "Whisper",
                                   .param = "model"};
    static const api_error full = {.status = 503,
                                   .type = "overloaded",
                                   .message = "too many sounds wait (--queue); try again later"};
    ggl_error err = {0};
    const char *param = NULL;
    ignored_fields ignored = {.strict = s->facts.strict_fields};
    if (!s->facts.hears) {
        server_count(s, COUNT_ERRORS);
        answer_error(&api_openai_chat, &deaf, r);
        return;
    }
    speech_job *j = ggl_calloc(1, sizeof *j);
    ggl_status st = j ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (j) {
        *j = (speech_job){.s = s, .r = r, .translates = translates, .duration = -1};
        server_hold(s);
        j->held =
            (memory_hold){.of = models_memory(model_table(s->model_row)), .use = MEMORY_REQUESTS};
        memory_force(&j->held, q->body.n);
        j->body = http_reply_take_body(r);
        st = read_form(j, &ignored, q, &param, &err);
    }
    server_say_ignored(s, &ignored, q, r);
    const bool is_full = st == GGL_OK && s->n_speech++ >= s->o->n_queue;
    if (st == GGL_OK && !is_full && server_post(s, transcribe, j))
        return;
    if (st == GGL_OK) {
        s->n_speech--;
        st = ggl_fail(&err, GGL_CANCELLED, "the server is ending");
    }
    server_count(s, is_full ? COUNT_REJECTED : COUNT_ERRORS);
    if (is_full)
        answer_error(&api_openai_chat, &full, r);
    else
        answer_failed(&api_openai_chat, st, &err, param, r);
    if (j)
        free_job(j);
}

void speech_transcribe(server *s, const http_request *q, http_reply *r) {
    start(s, false, q, r);
}

void speech_translate(server *s, const http_request *q, http_reply *r) {
    start(s, true, q, r);
}
