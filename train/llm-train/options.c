/* The command line of llm-train. */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/units.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "llm/internal/pooling.h"
#include "new.h"

static const char *const optimizers[] = {"adamw", "sgd", "muon", NULL};
static const char *const bits[] = {"32", "8", NULL};
static const char *const poolings[] = {LLM_POOLING_NAMES, NULL};
static const char *const schedules[] = {"cosine", "linear", "constant", NULL};

/* Returns the file that is named like a model, which was meant with -m; NULL: none. */
static const char *model_among(const arg_list *files) {
    for (size_t i = 0; i < files->n; i++)
        if (ggl_ends_with(files->s[i], ".gguf") || strncmp(files->s[i], "builtin:", 8) == 0)
            return files->s[i];
    return NULL;
}

/* Returns what is wrong with the options; NULL: nothing. */
static const char *wrong_options(const train_options *o) {
    if (o->files.n == 0)
        return "which FILE to learn from? --help tells more";
    if (!o->model)
        return "-m MODEL is missing, as in: -m model.gguf; -m builtin:chat to try it";
    if ((o->record || o->record_top) && !o->teacher)
        return "--record writes what a teacher says: it needs --teacher MODEL";
    if (o->record_top && !o->record)
        return "--record-top is of --record FILE";
    if (!o->out && !o->plan && !o->record)
        return "-o FILE is missing: where the result is written";
    if (o->adapter && o->lora)
        return "--lora begins a new adapter, and --adapter goes on with one: only one of the two "
               "can be given";
    if ((o->rank || o->alpha != 0 || o->matrix.n || o->rs || o->dora) && !o->lora)
        return "--rank, --alpha, --rslora, --dora and --matrix are of a new adapter: they need "
               "--lora";
    if (o->round_to && (o->lora || o->adapter))
        return "--qat is for models that learn: an adapter's matrices stay f32";
    if (o->round_to && o->f32)
        return "--qat writes the rounded type, and --f32 does not: only one of the two can be "
               "given";
    if (o->round_to && o->bf16)
        return "--qat and --bf16 both say what products read: only one of the two can be given";
    if (o->no_valid && (o->valid.n || o->valid_share != 0))
        return "--no-valid leaves nothing to measure: it cannot be given with --valid or "
               "--valid-share";
    if (o->no_valid && o->valid_max)
        return "--no-valid leaves nothing to measure: it cannot be given with --valid-max";
    if (o->valid.n && o->valid_share != 0)
        return "--valid has what is measured; --valid-share takes it from what is learned: only "
               "one of the two can be given";
    if ((o->best || o->patience) && o->no_valid)
        return "--best and --patience go by measurements, which --no-valid turns off";
    if (o->mmproj_out && !o->mmproj)
        return "--mmproj-out is the file for what learned of --mmproj FILE, which is missing";
    if (o->mmproj_out && (o->lora || o->adapter))
        return "--mmproj-out is for eyes and ears that learn: beside an adapter their file stays "
               "as it is";
    if (o->mmproj_out && !o->out)
        return "--mmproj-out is written whenever -o FILE is, which is missing";
    if (o->resume && !o->out)
        return "--resume needs -o FILE: the training is saved beside it";
    if (!o->teacher &&
        ((o->teacher_share != 0 && !o->draft && !o->draft_model) || o->teacher_temp != 0))
        return "--teacher-share and --teacher-temp need --teacher MODEL";
    if ((o->draft || o->draft_model) && (o->lora || o->adapter || o->teacher))
        return "--draft lets layers that guess learn what their own model says: not with --lora, "
               "--adapter or --teacher";
    if (o->draft_depth && !o->draft && !o->draft_model)
        return "--draft-depth is of layers that guess: it needs --draft";
    if (o->n_steps && (o->minutes != 0 || o->epochs != 0))
        return "--steps, --epochs and --minutes all say when it ends: only one can be given";
    if (o->minutes != 0 && o->epochs != 0)
        return "--epochs and --minutes both say when it ends: only one can be given";
    return NULL;
}

/* A device or a pipe has no state beside it. */
static bool name_save(train_options *o) {
    os_stat s;
    if (!o->out || (ggl_os_stat(o->out, &s) && s.kind != OS_FILE))
        return true;
    const size_t size = strlen(o->out) + sizeof ".train";
    o->save = ggl_calloc(size, 1);
    if (o->save)
        snprintf(o->save, size, "%s.train", o->out);
    return o->save != NULL;
}

