#include "open_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "llm/internal/pooling.h"
#include "load.h"
#include "open_context.h"
#include "open_template.h"
#include "placement_text.h"
#include "process.h"
#include "reasoning.h"

_Static_assert((int)ARG_TYPED == (int)LLM_OPEN_TYPED, "a spelling has the same room in both");

static const char *const tool_poolings[] = {LLM_POOLING_NAMES, NULL};

open_options open_options_default(void) {
    enum { BATCH = 2048 };
    return (open_options){.how = tool_opening(NULL), .n_batch = BATCH, .reasoning_budget = -1};
}

/* --- the table -------------------------------------------------------------------------------- */

/* Kinds of rows for args_parse, and where the values of an option with a member go. */
#define KIND_BOOL              ARG_FLAG
#define KIND_OFF               ARG_UNFLAG
#define KIND_INT               ARG_INT
#define KIND_FLOAT             ARG_FLOAT
#define KIND_TEXT              ARG_STRING
#define KIND_PATH              ARG_STRING
#define KIND_MAYBE             ARG_MAYBE
#define KIND_WORD              ARG_WORD
#define KIND_CHOICE            ARG_CHOICE
#define KIND_LIST              ARG_LIST
#define KIND_TEXTS             ARG_LIST
#define KIND_LORAS             ARG_LIST
#define KIND_CALL              ARG_FLAG
#define MEMBER(member)         (void *)&o->how.params.member
#define PLACE_BOOL             MEMBER
#define PLACE_INT              MEMBER
#define PLACE_FLOAT            MEMBER
#define PLACE_TEXT             MEMBER
#define PLACE_PATH             MEMBER
#define PLACE_MAYBE            MEMBER
#define PLACE_WORD             MEMBER
#define PLACE_CALL(member)     NULL
#define PLACE_LORAS(member)    LIST_OF_##member
#define LIST_OF_adapter        &o->adapters.of_lora.plain
#define LIST_OF_control_vector &o->adapters.of_control.plain
#define PLACE_TEXTS(member)    LIST_OF_##member
#define LIST_OF_place          &o->place
#define LIST_OF_override       &o->overrides.given
#define LIST_OF_ignore_key     &o->ignore.keys /* as many as llm_open_params has */
#define LIST_OF_ignore_tensor  &o->ignore.tensors

