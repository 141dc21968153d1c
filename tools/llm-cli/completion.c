#include "completion.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/color.h"
#include "common/npy.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "text_stream.h"
#include "ggl/internal/os_process.h"

#define TOOL "llm-cli"

typedef struct completion {
    const completion_setup *s;
    saved_prompt *saved_prompt; /* NULL: there is no prompt cache */
    text_stream out;
    npy_writer logits;
    int64_t n_logits;   /* rows written of them */
    record record;      /* for --json-output */
    const char *finish; /* why the generation ended, as in the record; NULL: it did not begin */
    llm_run_info run;
    int64_t n_ids; /* ids that were printed */
    bool told_nan, told_shift, lacks_memory;
    double t_prompt; /* seconds */
} completion;

/* A model that reads a text writes another one: its prompt is not shown before it. */
static bool shows_prompt(const completion *c) {
    return c->s->o->display_prompt && !llm_session_reads_text(llm_opened_session(c->s->ctx));
}

static void read_run(completion *c) {
    c->run.size = sizeof c->run;
    (void)!llm_last_run(c->s->ctx, &c->run, NULL); /* fails only if the size is wrong */
}

/* Says once that some logits are NaN. */
static void note_nan(completion *c) {
    const int64_t n_nan = c->run.n_nan;
    if (n_nan == 0 || c->told_nan)
        return;
    c->told_nan = true;
    const int64_t n_past = llm_session_n_past(llm_opened_session(c->s->ctx), 0);
    tool_warning(TOOL,
                 "after %" PRId64 " token%s %" PRId64 " of %" PRId64
                 " logits are NaN; such tokens are never chosen",
                 n_past, llm_amount_s(n_past), n_nan,
                 llm_session_n_vocab(llm_opened_session(c->s->ctx)));
}

/* Says once that the context was shifted. */
static void note_shift(completion *c) {
    if (c->run.n_shifts == 0 || c->told_shift)
        return;
    c->told_shift = true;
    tool_note(TOOL,
              "the context of %" PRId64 " tokens was full: %" PRId64
              " older %s dropped, which repeats whenever it is full",
              llm_context_facts(c->s->ctx)->n_ctx, c->run.n_dropped,
              c->run.n_dropped == 1 ? "one was" : "ones were");
}

/* --- generating ------------------------------------------------------------------------------- */

static void on_logits(void *user, int64_t i, const float *logits) {
    completion *c = user;
    const int32_t n_vocab = llm_context_facts(c->s->ctx)->n_vocab;
    const llm_tokens *prompt = c->s->prompt;
    const float nan = NAN;
    /* rows of a picture that see later ones have none */
    for (; c->n_logits < i && prompt->id[c->n_logits] < 0; c->n_logits++)
        for (int32_t v = 0; v < n_vocab; v++)
            npy_row(&c->logits, &nan, 1);
    c->n_logits = i + 1;
    npy_row(&c->logits, logits, n_vocab);
}

/* Records a token; without a tokenizer, prints its id. */
static bool on_token(void *user, int32_t id, const float *logits) {
    completion *c = user;
    char number[16];
    read_run(c);
    note_nan(c);
    note_shift(c);
    c->lacks_memory = c->s->o->json_output &&
                      !record_token(&c->record, id, logits, llm_context_facts(c->s->ctx)->n_vocab);
    if (!llm_opened_tokenizer(c->s->ctx)) {
        const int n = snprintf(number, sizeof number, "%s%" PRId32, c->n_ids++ > 0 ? "," : "", id);
        text_stream_put(&c->out, number, (size_t)n);
    }
    return !c->lacks_memory && !c->out.failed;
}

static llm_generate_params params(completion *c) {
    llm_generate_params p = c->s->generation->p;
    p.shift = c->s->o->shift;
    p.n_keep = c->s->o->n_keep;
    p.user = c;
    p.token = on_token;
    p.prompt_progress = c->s->progress;
    p.prompt_logits = c->s->o->logits ? on_logits : NULL;
    if (c->s->o->n_predict != 0 && c->s->o->n_beams > 1)
        p.n_beams = (int32_t)c->s->o->n_beams;
    p.length_penalty = (float)c->s->o->length_penalty;
    p.early_stopping = c->s->o->early_stopping;
    return p;
}

static llm_file_prompt file_prompt(const completion *c) {
    return (llm_file_prompt){.id = c->s->prompt->id,
                             .n = c->s->prompt->n,
                             .read = c->s->generation->p.read,
                             .n_read = c->s->generation->p.n_read};
}

/* Runs the prompt, from where the prompt cache ends. */
static ggl_status begin(completion *c, ggl_error *err) {
    const llm_generate_params p = params(c);
    const double t = ggl_os_seconds();
    tool_progress_prompt(c->s->ctx);
    /* all tokens have to run if their logits are wanted */
    const llm_file_prompt all = file_prompt(c);
    ggl_status st = c->s->o->logits ? GGL_OK : saved_prompt_load(c->saved_prompt, &all, err);
    if (st == GGL_OK)
        st = llm_begin(c->s->ctx, c->s->prompt->id, c->s->prompt->n, &p, err);
    progress_end();
    read_run(c);
    c->t_prompt = ggl_os_seconds() - t - c->run.seconds; /* a search of beams has ended by now */
    return st;
}