static int check_paths(const train_options *o) {
    tool_path *paths = ggl_calloc(o->files.n + o->valid.n + 11, sizeof *paths);
    size_t n = 0;
    if (!paths)
        return tool_error(TOOL, 1, "out of memory");
    paths[n++] = (tool_path){"-m", o->model, .needed = true, .model = true};
    if (o->teacher)
        paths[n++] = (tool_path){"--teacher", o->teacher, .needed = true, .model = true};
    if (o->draft_model)
        paths[n++] = (tool_path){"--model-draft", o->draft_model, .needed = true, .model = true};
    if (o->mmproj)
        paths[n++] = (tool_path){"--mmproj", o->mmproj, .needed = true, .model = true};
    if (o->mmproj_out)
        paths[n++] = (tool_path){"--mmproj-out", o->mmproj_out, .written = true};
    if (o->arch && ggl_os_exists(o->arch))
        paths[n++] = (tool_path){"--arch", o->arch, .needed = true};
    if (o->adapter)
        paths[n++] = (tool_path){"--adapter", o->adapter, .needed = true};
    for (size_t i = 0; i < o->files.n; i++)
        paths[n++] = (tool_path){"FILE", o->files.s[i], .needed = true};
    for (size_t i = 0; i < o->valid.n; i++)
        paths[n++] = (tool_path){"--valid", o->valid.s[i], .needed = true};
    if (o->out)
        paths[n++] = (tool_path){"-o", o->out, .written = true};
    if (o->save)
        paths[n++] = (tool_path){"the state beside -o", o->save, .written = true};
    if (o->record && !o->plan)
        paths[n++] = (tool_path){"--record", o->record, .written = true};
    if (o->svg)
        paths[n++] = (tool_path){"--svg", o->svg, .written = true};
    if (o->log)
        paths[n++] = (tool_path){"--log", o->log, .written = true};
    const int code = tool_check_paths(TOOL, paths, n);
    ggl_free(paths);
    return code;
}

/* Reads the numbers of --dims. */
static int read_dims(train_options *o) {
    o->dim = ggl_calloc(o->dims.n + 1, sizeof *o->dim);
    if (!o->dim)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < o->dims.n; i++) {
        char *end;
        const long long n = strtoll(o->dims.s[i], &end, 10);
        if (n < 1 || *end || end == o->dims.s[i])
            return tool_error(TOOL, 2, "--dims %s: a number of dimensions is needed, such as 256",
                              o->dims.s[i]);
        o->dim[i] = n;
    }
    return -1;
}

enum { MOST_TEMPLATE = 1 << 20 }; /* bytes */

/* Reads the template if it is a file, in place of its name. */
static int read_template(train_options *o) {
    size_t n;
    if (!o->chat_template || !ggl_os_exists(o->chat_template))
        return -1;
    o->template_text = tool_read_text(TOOL, o->chat_template, MOST_TEMPLATE, &n);
    if (!o->template_text)
        return 1;
    if (memchr(o->template_text, 0, n))
        return tool_error(TOOL, 1, "--chat-template %s: this is no text", o->chat_template);
    o->chat_template = o->template_text;
    return -1;
}