void open_options_table(arg_option table[OPEN_MOST_ROWS], const arg_option *own, unsigned program,
                        open_options *o) {
    const struct {
        unsigned programs;
        const char *theme;
        arg_option row;
    } rows[] = {
#define OPEN_PARAM(kind, member, part, least, most, beside, unset, python, otherwise, what, theme, \
                   programs, flag, also, value_, ...)                                              \
    {programs,                                                                                     \
     "@" #theme,                                                                                   \
     {flag " " also, KIND_##kind, PLACE_##kind(member), .value = value_, .min = (double)(least),   \
      .max = (double)(most), .typed = o->typed[LLM_OPEN_##member], __VA_ARGS__}},
#define OPEN_OWN(kind, id, place, theme, programs, flag, also, value_, least, most, ...)           \
    {programs,                                                                                     \
     "@" #theme,                                                                                   \
     {flag " " also, KIND_##kind, (void *)&o->place, .value = value_, .min = least, .max = most,   \
      .typed = o->typed[LLM_OPEN_##id], __VA_ARGS__}},
#define OPEN_ALSO OPEN_OWN
#include "open_params.def"
    };
    size_t n = 0;
    for (; arg_is_row(own) && n < OPEN_MOST_ROWS - 1; own++) {
        if (!own->names || *own->names != '@')
            table[n++] = *own;
        for (size_t i = 0; i < sizeof rows / sizeof *rows && n < OPEN_MOST_ROWS - 1; i++)
            if (own->names && strcmp(own->names, rows[i].theme) == 0 && rows[i].programs & program)
                table[n++] = rows[i].row;
    }
    table[n] = (arg_option){0};
}

/* --- checks ----------------------------------------------------------------------------------- */

const char *open_options_draft(const open_options *o) {
    const char *draft = o->how.params.draft;
    return draft && *draft ? draft : NULL;
}

const char *open_options_trace(const open_options *o) {
    const char *path = getenv("GGL_TRACE"), *device = o->how.params.device;
    if (o->how.trace || !device || !strstr(device, "trace"))
        return o->how.trace;
    return path && *path ? path : "trace.json";
}

const char *open_options_repack_cache(const open_options *o) {
    const char *cache = o->how.params.repack_cache;
    return cache && *cache ? cache : NULL;
}

/* Options that are for guesses, or for those of another model. */
static int check_draft(const char *tool, const open_options *o) {
    static const struct {
        llm_open_param k;
        bool needs_draft;
    } rows[] = {{LLM_OPEN_n_guess, false},          {LLM_OPEN_draft_n_min, false},
                {LLM_OPEN_guess_always, false},     {LLM_OPEN_draft_p_min, true},
                {LLM_OPEN_draft_n_ctx, true},       {LLM_OPEN_draft_device, true},
                {LLM_OPEN_draft_n_gpu_layers, true}};
    const char *draft = o->how.params.draft;
    const bool has_draft = draft || o->hub.repo_draft;
    if (draft && o->hub.repo_draft)
        return tool_error(tool, 2, "--draft%s and -hfd cannot be used together",
                          *draft ? "" : " without a model");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (*o->typed[rows[i].k] && !has_draft && (rows[i].needs_draft || !o->how.params.lookup))
            return tool_error(tool, 2, "%s needs %s--draft", o->typed[rows[i].k],
                              rows[i].needs_draft ? "" : "--lookup or ");
    if (draft && *draft && draft[strspn(draft, "0123456789")] == 0 && !ggl_os_exists(draft))
        return tool_error(
            tool, 2,
            "--draft %s: this flag names the draft model; --draft-max sets the number "
            "of guesses",
            draft);
    return -1;
}

/* What the library would refuse. has_eye: as if there were one. */
static int check_all(const char *tool, open_options *o, bool has_eye) {
    ggl_error err = {0};
    llm_opening how = open_options_opening(o);
    if (!how.params.draft)
        how.params.draft = o->hub.repo_draft;
    if (has_eye && !how.params.mmproj)
        how.params.mmproj = "";
    return llm_open_check(&how, &err) == GGL_OK ? -1 : tool_error(tool, 2, "%s", err.msg);
}

int open_options_check(const char *tool, open_options *o, bool finds_eye) {
    int code = tool_check_plan(tool, o->plan);
    if (code < 0)
        code = check_draft(tool, o);
    if (code < 0)
        code = overrides_read(tool, &o->overrides);
    if (code < 0 && o->how.params.chat_template && o->template_file)
        code =
            tool_error(tool, 2, "--chat-template and --chat-template-file cannot be used together");
    o->hub.arch = o->how.params.arch;
    return code < 0 ? check_all(tool, o, finds_eye) : code;
}

void open_options_limit_batch(open_options *o) {
    enum { UBATCH = 512 };
    int64_t *n = &o->how.params.n_ubatch;
    if (o->n_batch < (*n > 0 ? *n : UBATCH))
        *n = o->n_batch;
}

int open_options_get_model(const char *tool, open_options *o, int (*check)(const void *ctx),
                           const void *ctx) {
    int code = check(ctx);
    if (code < 0)
        code = tool_hub_get(tool, &o->hub, &o->how.path);
    return code < 0 && o->hub.path[0] ? check(ctx) : code;
}

int open_options_get_models(const char *tool, open_options *o, bool is_whole) {
    llm_open_params *p = &o->how.params;
    int code = -1;
    if (!o->hub.path[0])
        code = tool_hub_get_seeing(tool, &o->hub, &o->how.path, &p->mmproj);
    if (code < 0 && is_whole)
        code = check_all(tool, o, false);
    if (code < 0 && !o->hub.path[1] && !p->draft)
        code = tool_hub_get_draft(tool, &o->hub, &p->draft);
    return code;
}

/* --- opening ---------------------------------------------------------------------------------- */

bool open_options_names_template(const open_options *o) {
    return o->template_file || o->how.params.chat_template;
}

int open_options_open_chat(const char *tool, const open_options *o, llm_context *c, int reasoning,
                           ggl_status *st, ggl_error *err) {
    enum { MOST_TEMPLATE = 4 << 20 };
    const template_choice choice = {o->template_file, o->how.params.chat_template, MOST_TEMPLATE};
    const template_settings settings = {.reasoning = reasoning,
                                        .budget = o->reasoning_budget,
                                        .variables = o->template_vars,
                                        .no_bos = o->how.params.no_chat_bos,
                                        .parses_special = o->how.params.parse_special_in_messages};
    llm_chat *chat = NULL;
    const int code = tool_open_template(&chat, tool, &choice, llm_model_file(llm_opened_model(c)),
                                        llm_opened_tokenizer(c), st, err);
    llm_opened_set_chat(c, chat);
    return code < 0 && *st == GGL_OK ? tool_set_template(chat, tool, &settings) : code;
}

static void print_note(void *unused, const char *text) {
    (void)unused;
    tool_note(NULL, "%s", text);
}

static void print_measured(void *unused, const char *text) {
    (void)unused;
    tool_say(NULL, "%s", text);
}

llm_opening open_options_opening(open_options *o) {
    llm_opening how = o->how;
    how.typed = (const char(*)[LLM_OPEN_TYPED])o->typed;
    ignore_give(&o->ignore, &how.params);
    how.params.override = o->overrides.text;
    how.params.n_override = o->overrides.n;
    how.params.place = o->place.s;
    how.params.n_place = o->place.n;
    how.place_regex = (place_rule_texts){o->place_regex.s, o->place_regex.n};
    how.mmproj_came = how.mmproj_came || o->hub.eye_came;
    how.why_no_eye = o->hub.why_no_eye.msg[0] ? o->hub.why_no_eye.msg : NULL;
    how.params.user = (void *)(uintptr_t)how.path; /* of tool_load_note */
    how.placement_note = print_note;
    how.measured = print_measured;
    how.placed = placement_say;
    how.cancelled = process_is_stopped;
    return how;
}

void open_options_fini(open_options *o) {
    args_list_fini(&o->place);
    args_list_fini(&o->place_regex);
    ignore_fini(&o->ignore);
    overrides_fini(&o->overrides);
    adapters_fini(&o->adapters);
    tool_hub_fini(&o->hub);
}
