/* llm-transcribe: writes down what is said in sounds. See docs/tools.md. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "common/npy.h"
#include "common/open_context.h"
#include "common/open_template.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/ranks.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "llm/steps.h"
#include "options.h"

typedef struct job {
    options o;
    llm_opening opening;
    llm_context *ctx;
    speech_text out;
    double duration;  /* of the sound, in seconds; less than 0: not known */
    const char *path; /* of the file that is written; NULL: standard output */
    int lost;         /* why it could not be written; 0: it could */
    bool is_bad;      /* the sound itself is at fault: others may be better */
} job;

/* --- stopping --------------------------------------------------------------------------------- */

static bool hears_pipe; /* the sound that is written down comes through one */

static bool is_pipe(const char *sound) {
    os_stat s;
    return strcmp(sound, "-") == 0 && ggl_os_stat_fd(OS_STDIN, &s) && s.kind == OS_PIPE;
}

/* Ctrl-C also ends the recorder at the other end of a pipe: what it has sent is still written down. If it goes on, a second Ctrl-C ends the sound. */
static bool is_stopped(void *unused) {
    static bool is_told, is_closed;
    const bool waits = hears_pipe && process_stopped == SIGINT;
    (void)unused;
    if (waits && !is_told)
        tool_note("llm-transcribe",
                  "the text ends with the pipe; Ctrl-C once more ends it with what was heard");
    is_told = is_told || waits;
    if (waits && process_spared() == 0 && !is_closed)
        is_closed = ggl_os_drop_stream(stdin);
    return process_stopped && !waits;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Returns how many texts are written at once at most: beams at temperature 0, and above it those that are drawn. */
static int64_t most_texts(const options *o) {
    const int64_t n_beams = o->temperature > 0 ? 1 : o->n_beams,
                  n_drawn = o->temperature > 0 || o->temperature_step > 0 ? o->n_best : 1;
    return larger(n_beams, n_drawn);
}

static int open_model(job *j) {
    const options *o = &j->o;
    j->opening = open_options_opening(&j->o.open);
    j->opening.cancelled = is_stopped;
    j->opening.no_chat =
        open_options_names_template(&j->o.open); /* open_template opens that of a text model */
    llm_session_params *sp = &j->opening.session;
    sp->n_slots = o->tokens || o->dump ? 1 : most_texts(o);
    sp->n_rows = larger(sp->n_slots, 16);
    llm_open_params *p = &j->opening.params;
    if (o->tokens && !p->cache_type_k && !p->cache_type_v) /* scores are compared with others' */
        p->cache_type_k = p->cache_type_v = "f32";
    return tool_open_named(&j->ctx, TOOL, &j->opening);
}

/* True if the tokens of the model read rows of the sound, as those of Whisper; else it is a text model, which needs an ear. */
static bool reads_sound(const job *j) {
    const llm_arch *arch = llm_model_arch(llm_opened_model(j->ctx));
    return llm_arch_reads_rows(arch) && llm_arch_reads_text(arch);
}

/* A text model writes one text at a time, in a context as long as fits. */
static int check_text_model(job *j) {
    const options *o = &j->o;
    if (o->dump || o->tokens)
        return tool_error(TOOL, 2,
                          "%s is for models such as Whisper; `llm-embed --mmproj FILE --audio "
                          "SOUND --dump` shows what an ear reads and makes",
                          o->dump ? "--dump" : "--tokens");
    if (j->opening.params.words)
        return tool_error(TOOL, 1,
                          "%s does not show when words are said: --word-timestamps needs a model "
                          "such as Whisper",
                          j->opening.path);
    j->opening.session.n_slots = 1;
    j->opening.n_ctx_is_most = j->opening.params.n_ctx <= 0;
    return -1;
}

/* A model such as Whisper hears by itself, in a context of its own length. */
static int check_hearing_model(const job *j) {
    if (j->o.live)
        return tool_error(TOOL, 2,
                          "%s hears windows as a whole, and writes them down one after the other, "
                          "also of a pipe: leave out --live, or name a model such as Voxtral "
                          "Realtime",
                          j->opening.path);
    const char *unused = j->opening.params.mmproj      ? "--mmproj"
                         : j->opening.params.n_ctx > 0 ? "-c"
                                                       : NULL;
    return unused ? tool_error(TOOL, 2, "%s hears by itself: leave out %s", j->opening.path, unused)
                  : -1;
}

static int check_model(job *j) {
    const llm_arch *arch = llm_model_arch(llm_opened_model(j->ctx));
    if (reads_sound(j))
        return check_hearing_model(j);
    if (j->opening.params.mmproj && !llm_arch_reads_rows(arch))
        return check_text_model(j);
    if (llm_finds_speech(llm_opened_model(j->ctx)))
        return tool_error(TOOL, 1,
                          "%s finds speech, and writes nothing down: --vad-model is for it, beside "
                          "-m with a model such as Whisper",
                          j->opening.path);
    if (j->opening.why_no_eye)
        return tool_error(TOOL, 1, "%s hears no sounds: %s", j->opening.path,
                          j->opening.why_no_eye);
    return tool_error(TOOL, 1,
                      "%s does not hear: its architecture (%s) reads %s; llm-transcribe needs a "
                      "model such as Whisper, or an ear beside a text model (--mmproj)",
                      j->opening.path, llm_model_family(llm_opened_model(j->ctx)),
                      llm_arch_reads_rows(arch) ? "rows, such as those of a picture" : "texts");
}

/* DIR/talk.srt for recordings/talk.wav. Returns NULL: out of memory. */
static char *path_in(const char *folder, const char *sound, const char *end) {
    const char *slash = ggl_os_last_separator(sound), *name = slash ? slash + 1 : sound;
    const char *dot = strrchr(name, '.');
    const int n = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    const bool is_input = strcmp(sound, "-") == 0;
    const size_t size = strlen(folder) + (size_t)n + strlen(end) + 16;
    char *path = ggl_calloc(size, 1);
    if (path)
        snprintf(path, size, "%s/%.*s.%s", folder, is_input ? 5 : n, is_input ? "stdin" : name,
                 end);
    return path;
}

/* Sets *path to the file of sound k, and checks that it is neither the sound nor that of a sound before it. */
static int check_in_folder(const options *o, size_t k, char **path) {
    const char *sound = o->sounds.s[k];
    path[k] = path_in(o->folder, sound, transcribe_format_end(o->format));
    if (!path[k])
        return tool_error(TOOL, 1, "out of memory");
    const bool is_input = strcmp(sound, "-") == 0;
    const tool_path both[] = {{"--output-dir", path[k], .written = true},
                              {"the sound", sound, .needed = false}};
    const int code = tool_check_paths(TOOL, both, is_input ? 1 : 2);
    for (size_t i = 0; i < k && code < 0; i++)
        if (strcmp(path[i], path[k]) == 0)
            return tool_error_about(TOOL, 2,
                                    "--output-dir: %s and %s would both be written to %s; write "
                                    "them down by two commands",
                                    o->sounds.s[i], sound, path[k]);
    return code;
}

static int check_folder(const options *o) {
    char **path = ggl_calloc(o->sounds.n, sizeof *path);
    int code = path ? -1 : tool_error(TOOL, 1, "out of memory");
    for (size_t k = 0; k < o->sounds.n && code < 0; k++)
        code = check_in_folder(o, k, path);
    for (size_t k = 0; path && k < o->sounds.n; k++)
        ggl_free(path[k]);
    ggl_free(path);
    return code;
}

static int check_paths(const void *ctx) {
    const options *o = ctx;
    const bool is_file = o->sounds.n == 1 && strcmp(o->sounds.s[0], "-") != 0;
    const tool_path paths[] = {
        OPEN_PATHS(&o->open),
        {"--arch", o->open.how.params.arch, .needed = true, .or_name = true},
        {"-o", o->out, .written = true},
        {"--logits", o->logits, .written = true},
        {"--vad-model", o->vad_model, .needed = true, .or_name = true},
        {"the sound", is_file ? o->sounds.s[0] : NULL, .needed = true},
    };
    int code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    return code < 0 && o->folder && o->sounds.n > 0 ? check_folder(o) : code;
}

/* Opens the chat template that was named, by which a text model with an ear is asked. */
static int open_template(const job *j) {
    enum { MOST_TEMPLATE = 4 << 20 };
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    if (!open_options_names_template(&j->o.open))
        return -1;
    if (reads_sound(j))
        return tool_error(TOOL, 2, "%s is not asked in a conversation: leave out --chat-template",
                          j->opening.path);
    const template_choice choice = {j->o.open.template_file, j->opening.params.chat_template,
                                    MOST_TEMPLATE};
    llm_chat *chat = NULL;
    const int code =
        tool_open_template(&chat, TOOL, &choice, llm_model_file(llm_opened_model(j->ctx)),
                           llm_opened_tokenizer(j->ctx), &st, &err);
    llm_opened_set_chat(j->ctx, chat);
    return code < 0 && st != GGL_OK ? tool_error(TOOL, 1, "%s", err.msg) : code;
}

/* What --mmproj names may be an eye alone, or of no use. */
static int check_ear(const job *j) {
    const char *lack = llm_opened_lack(j->ctx);
    if (reads_sound(j) || llm_context_facts(j->ctx)->hears)
        return -1;
    return *lack ? tool_error(TOOL, 1, "%s hears no sounds: %s", j->opening.path, lack)
                 : tool_error(TOOL, 1, "%s makes no rows of sounds: llm-transcribe needs an ear",
                              j->opening.params.mmproj);
}

static int open_voice(const job *j) {
    ggl_error err = {0};
    const char *path = j->o.vad_model;
    if (!path || llm_context_open_voice(j->ctx, path, &err) == GGL_OK)
        return -1;
    return tool_error(TOOL, 1, "--vad-model: %s", err.msg);
}

static int prepare(job *j) {
    open_options *open = &j->o.open;
    int code = check_paths(&j->o);
    if (code < 0)
        code = tool_hub_get_seeing(TOOL, &open->hub, &open->how.path, &open->how.params.mmproj);
    if (code < 0 && open->hub.path[0])
        code = check_paths(&j->o);
    if (code < 0 && !open->how.path) {
        open->how.path = "builtin:words";
        tool_note(TOOL,
                  "no model is named (-m), so %s listens: it knows the ten digits and twenty "
                  "other English words alone",
                  open->how.path);
    }
    if (code < 0)
        code = open_model(j);
    if (code < 0)
        code = check_model(j);
    if (code < 0)
        code = open_template(j);
    if (code < 0)
        code = tool_open_weights(j->ctx, TOOL, &j->opening, NULL, NULL);
    if (code < 0)
        code = tool_open_context(j->ctx, TOOL, &j->opening, NULL, LLM_OPENED_ALL);
    if (code < 0)
        code = check_ear(j);
    return code < 0 ? open_voice(j) : code;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool on_piece(void *user, const llm_speech *piece) {
    job *j = user;
    progress_clear();
    errno = 0;
    speech_text_piece(&j->out, piece);
    if (ferror(j->out.to))
        j->lost = errno ? errno : EIO;
    return !is_stopped(NULL) && !j->lost;
}

static bool on_said(void *user, const char *text, size_t n) {
    job *j = user;
    progress_clear();
    errno = 0;
    speech_text_said(&j->out, text, n);
    if (ferror(j->out.to))
        j->lost = errno ? errno : EIO;
    return !is_stopped(NULL) && !j->lost;
}

static bool on_progress(void *user, double done, double all) {
    job *j = user;
    j->duration = all;
    speech_text_window(&j->out, done);
    progress_share(NULL, (size_t)fmax(done, 0), (size_t)fmax(all, 0));
    return !is_stopped(NULL);
}

static void on_language(void *user, const char *code) {
    job *j = user;
    speech_text_language(&j->out, code);
}

static void on_note(void *user, const char *text) {
    (void)user;
    tool_note(TOOL, "%s", text);
}

static void on_warn(void *user, const char *text) {
    job *j = user;
    tool_warning(TOOL, "%s", text);
    speech_text_warn(&j->out, text);
}

static llm_transcribe_params params_of(job *j) {
    const options *o = &j->o;
    return (llm_transcribe_params){.size = sizeof(llm_transcribe_params),
                                   .language = o->language,
                                   .translate = o->translate,
                                   .no_times = o->no_times,
                                   .no_context = o->no_context,
                                   .prompt = o->prompt,
                                   .temperature = (float)o->temperature,
                                   .temperature_step = (float)o->temperature_step,
                                   .least_logprob = (float)o->least_logprob,
                                   .least_entropy = (float)o->least_entropy,
                                   .most_ratio = (float)o->most_ratio,
                                   .vad_model = o->vad_model,
                                   .vad_threshold = (float)o->vad_threshold,
                                   .vad_min_speech_duration_ms = (int32_t)o->vad_min_speech,
                                   .vad_min_silence_duration_ms = (int32_t)o->vad_min_silence,
                                   .vad_speech_pad_ms = (int32_t)o->vad_pad,
                                   .vad_max_speech_duration_s = (float)o->vad_max_speech,
                                   .vad_samples_overlap = (float)o->vad_overlap,
                                   .no_speech = (float)o->no_speech,
                                   .n_beams = (int32_t)o->n_beams,
                                   .n_best = (int32_t)o->n_best,
                                   .seed = o->seed,
                                   .offset = o->offset,
                                   .duration = o->duration,
                                   .words = o->open.how.params.words,
                                   .raw = transcribe_options_raw(o),
                                   .raw_rate = (int32_t)o->raw_rate,
                                   .raw_channels = (int32_t)o->raw_channels,
                                   .live = o->live,
                                   .said = o->live ? on_said : NULL,
                                   .each = on_piece,
                                   .progress = on_progress,
                                   .note = on_note,
                                   .warn = on_warn,
                                   .spoken = on_language,
                                   .user = j};
}

/* Reports why a sound could not be written down; the library names the sound if that is at fault. Returns an exit code. */
static int tell(job *j, const char *sound, ggl_status st, const ggl_error *err) {
    if (is_stopped(NULL))
        return process_stop_code();
    if (j->lost) /* tool_finish reports standard output */
        return j->path
                   ? tool_error(TOOL, 1, "%s: cannot be written: %s", j->path, strerror(j->lost))
                   : 1;
    const char *name = strcmp(sound, "-") == 0 ? "standard input" : sound;
    const size_t n = strlen(name);
    const bool is_named = strncmp(err->msg, name, n) == 0 && err->msg[n] == ':';
    j->is_bad = is_named && st != GGL_USAGE && st != GGL_NOMEM;
    return tool_error(TOOL, st == GGL_USAGE ? 2 : 1, "%s", err->msg);
}

/* Says how long it took. */
static void tell_speed(const job *j, double seconds) {
    ggl_error err;
    llm_run_info run = {.size = sizeof run};
    const double heard = j->duration < 0 ? j->out.end : j->duration;
    if (llm_last_run(j->ctx, &run, &err) == GGL_OK && run.n_prompt > 0)
        tool_note(TOOL, "%.1f s of sound in %.1f s: encoder %.1f s, %lld tokens in %.1f s", heard,
                  seconds, run.prompt_seconds, (long long)run.n_generated, run.seconds);
}

/* Writes down a sound to j->out.to. Returns -1, or an exit code. */
static int transcribe(job *j, const char *sound) {
    ggl_error err = {0};
    const llm_transcribe_params p = params_of(j);
    j->out = (speech_text){.to = j->out.to,
                           .format = j->o.format,
                           .is_translated = j->o.translate,
                           .has_words = j->o.open.how.params.words,
                           .is_told = j->o.live,
                           .lines = {.most_words = j->o.most_words,
                                     .most_width = j->o.most_width,
                                     .most_lines = j->o.most_lines,
                                     .highlight = j->o.highlight}};
    j->duration = -1;
    speech_text_begin(&j->out);
    speech_text_window(&j->out, j->o.offset);
    progress_begin("s", 0, "%s", strcmp(sound, "-") == 0 ? "standard input" : sound);
    const double begin = ggl_os_seconds();
    hears_pipe = is_pipe(sound);
    process_spare(hears_pipe);
    const ggl_status st = llm_transcribe(j->ctx, sound, &p, &err);
    hears_pipe = false;
    process_spare(0);
    progress_end();
    speech_text_end(&j->out, j->duration);
    speech_text_fini(&j->out);
    if (st == GGL_OK)
        tell_speed(j, ggl_os_seconds() - begin);
    if (st != GGL_OK)
        return tell(j, sound, st, &err);
    return j->out.failed ? tool_error(TOOL, 1, "out of memory") : -1;
}

/* Writes down a sound to a file, which appears when it is complete, or with what was said until a signal stops the program. If nothing was,
 * there is no new file, which would be empty in place of one that may be good. */
static int transcribe_to(job *j, const char *sound, const char *path) {
    ggl_error err = {0};
    ggl_new_file *f;
    if (ggl_new_file_open(&f, path, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    j->path = path;
    j->out.to = ggl_new_file_stream(f);
    const int code = transcribe(j, sound);
    const bool stopped = is_stopped(NULL) && !j->out.failed;
    if (code >= 0 && !(stopped && j->out.n > 0)) {
        ggl_new_file_discard(f);
        if (stopped)
            tool_note(TOOL, "stopped: nothing was said yet; %s %s", path,
                      ggl_os_exists(path) ? "is as it was" : "was not written");
        return code;
    }
    ggl_new_file_note(f);
    if (ggl_new_file_commit(f, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (code >= 0)
        tool_note(TOOL, "stopped: %s has what was said in the first %.1f s", path, j->out.end);
    return code;
}

/* Writes down all sounds. Those that cannot be read are reported, and the others written all the same. */
static int transcribe_all(job *j) {
    const options *o = &j->o;
    size_t n_bad = 0;
    int code = -1;
    for (size_t k = 0; k < o->sounds.n && (code < 0 || j->is_bad); k++) {
        j->is_bad = false;
        char *path =
            o->folder ? path_in(o->folder, o->sounds.s[k], transcribe_format_end(o->format)) : NULL;
        j->out.to = stdout;
        if (o->folder && !path)
            return tool_error(TOOL, 1, "out of memory");
        code = o->out || path ? transcribe_to(j, o->sounds.s[k], o->out ? o->out : path)
                              : transcribe(j, o->sounds.s[k]);
        ggl_free(path);
        n_bad += j->is_bad;
    }
    if (n_bad == 0 || (code >= 0 && !j->is_bad))
        return code;
    if (o->sounds.n > 1)
        tool_note(TOOL, "%zu of %zu sounds could not be written down", n_bad, o->sounds.n);
    return 1;
}

/* --- steps, as arrays --------------------------------------------------------------------------- */

/* Rows [n][n_row] that come in pieces. */
typedef struct rows {
    float *at;
    size_t n, n_row, cap;
} rows;

static bool add_rows(void *user, const float *row, size_t n, size_t n_row) {
    rows *r = user;
    r->n_row = n_row;
    if (!ggl_grow(&r->at, &r->cap, (r->n + n) * n_row, sizeof *r->at))
        return false;
    memcpy(r->at + r->n * n_row, row, n * n_row * sizeof *row);
    r->n += n;
    return true;
}

/* Writes the rows, or `turned` the columns. */
static int write_rows(const char *path, const rows *r, bool turned) {
    ggl_error err = {0};
    npy_writer w = {0};
    const size_t n = turned ? r->n_row : r->n, m = turned ? r->n : r->n_row;
    float *column = ggl_calloc(m + 1, sizeof *column);
    ggl_status st = column ? npy_open(&w, path, (int64_t)n, (int64_t)m, &err)
                           : ggl_fail(&err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        for (size_t k = 0; k < m; k++)
            column[k] = turned ? r->at[k * r->n_row + i] : r->at[i * r->n_row + k];
        npy_row(&w, column, (int64_t)m);
    }
    if (st == GGL_OK)
        st = npy_close(&w, &err);
    ggl_free(column);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* --dump: a spectrogram has a row for each band, as others write it. */
static int dump(job *j) {
    ggl_error err = {0};
    rows r = {0};
    const llm_transcribe_params p = params_of(j);
    const char *sound = j->o.sounds.s[0];
    const bool mel = j->o.dump == DUMP_MEL;
    const ggl_status st = mel ? llm_sound_rows(j->ctx, sound, &p, add_rows, &r, &err)
                              : llm_heard_rows(j->ctx, sound, &p, &r.at, &r.n, &r.n_row, &err);
    const int code = st == GGL_OK ? write_rows(j->o.out, &r, mel) : tell(j, sound, st, &err);
    ggl_free(r.at);
    return code;
}

/* --tokens and --logits. */
static int write_logits(job *j) {
    ggl_error err = {0};
    int32_t *id;
    size_t n = 0;
    const llm_transcribe_params p = params_of(j);
    const int code = tool_read_ids(TOOL, "--tokens", j->o.tokens, &id, &n);
    if (code >= 0)
        return code;
    rows r = {.n_row = (size_t)llm_context_facts(j->ctx)->n_vocab};
    ggl_status st = llm_hear(j->ctx, j->o.sounds.s[0], &p, &err);
    const float *logits = NULL;
    if (st == GGL_OK)
        st = llm_eval(j->ctx, id, n, true, &logits, &err);
    if (st == GGL_OK && !add_rows(&r, logits, n, r.n_row))
        st = ggl_fail(&err, GGL_NOMEM, "out of memory");
    const int written =
        st == GGL_OK ? write_rows(j->o.logits, &r, false) : tell(j, j->o.sounds.s[0], st, &err);
    ggl_free(r.at);
    ggl_free(id);
    return written;
}

static int run(job *j) {
    int code = prepare(j);
    if (code < 0)
        code = j->o.dump ? dump(j) : j->o.tokens ? write_logits(j) : transcribe_all(j);
    return code < 0 ? 0 : code;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    job j = {0};
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = transcribe_options_read(&j.o, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = run(&j);
    }
    if (code == 0 && j.ctx && !llm_placement_report(llm_opened_placement(j.ctx), stderr))
        code = 1;
    code = tool_close_context(j.ctx, TOOL, code);
    transcribe_options_fini(&j.o);
    return tool_finish(TOOL, code);
}