int train_options_read(train_options *o, int argc, char **argv) {
    *o = (train_options){.n_sample = 64, .pooling = -1};
    const arg_option table[] = {
        {NULL, .help = "model and result"},
        {"-m --model", ARG_STRING, &o->model, .value = "MODEL",
         .help = "what learns: a GGUF file, a Hugging Face folder, builtin:stories or builtin:chat "
                 "(required, or -hf or -mu)"},
        HUB_OPTIONS(o->hub),
        {"-o --output", ARG_STRING, &o->out, .value = "OUT",
         .help = "GGUF file to write (required): the model, or with --lora the adapter"},
        {"-mm --mmproj", ARG_STRING, &o->mmproj, .value = "FILE",
         .help = "the model's eye or ear: conversations may have pictures or sounds"},
        {"--mmproj-out", ARG_STRING, &o->mmproj_out, .value = "FILE",
         .help = "GGUF file to write for the eye or the ear (required if weights of it learn, as "
                 "they do without --lora and --learn)"},
        {"--f32", ARG_FLAG, &o->f32,
         .help = "write what learned as f32 (default: in the types of the model's file)"},
        {"--arch", ARG_STRING, &o->arch, .value = "FILE|NAME",
         .help = "the descriptor (default: by the model's file)"},
        {"--lora", ARG_FLAG, &o->lora,
         .help = "learn an adapter, beside a model of any type that stays as it is"},
        {"--rank", ARG_INT, &o->rank, .value = "N", .help = "of the adapter (default: 16)",
         .min = 1, .max = 65536},
        {"--alpha", ARG_FLOAT, &o->alpha, .value = "X",
         .help = "of the adapter: its change counts X / rank times (default: twice the rank)",
         .min = 1e-6, .max = 1e6},
        {"--rslora", ARG_FLAG, &o->rs,
         .help = "its change counts alpha / sqrt(rank) times: for high ranks"},
        {"--dora", ARG_FLAG, &o->dora,
         .help = "it also learns the length of each row that it changes, apart from its direction "
                 "(DoRA)"},
        {"--matrix", ARG_LIST, &o->matrix, .value = "PATTERN",
         .help = "what the adapter changes, such as 'blk.*.attn_q.weight', or 'v.blk.*' of an eye; "
                 "can be repeated (default: all matrices of the model's layers)"},
        {"--adapter", ARG_STRING, &o->adapter, .value = "FILE",
         .help = "go on with this adapter, in place of a new one"},
        {"--qat", ARG_STRING, &o->round_to, .value = "TYPE",
         .help = "compute with the matrices rounded to a type, such as q4_0, while they learn, and "
                 "write them so"},
        {"--draft", ARG_FLAG, &o->draft,
         .help = "only the layers that guess tokens ahead learn (llm-cli --draft uses them): the "
                 "probabilities that the model itself gives, on any texts"},
        {"-md --model-draft", ARG_STRING, &o->draft_model, .value = "MODEL",
         .help = "let this model learn so, which guesses for -m from rows of its layers (EAGLE)"},
        {"--draft-depth", ARG_INT, &o->draft_depth, .value = "N",
         .help =
             "guesses in a chain, each of which goes on from the one before (default: 2, or one "
             "of each layer)",
         .min = 1, .max = 16},
        {"--learn", ARG_LIST, &o->learn, .value = "PATTERN",
         .help = "which weights learn, by name, such as 'blk.*'; can be repeated (default: all)"},
        {NULL, .help = "what it learns from (docs/training-data.md)"},
        {"--valid", ARG_LIST, &o->valid, .value = "FILE",
         .help = "measure the loss on this file, too; can be repeated"},
        {"--valid-share", ARG_FLOAT, &o->valid_share, .value = "X",
         .help = "measure it on this share of the files, and do not learn that (default: 0.05, of "
                 "at least 20 and for at most 64 documents or conversations)",
         .min = 1e-6, .max = 0.9},
        {"--valid-max", ARG_INT, &o->valid_max, .value = "N",
         .help = "most tokens of a measurement (default: so many that ten of them take about a "
                 "tenth of the time; -1: all)",
         .min = -1, .max = INT64_C(1) << 40},
        {"--no-valid", ARG_FLAG, &o->no_valid, .help = "learn all, and measure nothing"},
        {"--separator", ARG_STRING, &o->separator, .value = "TEXT",
         .help = "what separates the documents of a text file (default: a file is one document)"},
        {"--all-tokens", ARG_FLAG, &o->all_tokens,
         .help = "learn all of a conversation, not only the answers"},
        {"--drop-long", ARG_FLAG, &o->drop_long,
         .help = "leave out conversations longer than the context (default: cut them)"},
        {"--chat-template", ARG_STRING, &o->chat_template, .value = "FILE|NAME",
         .help = "template for conversations (default: the model's)"},
        {NULL, .help = "steps"},
        {"-c --ctx-size", ARG_INT, &o->n_ctx, .value = "N",
         .help = "most tokens of a text (default: the model's context, at most 1024)", .min = 2,
         .max = 1 << 24},
        {"-b --batch-size", ARG_INT, &o->n_batch, .value = "N",
         .help = "most tokens of a step (default: 2048; 16384 of texts that belong together)",
         .min = 1, .max = 1 << 24},
        {"--sequences", ARG_INT, &o->n_seq, .value = "N",
         .help = "most texts of a step (default: 8 conversations, answers or pairs, 32 groups of "
                 "texts that belong together; else as many as -b has room for)",
         .min = 1, .max = 1 << 24},
        {"-ub --ubatch-size", ARG_INT, &o->n_ubatch, .value = "N",
         .help = "tokens computed at once: more is faster, and takes more memory (default: 512)",
         .min = 1, .max = 1 << 24},
        {"--epochs", ARG_FLOAT, &o->epochs, .value = "X",
         .help = "how often it learns all (default: 3 times conversations, else once)", .min = 1e-6,
         .max = 1e6},
        {"--steps", ARG_INT, &o->n_steps, .value = "N", .help = "end after N steps", .min = 1,
         .max = 1 << 30},
        {"--minutes", ARG_FLOAT, &o->minutes, .value = "X",
         .help = "end after X minutes; the rate falls accordingly", .min = 1e-3, .max = 1e6},
        {"-lr --learning-rate --lr", ARG_FLOAT, &o->rate, .value = "X",
         .help = "the largest rate (default: by the model's size, 2e-4 with --lora and 2e-5 "
                 "without for "
                 "a billion weights, more for fewer; of preferences a tenth)",
         .min = 1e-12, .max = 100},
        {"--optimizer", ARG_CHOICE, &o->optimizer, .value = "NAME", .choices = optimizers,
         .help = "adamw (default), sgd (with momentum), muon (of the matrices of layers, adamw of "
                 "the rest)"},
        {"--optimizer-bits", ARG_CHOICE, &o->optimizer_bits, .value = "N", .choices = bits,
         .help = "of what it remembers of each number of a matrix: 32 (default), or 8, which needs "
                 "10 bytes for each weight in place of 16"},
        {"--bf16", ARG_FLAG, &o->bf16,
         .help = "compute products in bf16, with sums in f32: faster on processors with AVX-512 "
                 "BF16; what learns stays f32"},
        {"--schedule", ARG_CHOICE, &o->schedule, .value = "NAME", .choices = schedules,
         .help = "how the rate falls: cosine (default), linear, constant"},
        {"--lr-end", ARG_FLOAT, &o->rate_end, .value = "X",
         .help = "the share of the rate that is left at the end (default: 0)", .max = 1},
        {"--hold", ARG_FLOAT, &o->rate_hold, .value = "X",
         .help = "the share of the steps in which the rate stays at its largest before it falls "
                 "(default: 0)",
         .max = 0.999},
        {"--warmup", ARG_INT, &o->n_warmup, .value = "N",
         .help = "steps in which the rate grows (default: a thirtieth; -1: none)", .min = -1,
         .max = 1 << 30},
        {"--max-norm", ARG_FLOAT, &o->max_norm, .value = "X",
         .help = "the longest gradient (default: 1; -1: any)", .min = -1, .max = 1e9},
        {"--decay -wd", ARG_FLOAT, &o->decay, .value = "X",
         .help = "of matrices, for each step and times the rate (default: 0)", .max = 100},
        {"--beta1", ARG_FLOAT, &o->beta1, .value = "X",
         .help = "of AdamW, and the momentum of others (default: 0.9; of muon 0.95)",
         .max = 0.9999999},
        {"--beta2", ARG_FLOAT, &o->beta2, .value = "X", .help = "of AdamW (default: 0.999)",
         .max = 0.9999999},
        {"--eps", ARG_FLOAT, &o->eps, .value = "X", .help = "of AdamW (default: 1e-8)",
         .min = 1e-30, .max = 1},
        {"-s --seed", ARG_UINT64, &o->seed, .value = "N",
         .help = "of the order and of a new adapter (default: 0)"},
        {NULL, .help = "preferences and teachers"},
        {"--dpo-beta", ARG_FLOAT, &o->dpo_beta, .value = "X",
         .help = "of preferences: more keeps the model nearer to what it was (default: 0.1)",
         .min = 1e-6, .max = 1000},
        {"--teacher", ARG_STRING, &o->teacher, .value = "MODEL",
         .help =
             "learn the probabilities of this model, which has the same tokens; or of a file of "
             "--record"},
        {"--teacher-share", ARG_FLOAT, &o->teacher_share, .value = "X",
         .help =
             "how much they count, or with --draft the model's own; the rest is the text itself "
             "(default: 1)",
         .min = 1e-6, .max = 1},
        {"--teacher-temp", ARG_FLOAT, &o->teacher_temp, .value = "X",
         .help = "their temperature (default: 1)", .min = 1e-3, .max = 1000},
        {"--record", ARG_STRING, &o->record, .value = "FILE",
         .help = "write what the teacher says to FILE before the first step, and learn from that; "
                 "without -o, only write it"},
        {"--record-top", ARG_INT, &o->record_top, .value = "N",
         .help = "the likeliest tokens that are written after each token (default: 32)", .min = 1,
         .max = 1 << 20},
        {NULL, .help = "texts that belong together: embedding models and rerankers"},
        {"--contrast-temp", ARG_FLOAT, &o->contrast_temp, .value = "X",
         .help = "what similarities are divided by: less tells near texts apart more sharply "
                 "(default: 0.05)",
         .min = 1e-4, .max = 1000},
        {"--dims", ARG_LIST, &o->dims, .value = "N",
         .help = "vectors cut to N numbers shall be good, too (Matryoshka); can be repeated"},
        {"--pooling", ARG_CHOICE, &o->pooling, .value = "NAME", .choices = poolings,
         .help =
             "mean, last or cls: how vectors of tokens become one; none: each keeps its own, which "
             "no loss reads; rank: a reranker's scores (default: as the model's file says)"},
        {NULL, .help = "checkpoints"},
        {"--resume", ARG_FLAG, &o->resume,
         .help =
             "go on from OUT.train, which an interrupted training leaves; begin if there is none"},
        {"--save-minutes", ARG_FLOAT, &o->save_minutes, .value = "X",
         .help = "write OUT and OUT.train after so many minutes (default: 5)", .min = 1e-3,
         .max = 1e6},
        {"--save-every", ARG_INT, &o->save_every, .value = "N", .help = "or after so many steps",
         .min = 1, .max = 1 << 30},
        {"--valid-every", ARG_INT, &o->valid_every, .value = "N",
         .help = "measure after so many steps (default: ten times; -1: only at the end)", .min = -1,
         .max = 1 << 30},
        {"--best", ARG_FLAG, &o->best, .help = "write OUT when it is better than ever before"},
        {"--patience", ARG_INT, &o->patience, .value = "N",
         .help = "end after N measurements that are no better", .min = 1, .max = 1 << 20},
        {NULL, .help = "what is shown"},
        {"--sample", ARG_LIST, &o->samples, .value = "TEXT",
         .help = "answer this (or, without a chat template, continue it) whenever OUT is written, "
                 "without pictures and sounds; can be repeated"},
        {"--sample-tokens", ARG_INT, &o->n_sample, .value = "N",
         .help = "tokens of a sample (default: 64)", .min = 1, .max = 65536},
        {"--log", ARG_STRING, &o->log, .value = "FILE",
         .help = "write what each step reports, a JSON object in a line"},
        {"--svg --plot", ARG_STRING, &o->svg, .value = "FILE", .help = "draw the losses, as SVG"},
        {"--plan", ARG_FLAG, &o->plan,
         .help = "print what would learn from what, and in how much memory, and exit"},
        {NULL, .help = "machine"},
        {"--memory", ARG_STRING, &o->memory, .value = "SIZE",
         .help = "most memory for values that gradients need, such as 2G: the rest is computed "
                 "again (default: any)"},
        {"--parts", ARG_INT, &o->n_parts, .value = "N",
         .help =
             "of a step, which the ranks of mpirun share: as many parts give the same bits with "
             "any number of ranks (default: one for each rank)",
         .min = 1, .max = 1 << 16},
        {"-t --threads", ARG_INT, &o->n_threads, .value = "N",
         .help = "threads (default: the number of cores); the result is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-train -m model.gguf --lora chats.jsonl -o style.gguf",
         "an adapter that answers as the conversations do"},
        {"llm-train -m small.gguf texts.txt -o learned.gguf --minutes 30",
         "a model goes on learning for half an hour"},
        {"llm-train -m small.gguf --teacher large.gguf texts.txt -o learned.gguf",
         "it learns what a larger model says"},
        {"llm-train -m model.gguf --lora better.jsonl -o better.gguf",
         "lines with prompt, chosen and rejected: which answers are better (DPO)"},
        {"llm-train -m model.gguf --draft texts.txt -o faster.gguf",
         "layers of the model that guess ahead, for llm-cli --draft"},
        {"llm-train -m model.gguf --mmproj mmproj.gguf --lora talks.jsonl -o style.gguf",
         "conversations with pictures or sounds"},
        {"llm-train -m listener.gguf speech.jsonl -o learned.gguf",
         "lines with audio and text: a model that writes down speech"},
        {"llm-train -m embedder.gguf pairs.jsonl -o tuned.gguf",
         "lines with query, positive and negative: an embedding model, or a reranker"},
        {0}};
    const args_spec spec = {TOOL,
                            "-m MODEL FILE.. -o OUT [options]",
                            "Lets a model learn: from texts, conversations, preferences, or a "
                            "larger model. The same command gives the same bits, with any number "
                            "of threads, and also if it was interrupted.",
                            table,
                            &o->files,
                            .hints = &train_hints,
                            .examples = examples,
                            .commands = train_commands};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = tool_hub_get(TOOL, &o->hub, &o->model);
    const char *meant = code < 0 && !o->model ? model_among(&o->files) : NULL;
    if (meant)
        code = tool_error_about(TOOL, 2, "-m MODEL is missing; did you mean -m '%s'?", meant);
    const char *wrong = code < 0 ? wrong_options(o) : NULL;
    double bytes = 0;
    if (wrong)
        code = tool_error(TOOL, 2, "%s", wrong);
    if (code < 0 && o->memory &&
        !tool_read_unit(o->memory, strlen(o->memory), tool_unit_bytes, &bytes))
        code = tool_error(TOOL, 2, "--memory %s: a number of bytes is needed, such as 512M or 2G",
                          o->memory);
    o->memory_bytes = (size_t)bytes;
    if (code < 0)
        code = read_dims(o);
    if (code < 0)
        code = read_template(o);
    if (code < 0 && !name_save(o))
        code = tool_error(TOOL, 1, "out of memory");
    return code < 0 ? check_paths(o) : code;
}