/* Returns the number of tokens, and rows of pictures and sounds, that run before the first token is drawn. If the prompt is the text
 * that the model reads, that is the token with which its answer begins. */
static int64_t n_rows(const completion *c) {
    const bool is_read =
        llm_session_reads_text(llm_opened_session(c->s->ctx)) && !c->s->generation->p.read;
    return is_read ? 1 : (int64_t)c->s->prompt->n;
}

static int run_prompt(completion *c) {
    ggl_error err = {0};
    /* opening a pipe waits for its reader */
    if (c->s->o->logits && npy_open(&c->logits, c->s->o->logits, n_rows(c),
                                    llm_context_facts(c->s->ctx)->n_vocab, &err) != GGL_OK)
        return process_stopped ? process_stop_code() : tool_error(TOOL, 1, "--logits: %s", err.msg);
    const ggl_status st = begin(c, &err);
    if (process_stopped)
        tool_begin_line();
    if (st != GGL_OK && st != GGL_CANCELLED)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (c->s->o->logits && !process_stopped && npy_close(&c->logits, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--logits: %s", err.msg);
    return -1;
}

/* Returns an exit code after an error; -1: the generation ended as it should. */
static int end_of_generation(const completion *c, ggl_status st, const ggl_error *err) {
    if (c->lacks_memory)
        return tool_error(TOOL, 1, "out of memory for --json-output");
    if (st != GGL_OK && st != GGL_CANCELLED)
        return tool_error(TOOL, 1, "%s", err->msg);
    if (c->run.finish == LLM_FINISH_CONTEXT)
        tool_note(TOOL, "the context of %" PRId64 " tokens is full",
                  llm_context_facts(c->s->ctx)->n_ctx);
    if (!c->run.incomplete || process_stopped || c->run.finish == LLM_FINISH_STOP)
        return -1;
    return tool_error(TOOL, 1,
                      "the text is not complete by its grammar after %" PRId64
                      " tokens: -n, or the context (-c), is too small for its shortest ending",
                      c->run.n_generated);
}

static int generate(completion *c) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    const char *piece = "";
    size_t n;
    if (!llm_opened_tokenizer(c->s->ctx) && c->s->o->n_predict != 0)
        tool_note(TOOL, "there is no tokenizer for this model, so ids are printed");
    while (c->s->o->n_predict != 0 && st == GGL_OK && piece) {
        st = llm_next(c->s->ctx, &piece, &n, &err);
        text_stream_put(&c->out, piece, n);
    }
    if (c->s->o->n_predict != 0)
        read_run(c);
    note_nan(c);
    c->finish = cli_finish(c->run.finish);
    return end_of_generation(c, st, &err);
}

/* Prints a line of the timings, and why guessing ended early. */
static void print_guesses(const completion *c) {
    ggl_error err = {0};
    if (!llm_opened_guessing(c->s->ctx))
        return;
    int64_t n_steps;
    const int64_t n_declined = llm_guessing_declined(llm_opened_guessing(c->s->ctx), &n_steps);
    if (!tool_is_quiet())
        fprintf(stderr, "guesses                  %7" PRId64 " tokens %10" PRId64 " right\n",
                c->run.n_guessed, c->run.n_right);
    if (!tool_is_quiet() && n_declined > 0)
        fprintf(stderr,
                "no guesses               %7" PRId64 " steps  %10" PRId64
                " in all: they do not pay (--guess-always)\n",
                n_declined, n_steps);
    if (llm_guessing_failed(llm_opened_guessing(c->s->ctx), &err) != GGL_OK)
        tool_warning(TOOL, "the draft model stopped guessing: %s", err.msg);
}

static void print_times(const completion *c) {
    if (tool_is_quiet()) {
        print_guesses(c); /* warnings only */
        tool_begin_line();
        return;
    }
    const int64_t n_saved = saved_prompt_n_held(c->saved_prompt);
    double n_prompt = (double)(n_saved ? (int64_t)c->s->prompt->n - n_saved : c->run.n_prompt),
           n_gen = (double)(c->run.n_generated > 1 ? c->run.n_generated - 1 : 0);
    fprintf(stderr, "\nload        %9.1f ms\n", c->s->facts->load * 1e3);
    const record_run *facts = c->s->facts;
    if (facts->n_pictures > 0)
        fprintf(stderr, "pictures    %9.1f ms %7zu\n", facts->looked[0] * 1e3, facts->n_pictures);
    if (facts->n_sounds > 0)
        fprintf(stderr, "sounds      %9.1f ms %7zu\n", facts->looked[1] * 1e3, facts->n_sounds);
    fprintf(stderr, "prompt      %9.1f ms %7.0f tokens %10.1f t/s\n", c->t_prompt * 1e3, n_prompt,
            c->t_prompt > 0 ? n_prompt / c->t_prompt : 0);
    if (n_saved > 0)
        fprintf(stderr, "from cache               %7" PRId64 " tokens\n", n_saved);
    fprintf(stderr, "generation  %9.1f ms %7.0f tokens %10.1f t/s\n", c->run.seconds * 1e3, n_gen,
            c->run.seconds > 0 ? n_gen / c->run.seconds : 0);
    if (c->run.repack_seconds > 0)
        fprintf(stderr, "repacking   %9.1f ms of the generation\n", c->run.repack_seconds * 1e3);
    print_guesses(c);
    fprintf(stderr, "peak memory %9.1f MiB\n", (double)ggl_os_peak_memory() / 1048576);
    fprintf(stderr, "descriptor  %s\n", llm_model_arch_origin(llm_opened_model(c->s->ctx)));
}

static bool take_text(void *ctx, const char *text, size_t n) {
    return record_text(ctx, text, n);
}

/* Prepares where the text goes. */
static int open_output(completion *c) {
    ggl_error err = {0};
    if (c->s->o->json_output) {
        c->out.take = take_text;
        c->out.ctx = &c->record;
    }
    const ggl_status st =
        c->s->o->output ? ggl_new_file_open(&c->out.file, c->s->o->output, &err) : GGL_OK;
    if (st != GGL_OK && process_stopped) /* opening a pipe waits for its reader */
        return process_stop_code();
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s%s", st == GGL_NOMEM ? "" : "-o: ", err.msg);
}

/* Writes the line of --json-output. */
static int write_record(completion *c) {
    size_t n;
    record_run run = *c->s->facts;
    run.prompt_ids = c->s->prompt;
    run.prompt_text = c->s->text.s;
    run.n_prompt_text = c->s->text.n;
    run.finish = c->finish;
    run.n_reused = saved_prompt_n_held(c->saved_prompt);
    run.prompt = c->t_prompt;
    run.generation = c->run.seconds;
    run.repacking = c->run.repack_seconds;
    char *line = record_line(&c->record, &run, &n);
    if (!line)
        return tool_error(TOOL, 1, "out of memory for --json-output");
    c->out.take = NULL;
    text_stream_put(&c->out, line, n);
    free(line);
    return -1;
}

/* Ends the text. code: -1, or an exit code after an error; a file gets its name unless there was
 * an error before the first token. Returns the same, or an exit code. */
static int close_output(completion *c, int code) {
    ggl_error err = {0};
    text_stream_end(&c->out);
    if (c->s->o->json_output && c->finish) {
        const int wrong = write_record(c);
        code = code < 0 ? wrong : code;
    } else if (code < 0 && (c->run.n_generated > 0 || (shows_prompt(c) && !c->s->o->tokens)))
        text_stream_put(&c->out, "\n", 1);
    ggl_new_file *file = c->out.file;
    if (!file || (code >= 0 && c->run.n_generated == 0))
        return code;
    c->out.file = NULL;
    if (ggl_new_file_commit(file, &err) != GGL_OK)
        return tool_error(TOOL, 1, "-o: %s", err.msg);
    return code;
}

static void show_prompt(completion *c) {
    const bool colored =
        tool_color(c->s->o->color, c->out.file ? ggl_new_file_stream(c->out.file) : stdout);
    if (!c->s->text.s || !shows_prompt(c) || c->s->o->json_output)
        return;
    if (colored)
        text_stream_put(&c->out, COLOR_PROMPT, strlen(COLOR_PROMPT));
    text_stream_put(&c->out, c->s->text.s, c->s->text.n);
    if (colored)
        text_stream_put(&c->out, COLOR_RESET, strlen(COLOR_RESET));
}

static int run(completion *c) {
    int code = saved_prompt_open(&c->saved_prompt, TOOL, &c->s->o->saved_prompt, c->s->ctx);
    if (code < 0)
        code = open_output(c);
    if (code < 0)
        show_prompt(c);
    if (code < 0 && c->s->prompt->n)
        code = run_prompt(c);
    if (code < 0 && !process_stopped && c->s->prompt->n)
        code = generate(c);
    code = close_output(c, code);
    if (code >= 0)
        return code;
    llm_opened_end(c->s->ctx);
    const llm_file_prompt all = file_prompt(c);
    const bool saved = !all.n || saved_prompt_write(c->saved_prompt, &all);
    print_times(c);
    return saved ? -1 : 1;
}

int completion_run(const completion_setup *s) {
    completion c = {.s = s};
    const int code = run(&c);
    npy_abort(&c.logits);
    ggl_new_file_discard(c.out.file);
    saved_prompt_close(c.saved_prompt);
    record_fini(&c.record);
    return code;
}
