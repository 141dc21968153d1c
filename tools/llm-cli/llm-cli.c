/* llm-cli: continues a prompt with generated text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chat.h"
#include "choose.h"
#include "completion.h"
#include "diffusion.h"
#include "ggl/internal/os_fs.h"
#include "images.h"
#include "common/fit_context.h"
#include "common/fit_lines.h"
#include "common/input.h"
#include "common/load.h"
#include "common/open_context.h"
#include "common/paths.h"
#include "common/placement_text.h"
#include "common/process.h"
#include "common/ranks.h"
#include "common/progress.h"
#include "common/terminal.h"
#include "common/texts.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "llm/internal/guesser.h"
#include "options.h"

#define TOOL     "llm-cli"
#define QUESTION "What is in the picture?"

typedef struct cli {
    cli_options o;
    llm_opening opening;
    llm_context *ctx;
    cli_generation generation;
    record_run facts; /* what the records of this run have in common */
    char backends[512];
    char *text; /* text of the prompt, if it was given as text */
    size_t text_size;
    llm_tokens prompt;
    llm_tokens encoded; /* the text to read, if the prompt is the beginning of the answer */
    bool answers;       /* a model of the diffusion kind answers a message */
    bool converses;     /* the text is the first message of a conversation, or no text was given */
    bool shows; /* a picture is given, but no model, so the built-in one that sees looks at it */
    double t_begin, t_load; /* seconds */
} cli;

/* --- the prompt ------------------------------------------------------------------------------- */

static bool stdin_is_piped(void) {
    os_stat st;
    return ggl_os_stat_fd(OS_STDIN, &st) &&
           (st.kind == OS_PIPE || st.kind == OS_FILE || st.kind == OS_SOCKET);
}

static bool is_prompted(const cli_options *o) {
    return o->prompt || o->prompt_file || stdin_is_piped();
}

/* Without a session, the limit is the context that it will have at most. */
static int check_lengths(const cli *c) {
    const int64_t n = (int64_t)c->prompt.n;
    const int64_t n_ctx = llm_opened_session(c->ctx) ? llm_session_n_ctx(llm_opened_session(c->ctx))
                          : c->o.open.how.params.n_ctx > 0
                              ? c->o.open.how.params.n_ctx
                              : llm_model_n_ctx(llm_opened_model(c->ctx));
    if (n > n_ctx && (llm_opened_session(c->ctx) || n_ctx > 0))
        return tool_error(TOOL, 1,
                          "the prompt has %" PRId64 " tokens, but the context only %" PRId64
                          "; -c sets a larger one",
                          n, n_ctx);
    /* the tokenizer's own are below it: a model with fewer rows than tokens is refused at load */
    for (int64_t i = 0; llm_opened_session(c->ctx) && c->o.tokens && i < n; i++)
        if (c->prompt.id[i] >= llm_session_n_vocab(llm_opened_session(c->ctx)))
            return tool_error(TOOL, 2, "token %" PRId32 " is not in the vocabulary of %" PRId64,
                              c->prompt.id[i], llm_session_n_vocab(llm_opened_session(c->ctx)));
    return -1;
}

/* Returns the text of the prompt (the caller frees it); NULL with *code set after an error. */
static char *prompt_text(cli *c, size_t *n, int *code) {
    char *text = NULL;
    *n = 0;
    if (c->o.prompt) {
        text = ggl_copy_text(c->o.prompt);
        *n = text ? strlen(text) : 0;
        if (text && c->o.escape)
            *n = unescape(text, *n);
    } else if (c->o.prompt_file || stdin_is_piped()) {
        const char *path = c->o.prompt_file ? c->o.prompt_file : "-";
        text = tool_read_any_text(TOOL, path, n);
        if (!text) {
            *code = process_stopped ? process_stop_code() : 1;
            return NULL;
        }
        if (*n > 0 && text[*n - 1] == '\n') { /* as in llama.cpp: an editor or echo added it */
            --*n;
            if (*n > 0 && text[*n - 1] == '\r') /* those of Windows */
                --*n;
        }
        if (*n == 0 && c->shows) { /* the pipe was empty */
            free(text);
            text = ggl_copy_text(QUESTION);
            *n = sizeof QUESTION - 1;
        }
    } else {
        text = calloc(1, 1);
    }
    if (!text)
        *code = tool_error(TOOL, 1, "out of memory");
    return text;
}