void train_options_fini(train_options *o) {
    args_list_fini(&o->files);
    args_list_fini(&o->valid);
    args_list_fini(&o->matrix);
    args_list_fini(&o->learn);
    args_list_fini(&o->samples);
    args_list_fini(&o->dims);
    ggl_free(o->dim);
    free(o->template_text);
    tool_hub_fini(&o->hub);
    ggl_free(o->save);
}

llm_training_params train_params_of(const train_options *o) {
    return (llm_training_params){.size = sizeof(llm_training_params),
                                 .file = o->files.s,
                                 .n_files = o->files.n,
                                 .valid_file = o->valid.s,
                                 .n_valid_files = o->valid.n,
                                 .valid_share = o->no_valid ? -1 : o->valid_share,
                                 .valid_max = o->valid_max,
                                 .separator = o->separator,
                                 .all_tokens = o->all_tokens,
                                 .drop_long = o->drop_long,
                                 .chat_template = o->chat_template,
                                 .arch = o->arch,
                                 .lora = o->lora,
                                 .rank = o->rank,
                                 .alpha = o->alpha,
                                 .rs = o->rs,
                                 .dora = o->dora,
                                 .round_to = o->round_to,
                                 .matrix = o->matrix.s,
                                 .n_matrices = o->matrix.n,
                                 .adapter = o->adapter,
                                 .draft = o->draft,
                                 .draft_depth = o->draft_depth,
                                 .draft_model = o->draft_model,
                                 .learn = o->learn.s,
                                 .n_learn = o->learn.n,
                                 .n_ctx = o->n_ctx,
                                 .n_batch = o->n_batch,
                                 .n_seq = o->n_seq,
                                 .n_ubatch = o->n_ubatch,
                                 .n_steps = o->n_steps,
                                 .n_epochs = o->epochs,
                                 .minutes = o->minutes,
                                 .rate = o->rate,
                                 .optimizer = optimizers[o->optimizer],
                                 .optimizer_bits = o->optimizer_bits == 1 ? 8 : 32,
                                 .bf16 = o->bf16,
                                 .schedule = schedules[o->schedule],
                                 .rate_end = o->rate_end,
                                 .rate_hold = o->rate_hold,
                                 .n_warmup = o->n_warmup,
                                 .n_parts = o->n_parts,
                                 .beta1 = o->beta1,
                                 .beta2 = o->beta2,
                                 .eps = o->eps,
                                 .decay = o->decay,
                                 .max_norm = o->max_norm,
                                 .seed = o->seed,
                                 .memory = o->memory_bytes,
                                 .n_threads = (int32_t)o->n_threads,
                                 .dpo_beta = o->dpo_beta,
                                 .teacher = o->teacher,
                                 .teacher_share = o->teacher_share,
                                 .teacher_temp = o->teacher_temp,
                                 .record = o->plan ? NULL : o->record,
                                 .record_top = o->record_top,
                                 .contrast_temp = o->contrast_temp,
                                 .dim = o->dim,
                                 .n_dims = o->dims.n,
                                 .pooling = o->pooling < 0 ? NULL : poolings[o->pooling],
                                 .mmproj = o->mmproj,
                                 .mmproj_out = o->mmproj_out};
}