static int tokenize_prompt(cli *c);

static bool has_media(const cli *c) {
    return c->o.image.n + c->o.audio.n > 0;
}

/* Reads the prompt, into ids unless pictures or sounds have to be looked at before. */
static int read_prompt(cli *c) {
    if (c->o.encode_tokens) {
        const int bad = tool_read_ids(TOOL, "--encode-tokens", c->o.encode_tokens, &c->encoded.id,
                                      &c->encoded.n);
        if (bad >= 0)
            return bad;
        c->encoded.cap = c->encoded.n;
    }
    if (c->o.tokens) {
        int bad = tool_read_ids(TOOL, "--tokens", c->o.tokens, &c->prompt.id, &c->prompt.n);
        c->prompt.cap = c->prompt.n;
        return bad >= 0 ? bad : check_lengths(c);
    }
    if (!llm_opened_tokenizer(c->ctx))
        return tool_error(TOOL, 1, "%s (to pass a prompt as ids: --tokens 1,2,3)",
                          llm_opened_why_no_tokenizer(c->ctx)->msg);
    int code = -1;
    const bool asks = c->o.prompt || c->o.prompt_file || (c->o.chat.single && stdin_is_piped());
    if (!asks && (c->converses || (c->o.chat.interactive && !stdin_is_piped())))
        return -1; /* what is typed or piped comes later */
    const double t = ggl_os_seconds();
    c->text = prompt_text(c, &c->text_size, &code);
    c->t_begin += ggl_os_seconds() - t; /* a pipe may keep us waiting, which is not loading */
    if (!c->text)
        return code;
    /* what a model that answers writes without a question mostly makes no sense; -p '' asks for it */
    if (has_media(c) && c->text_size == 0 && !c->o.prompt &&
        chat_answers_media(&c->o, llm_model_file(llm_opened_model(c->ctx))))
        return tool_error(TOOL, 2,
                          "%s without a question: -p TEXT asks one, as in: -p 'What is in the "
                          "%s?'; -cnv converses, -no-cnv continues a text that begins with it",
                          c->o.image.n > 0 ? "--image" : "--audio",
                          c->o.image.n > 0 ? "picture" : "sound");
    return has_media(c) ? -1 : tokenize_prompt(c);
}

static int tokenize_prompt(cli *c) {
    ggl_error err = {0};
    if (c->converses || c->o.chat.interactive)
        return -1;
    if (diffusion_is(c->ctx)) {
        const int wrong = diffusion_prompt(c->ctx, c->text, c->text_size, c->answers, &c->prompt);
        return wrong >= 0 ? wrong : check_lengths(c);
    }
    chat_note_template(&c->o, llm_model_file(llm_opened_model(c->ctx)));
    unsigned flags = LLM_TOKENIZE_BOS | (c->o.no_special ? 0u : LLM_TOKENIZE_SPECIAL);
    const ggl_status st =
        llm_tokenize(llm_opened_tokenizer(c->ctx), c->text, c->text_size, flags, &c->prompt, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (c->prompt.n == 0 && chat_lacks_template(&c->o, llm_model_file(llm_opened_model(c->ctx))))
        return tool_error(TOOL, 1,
                          "%s: the file has no chat template, so it cannot chat; --chat-template "
                          "NAME|FILE gives one (chatml, llama3, ..), -p TEXT continues a text",
                          c->o.open.how.path);
    if (c->prompt.n == 0 && c->text_size > 0)
        return tool_error(TOOL, 2,
                          "the prompt becomes no token: the model's vocabulary lacks all of its "
                          "characters (llm-tokenize shows what a text becomes)");
    if (c->prompt.lost > 0)
        tool_note(TOOL, "left out of the prompt: %zu of %zu bytes, which the vocabulary lacks",
                  c->prompt.lost, c->text_size);
    if (c->prompt.n == 0)
        return tool_error(TOOL, 2,
                          "the prompt is empty, and this model has no token to begin with; pass a "
                          "prompt with -p");
    return check_lengths(c);
}

/* --- loading ---------------------------------------------------------------------------------- */

/* Sets what the options need of the session. */
static void set_session(llm_session_params *p, const cli_options *o) {
    p->n_slots = o->n_beams;
    if (o->n_beams > 1)
        p->n_rows = o->n_beams;
    if (o->logits)
        p->n_rows = p->n_ubatch;
    if (constraint_is_given(&o->constraint) && p->n_rows < LLM_FORCED_ROWS)
        p->n_rows = LLM_FORCED_ROWS; /* text that a grammar determines runs in one batch */
}

/* Sets what the options say about opening the model. */
static int set_opening(cli *c) {
    ggl_error err = {0};
    const char *name = c->o.open.how.path;
    if (!name)
        name = chat_begins(&c->o, NULL) ? "builtin:chat" : "builtin:stories";
    c->opening = open_options_opening(&c->o.open);
    c->opening.path = name;
    c->opening.params.user = (void *)(uintptr_t)name;
    c->opening.params.repack_late = true;
    set_session(&c->opening.session, &c->o);
    c->opening.lacks = fit_context_note;
    if (llm_context_new(&c->ctx, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    return tool_check_builtin(TOOL, name);
}

static int open_until(cli *c, llm_opened until) {
    return tool_open_context(c->ctx, TOOL, &c->opening, &c->o.open.adapters, until);
}

static int open_model(cli *c) {
    const int code = set_opening(c);
    return code < 0 ? open_until(c, LLM_OPENED_MODEL) : code;
}

static int open_session(cli *c) {
    const bool goes_on = (c->converses && !c->o.chat.single) || c->o.chat.interactive;
    if (!goes_on && c->o.n_predict > 0)
        c->opening.params.n_expected = c->o.n_predict;
    if (c->o.choose.n > 0)
        choose_set_session(&c->opening.session, &c->o, llm_opened_model(c->ctx));
    const int code = open_until(c, LLM_OPENED_SESSION);
    if (code >= 0)
        return code;
    tool_print_notes(llm_session_notes(llm_opened_session(c->ctx)));
    tool_note_context(TOOL, llm_opened_model(c->ctx),
                      llm_session_n_ctx(llm_opened_session(c->ctx)));
    return -1;
}

/* Reads the weights. */
static int open_weights(cli *c) {
    progress_begin(PROGRESS_BYTES, 0, "loading weights");
    const double t = ggl_os_seconds();
    const int code = open_until(c, LLM_OPENED_ALL);
    progress_end();
    if (code >= 0)
        return code;
    tool_print_notes(llm_session_load_notes(llm_opened_session(c->ctx)));
    if (c->o.n_predict != 0 && c->o.n_beams <= 1) /* else nothing is sampled */
        sampling_options_note(TOOL, &c->o.sampling, c->ctx, &c->opening);
    c->t_load = ggl_os_seconds() - c->t_begin;
    repack_hint_print(TOOL, llm_opened_session(c->ctx), llm_opened_session_params(c->ctx),
                      c->t_load, ggl_os_seconds() - t);
    return -1;
}

/* --- running ---------------------------------------------------------------------------------- */

/* The progress of a prompt. */
static bool on_progress(void *ctx, int64_t done, int64_t n) {
    return progress_share(ctx, (size_t)done, (size_t)n) && !process_stopped;
}

/* is_asked: the text is the first message, and not only pictures that come before it. */
static int converse(cli *c, bool is_asked) {
    const ggl_str text = {c->text, c->text_size}, none = {0};
    const chat_setup s = {.o = &c->o,
                          .model_name = ggl_gguf_name(llm_model_file(llm_opened_model(c->ctx))),
                          .ctx = c->ctx,
                          .generation = &c->generation,
                          .first = is_asked ? text : none,
                          .attached = is_asked ? none : text,
                          .facts = &c->facts,
                          .progress = on_progress};
    return c->converses ? chat_run(&s) : interactive_run(&s);
}

static int complete(cli *c) {
    if (c->encoded.n > 0) {
        c->generation.p.read = c->encoded.id;
        c->generation.p.n_read = c->encoded.n;
    }
    const completion_setup s = {.o = &c->o,
                                .ctx = c->ctx,
                                .prompt = &c->prompt,
                                .text = {c->text, c->text_size},
                                .generation = &c->generation,
                                .facts = &c->facts,
                                .progress = on_progress};
    return diffusion_is(c->ctx) && c->o.n_predict != 0 ? diffusion_run(&s) : completion_run(&s);
}

/* The prompt becomes the text to read, and the new prompt begins the answer: the model's start token, and --answer-begin. */
static int begin_answer(cli *c) {
    ggl_error err = {0};
    char start[16];
    snprintf(start, sizeof start, "%" PRId32, llm_session_start_token(llm_opened_session(c->ctx)));
    c->encoded = c->prompt;
    c->prompt = (llm_tokens){0};
    const int bad = tool_read_ids(TOOL, "the start token", start, &c->prompt.id, &c->prompt.n);
    c->prompt.cap = c->prompt.n;
    if (bad >= 0)
        return bad;
    return llm_tokenize(llm_opened_tokenizer(c->ctx), c->o.answer_begin, strlen(c->o.answer_begin),
                        LLM_TOKENIZE_SPECIAL, &c->prompt, &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "--answer-begin: %s", err.msg);
}

/* Sets what does not depend on the text. */
static void set_facts(cli *c) {
    size_t n = 0;
    for (int i = 0;
         i < llm_placement_n_backends(llm_opened_placement(c->ctx)) && n < sizeof c->backends;
         i++) {
        const ggl_backend *b = llm_placement_backend(llm_opened_placement(c->ctx), i);
        n += (size_t)snprintf(c->backends + n, sizeof c->backends - n, "%s%s: %s", i ? "; " : "",
                              b->name, b->description);
    }
    c->facts = (record_run){.model = llm_opened_model(c->ctx),
                            .session = llm_opened_session(c->ctx),
                            .params = llm_opened_session_params(c->ctx),
                            .sampling = &c->generation.sampling,
                            .backends = c->backends,
                            .n_predict = c->o.n_predict,
                            .load = c->t_load};
}

/* Refuses flags that are not read, now that it is known whether this is a conversation. */
static int check_use(const cli *c) {
    const char *flag = chat_options_flag(&c->o.chat, &c->o.open),
               *idle = chat_options_idle(&c->o.chat, &c->o.open);
    const llm_arch *arch = llm_model_arch(llm_opened_model(c->ctx));
    if (llm_arch_has_output(arch, "guess") && !llm_arch_has_output(arch, "logits") &&
        !c->o.open.plan)
        return tool_error(TOOL, 1,
                          "the model writes no texts alone: it guesses for another one, -m MODEL "
                          "--draft %s",
                          c->o.open.how.path);
    if (!llm_arch_has_output(arch, "logits") && llm_arch_reads_rows(arch) && !c->o.open.plan)
        return tool_error(TOOL, 1,
                          "the model writes no texts: it makes rows of pictures or sound for one "
                          "that does, -m MODEL --mmproj %s",
                          c->o.open.how.path);
    if (!llm_arch_has_output(arch, "logits") && !c->o.open.plan)
        return tool_error(TOOL, 1,
                          "the model writes no texts: it makes vectors or scores of them "
                          "(llm-embed, llm-server)");
    if (llm_arch_reads_text(arch) && llm_arch_reads_rows(arch) && !c->o.open.plan)
        return tool_error(TOOL, 1,
                          "the model writes down what it hears, and reads no text (llm_transcribe, "
                          "llm-transcribe)");
    const char *media = c->o.image.n > 0 ? "--image" : "--audio";
    if (has_media(c) && !c->o.open.how.params.mmproj && c->o.open.hub.no_eye && !c->o.open.plan)
        return tool_error(TOOL, 2, "%s needs the model's %s, which --no-mmproj leaves out", media,
                          c->o.image.n > 0 ? "eye" : "ear");
    if (has_media(c) && !c->o.open.how.params.mmproj && c->o.open.hub.why_no_eye.msg[0] &&
        !c->o.open.plan)
        return tool_error(TOOL, 1, "%s needs the model's %s, which is not opened: %s", media,
                          c->o.image.n > 0 ? "eye" : "ear", c->o.open.hub.why_no_eye.msg);
    if (has_media(c) && !c->o.open.how.params.mmproj && !c->o.open.plan)
        return tool_error(TOOL, 2,
                          "%s needs the model's %s: --mmproj FILE, the file beside the model's "
                          "that is mostly named mmproj-*.gguf%s",
                          media, c->o.image.n > 0 ? "eye" : "ear",
                          c->o.image.n > 0
                              ? ""
                              : "; `llm-transcribe FILE` writes down what is said, with "
                                "builtin:words or a model such as Whisper (-m)");
    const char *unseen = c->o.tokens ? "--tokens" : diffusion_is(c->ctx) ? "diffusion" : NULL;
    if (has_media(c) && (unseen || c->o.no_special))
        return tool_error(TOOL, 2, "%s and %s cannot be used together", media,
                          unseen ? unseen : "--no-parse-special");
    if ((c->o.encode_tokens || c->o.answer_begin) && !llm_arch_reads_text(arch))
        return tool_error(TOOL, 2,
                          "%s is for models that read a text and write another, and this one "
                          "continues its prompt",
                          c->o.encode_tokens ? "--encode-tokens" : "--answer-begin");
    if (diffusion_is(c->ctx) && c->o.n_predict != 0 && !c->o.open.plan) {
        const int unfit = diffusion_check(&c->o);
        if (unfit >= 0)
            return unfit;
    }
    if (c->o.answer_begin && (c->converses || c->o.chat.interactive))
        return tool_error(TOOL, 2, "--answer-begin is for a text, not for a conversation");
    const char *vain =
        c->o.diffusion_visual ? "--diffusion-visual" : diffusion_options_given(&c->o.diffusion);
    if (!diffusion_is(c->ctx) && vain)
        return tool_error(TOOL, 2,
                          "%s is for models that write by diffusion, and this one writes one token "
                          "after the other",
                          vain);
    if (!c->converses && idle)
        tool_note(TOOL, "%s: a text is continued without reasoning; the flag has no effect", idle);
    if (c->converses && c->o.n_keep != 0)
        return tool_error(TOOL, 2,
                          "--keep is for texts; a conversation always keeps its system message");
    if (!c->converses && flag && !c->o.open.plan)
        return tool_error(TOOL, 2,
                          "%s is for conversations, but standard input is continued as a text; "
                          "-cnv converses, -st answers it",
                          flag);
    return -1;
}

static int run(cli *c) {
    c->t_begin = ggl_os_seconds();
    progress_begin(NULL, 0, "loading %s", c->o.open.how.path ? c->o.open.how.path : "the model");
    int code = open_model(c);
    if (code < 0 && is_prompted(&c->o) &&
        chat_answers_media(&c->o, llm_model_file(llm_opened_model(c->ctx))))
        c->o.chat.single = true;
    c->converses = code < 0 && chat_begins(&c->o, llm_model_file(llm_opened_model(c->ctx)));
    if (code < 0 && diffusion_is(c->ctx)) { /* which writes one text, as an answer if it can chat */
        c->answers = c->converses;
        c->converses = false;
    }
    if (code < 0)
        code = check_use(c);
    if (code < 0 && !c->o.open.plan) /* before the session, which may take long to make */
        code = read_prompt(c);
    if (code < 0)
        code = open_session(c);
    progress_end();
    if (code < 0 && c->o.open.plan)
        return tool_print_plan(c->ctx, c->o.open.plan);
    if (code < 0)
        code = check_lengths(c);
    if (code < 0 && c->o.answer_begin && (code = begin_answer(c)) < 0)
        code = check_lengths(c);
    progress_begin(PROGRESS_BYTES, 0, "loading the draft model");
    if (code < 0)
        code = open_until(c, LLM_OPENED_GUESSES);
    progress_end();
    progress_begin(NULL, 0, "compiling the grammar");
    if (code < 0) {
        sampling_options_resolve(&c->o.sampling, llm_opened_sampling(c->ctx));
        code = cli_generation_open(&c->generation, &c->o, c->ctx);
    }
    progress_end();
    if (code < 0)
        code = open_weights(c);
    if (code < 0 && c->o.choose.n > 0)
        code = choose_run(c->ctx, &c->o, (ggl_str){c->text, c->text_size}, c->converses);
    if (code >= 0)
        return code;
    double looked[2] = {0, 0};
    size_t n_before = 0;
    const bool is_asked =
        c->text || !c->converses; /* else pictures and sounds wait for the first message */
    if (has_media(c) || c->text)
        code = images_show(c->ctx, &c->o.image, &c->o.audio, &c->text, &c->text_size, &n_before,
                           looked);
    if (has_media(c) && code < 0 && is_asked)
        code = tokenize_prompt(c);
    if (code >= 0)
        return code;
    set_facts(c);
    memcpy(c->facts.looked, looked, sizeof looked);
    c->facts.n_pictures = c->o.image.n;
    c->facts.n_sounds = c->o.audio.n;
    if (c->converses || c->o.chat.interactive)
        return converse(c, is_asked);
    if (has_media(c)) { /* what is printed of the prompt: as it was typed */
        memmove(c->text, c->text + n_before, c->text_size + 1 - n_before);
        c->text_size = images_hide(c->text, c->text_size - n_before);
    }
    code = complete(c);
    if (code >= 0)
        return code;
    if (!llm_placement_report(llm_opened_placement(c->ctx), stderr))
        return 1;
    return process_stopped ? process_stop_code() : 0;
}

/* Frees everything but the options. False after a message: the trace could not be written. */
static bool finish(cli *c) {
    ggl_error err = {0};
    cli_generation_close(&c->generation);
    llm_tokens_fini(&c->encoded);
    const bool complete = llm_context_close(c->ctx, &err) == GGL_OK;
    if (!complete)
        (void)tool_error(TOOL, 1, "%s", err.msg);
    adapters_forget(&c->o.open.adapters);
    llm_tokens_fini(&c->prompt);
    free(c->text);
    return complete;
}

/* --- watching a descriptor -------------------------------------------------------------------- */

static bool same_version(const os_stat *a, const os_stat *b) {
    return a->modified == b->modified && a->size == b->size && ggl_os_is_same(a, b);
}

/* Waits until the file is another one. Editors may replace it, so that for a moment there is
 * none. */
static void wait_for_change(const char *path, const os_stat *before) {
    os_stat st;
    while (!process_stopped && (!ggl_os_stat(path, &st) || same_version(&st, before)))
        ggl_os_sleep(100000000);
}

/* Checks every branch of the descriptor, not only those that this model takes. */
static int check_descriptor(const cli *c) {
    ggl_error err = {0};
    char *notes = NULL;
    ggl_status st = llm_arch_check(llm_model_arch(llm_opened_model(c->ctx)), &notes, &err);
    if (notes)
        tool_print_notes(notes);
    ggl_free(notes);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

static int watch(cli *c) {
    const cli_options o = c->o;
    while (!process_stopped) {
        os_stat before = {0};
        (void)ggl_os_stat(o.open.how.params.arch, &before);
        *c = (cli){.o = o};
        if (open_model(c) < 0 && check_descriptor(c) < 0) {
            llm_close(c->ctx);
            c->ctx = NULL;
            run(c);
        }
        (void)finish(c);
        fflush(stdout);
        *c = (cli){.o = o};
        fprintf(stderr, "watching    %s (Ctrl-C ends)\n", o.open.how.params.arch);
        wait_for_change(o.open.how.params.arch, &before);
    }
    return process_stop_code();
}

static bool prompt_is_piped(const cli_options *o) {
    return !o->prompt && !o->prompt_file && !o->tokens && !o->chat.wanted && stdin_is_piped();
}

/* Pictures or sounds: they are there, are not written, and are not what the prompt is read from. */
static int check_media(const cli_options *o, const char *flag, const arg_list *files) {
    int code = -1;
    for (size_t k = 0; k < files->n && code < 0; k++) {
        const tool_path paths[] = {
            {"the prompt", prompt_is_piped(o) ? "-" : NULL, .written = false},
            {"-o", o->output, .written = true},
            {"--logits", o->logits, .written = true},
            {flag, files->s[k], .needed = true},
        };
        code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    }
    return code;
}

static int check_paths(const cli_options *o) {
    const bool is_piped = prompt_is_piped(o);
    const tool_path paths[] = {
        OPEN_PATHS(&o->open),
        {"--arch", o->open.how.params.arch, .needed = !o->watch, .or_name = true},
        {"-f", o->prompt_file, .needed = true},
        {"-sysf", o->chat.system_file, .needed = true},
        {"--tools", o->chat.tools, .needed = true},
        {"the prompt", is_piped ? "-" : NULL, .written = false},
        {"-o", o->output, .written = true},
        {"--logits", o->logits, .written = true},
        {"--prompt-cache", o->saved_prompt.path, .written = !o->saved_prompt.read_only},
    };
    int code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    if (code < 0)
        code = check_media(o, "--image", &o->image);
    return code < 0 ? check_media(o, "--audio", &o->audio) : code;
}

/* A picture without a model is for the built-in one that sees. If nothing was asked of that, the question is what is in the picture, and on a
 * terminal the conversation goes on. */
static void choose_seeing(cli *c) {
    cli_options *o = &c->o;
    chat_options *k = &o->chat;
    llm_opening *how = &o->open.how;
    const hub_options *hub = &o->open.hub;
    static const char seeing[] = "builtin:shapes";
    c->shows = o->image.n > 0 && (!how->path || strcmp(how->path, seeing) == 0) &&
               !how->params.mmproj && !hub->repo && !hub->url && !hub->cache_list &&
               !how->params.arch;
    if (!c->shows)
        return;
    if (!how->path)
        tool_note(TOOL,
                  "no model is named (-m), so %s looks at the picture: it knows coloured shapes "
                  "alone",
                  seeing);
    how->path = seeing;
    if (k->wanted || k->single || k->refused || k->interactive || o->tokens || is_prompted(o))
        return;
    k->wanted = terminal_is_there();
    o->prompt = QUESTION;
}

/* Downloads the models that were given by name. The paths are checked before, so that a wrong one shows at once, and again now
 * that the models' are known. */
static int get_models(cli *c) {
    cli_options *o = &c->o;
    choose_seeing(c);
    const int code = open_options_get_models(TOOL, &o->open, true);
    return code < 0 && (o->open.hub.path[0] || o->open.hub.path[1]) ? check_paths(o) : code;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    cli c = {0};
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = cli_options_read(&c.o, argc, argv);
    if (code < 0 && c.o.list_devices) {
        placement_list(stdout);
        code = 0;
    }
    if (code < 0)
        code = check_paths(&c.o);
    if (code < 0)
        code = process_set_cpus(TOOL, c.o.open.cpu_mask);
    if (code >= 0) {
        cli_options_fini(&c.o);
        return tool_finish(TOOL, code);
    }
    process_set_priority(TOOL, c.o.open.priority);
    process_wait_for_stop();
    code = get_models(&c);
    if (code < 0)
        code = c.o.watch ? watch(&c) : run(&c);
    if (!finish(&c))
        code = code ? code : 1;
    cli_options_fini(&c.o);
    return tool_finish(TOOL, code);
}
