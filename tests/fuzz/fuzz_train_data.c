/* Files to learn from: whatever is read has items of the right lengths, and reading them again gives the same ones. */
#include <string.h>

#include "builtin/builtin.h"
#include "fuzz.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "training/order.h"

enum { N_CTX = 12 };

static ggl_gguf *file;
static llm_tokenizer *tokenizer;
static llm_chat *chat, *thinking;

/* The built-in chat model's tokenizer and template, and one whose prompts begin a reasoning. They stay. */
static void open_model(void) {
    static const char text[] =
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}<|end|>{% "
        "endfor %}{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}";
    const llm_chat_template with = {"fuzz", {text, sizeof text - 1}};
    llm_builtin model;
    if (chat)
        return;
    require(llm_builtin_find("builtin:chat", &model));
    require(ggl_gguf_open_memory(&file, model.data, model.size, "chat", NULL) == GGL_OK);
    require(llm_tokenizer_new(&tokenizer, file, NULL) == GGL_OK);
    require(llm_chat_new(&chat, file, tokenizer, NULL, NULL) == GGL_OK);
    require(llm_chat_new(&thinking, file, tokenizer, &with, NULL) == GGL_OK);
}

/* --- what a model reads besides ----------------------------------------------------------------- */

/* Pictures of the test: the first byte says how many rows one has, and a mark has it as a letter. */
enum { KINDS = 8, MARK = 3 };
static int64_t held[KINDS];

static int64_t n_made(int k) {
    return 1 + k % 3;
}

static int32_t first_of(int k) {
    return -100 - 16 * k;
}

static bool find_mark(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    (void)ctx;
    *size = MARK;
    for (size_t i = *at; i + MARK <= n; i++)
        if (text[i] == '\x02' && text[i + 2] == '\x03' && text[i + 1] >= 'A' &&
            text[i + 1] < 'A' + KINDS) {
            *at = i;
            return true;
        }
    return false;
}

static ggl_status append_mark(void *ctx, const llm_tokenizer *t, const char *mark, llm_tokens *out,
                              ggl_error *err) {
    const int k = mark[1] - 'A';
    ggl_status st = GGL_OK;
    (void)ctx;
    (void)t;
    if (held[k] == 0)
        return ggl_fail(err, GGL_USAGE, "it is not there");
    for (int64_t i = 0; i < n_made(k) && st == GGL_OK; i++)
        st = llm_tokens_append(out, (int32_t)(first_of(k) - i), err);
    return st;
}

static const llm_marks marks = {.find = find_mark, .append = append_mark};

static ggl_status show(void *ctx, const llm_noticed_file *f, llm_shown_file *out, ggl_error *err) {
    (void)ctx;
    *out = (llm_shown_file){.n_parts = 0};
    if (!f->data || f->n == 0)
        return ggl_fail(err, GGL_FORMAT, "no bytes");
    const int k = ((const unsigned char *)f->data)[0] % KINDS;
    out->part = ggl_calloc(1, sizeof *out->part);
    if (!out->part)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    out->part[0] = (llm_shown_part){.n = 4 + k, .n_made = n_made(k), .first = first_of(k)};
    out->n_parts = 1;
    out->id[0] = (uint8_t)k;
    memcpy(out->mark, (char[]){'\x02', (char)('A' + k), '\x03', '\0'}, 4);
    held[k]++;
    return GGL_OK;
}

static void let_go(void *ctx, const llm_shown_file *shown) {
    (void)ctx;
    require(held[shown->id[0]] > 0);
    held[shown->id[0]]--;
}

static const llm_file_senses sees = {.pictures = true,
                                     .marks = &marks,
                                     .show = show,
                                     .let_go = let_go},
                             answers = {.text = true, .start = 1};

static const llm_file_senses *senses_of(const uint8_t *data, size_t size) {
    return memmem(data, size, "source", 6)  ? &answers
           : memmem(data, size, "image", 5) ? &sees
                                            : NULL;
}

static void check_row(const train_data *d, int32_t token) {
    int64_t row = -1;
    const int64_t r = llm_train_data_row(d, token, &row);
    require(r >= 0 && r < llm_train_data_n_readings(d) && row >= 0);
    require(row < n_made((int)llm_train_data_reading_length(d, r) - 4));
}

static void check_reading(const train_data *d, const llm_file_senses *s, int64_t k) {
    int32_t text[N_CTX];
    const int64_t r = llm_train_data_reading(d, k);
    require((s == &answers) == (r >= 0) && r < llm_train_data_n_readings(d));
    if (r < 0)
        return;
    const int64_t n = llm_train_data_reading_length(d, r);
    require(n > 0 && n <= N_CTX);
    llm_train_data_get_text(d, r, text);
    for (int64_t i = 0; i < n; i++)
        require(text[i] >= 0 && text[i] < llm_tokenizer_n_vocab(tokenizer));
}

/* --- items -------------------------------------------------------------------------------------- */

static void check_items(const train_data *d, const llm_file_senses *senses) {
    const train_data_stats s = llm_train_data_stats(d);
    int64_t n_records = 0, n_tokens = 0, n_counted = 0;
    require(s.n_items == llm_train_data_n(d));
    for (int64_t k = 0; k < s.n_items; k++) {
        int32_t token[N_CTX], target[N_CTX];
        float weight[N_CTX];
        int64_t counted = 0;
        const int64_t n = llm_train_data_length(d, k);
        require(n > 0 && n <= N_CTX);
        llm_train_data_get(d, k, token, target, weight);
        check_reading(d, senses, k);
        for (int64_t i = 0; i < n; i++) {
            require(token[i] < llm_tokenizer_n_vocab(tokenizer) &&
                    target[i] < llm_tokenizer_n_vocab(tokenizer));
            require(senses == &sees || (token[i] >= 0 && target[i] >= 0));
            require(i + 1 == n || target[i] == token[i + 1]);
            require(target[i] >= 0 || weight[i] == 0);
            if (token[i] < 0)
                check_row(d, token[i]);
            if (target[i] < 0)
                check_row(d, target[i]);
            counted += weight[i] == 1;
        }
        require(counted > 0 && counted == llm_train_data_counted(d, k));
        n_records += llm_train_data_begins(d, k);
        n_tokens += n;
        n_counted += counted;
    }
    require(n_records == s.n_records && n_tokens == s.n_tokens && n_counted == s.n_counted);
    require(llm_train_data_kind(d) != TRAIN_PAIRS || s.n_items % 2 == 0);
}

static train_data *read_data(const uint8_t *data, size_t size, ggl_status *st) {
    ggl_error err = {0};
    train_data *d;
    const train_data_params p = {.tokenizer = tokenizer,
                                 .chat = size % 5 > 2   ? chat
                                         : size % 5 > 0 ? thinking
                                                        : NULL,
                                 .n_ctx = N_CTX,
                                 .all = size % 7 == 0,
                                 .drop_long = size % 3 == 0,
                                 .separator = "\n",
                                 .senses = senses_of(data, size)};
    llm_tokenizer_set_marks(tokenizer, p.senses == &sees ? &marks : NULL);
    require(llm_train_data_new(&d, &p, NULL) == GGL_OK);
    *st = llm_train_data_add(d, size % 11 ? "fuzz" : "fuzz.jsonl",
                             (ggl_str){(const char *)data, size}, &err);
    require(*st == GGL_OK || strncmp(err.msg, "fuzz", 4) == 0);
    for (int k = 0; k < KINDS; k++)
        require(held[k] == 0);
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ggl_status st, again;
    open_model();
    train_data *d = read_data(data, size, &st), *other = read_data(data, size, &again);
    check_items(d, senses_of(data, size));
    require(st == again && llm_train_data_digest(d) == llm_train_data_digest(other));
    if (st == GGL_OK) {
        const train_order_params p = {.data = d, .seed = size, .valid = 0.3};
        train_order *o;
        if (llm_train_order_new(&o, &p, NULL) == GGL_OK)
            for (int64_t k = 0; k < 3; k++)
                require(llm_train_order_at(o, k) < llm_train_data_n(d));
        llm_train_order_free(o);
    }
    llm_train_data_free(d);
    llm_train_data_free(other);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const text[] = {
        "One day he ran.\nHe sat.\r\n\nThe end",
        "{\"text\": \"One d\\u0061y\"}\n{\"prompt\": \"a\", \"completion\": \" b\"}\n"
        "{\"instruction\": \"a\", \"input\": \"b\", \"output\": \"c\"}\n",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"b\", \"weight\": 0}, {\"role\": \"user\", \"content\": [{\"type\": "
        "\"text\", "
        "\"text\": \"c\"}]}, {\"role\": \"assistant\", \"content\": \"d\", \"train\": true}]}",
        "[{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
        "\"value\": \"b\"}], \"system\": \"s\", \"tools\": \"[]\"},\n {\"text\": \"a\"}]",
        "{\"prompt\": \"a\", \"chosen\": \" b\", \"rejected\": \" c\"}\n{\"chosen\": [{\"role\": "
        "\"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}], "
        "\"rejected\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"c\"}]}",
        "{\n \"prompt\": [{\"role\": \"user\", \"content\": \"a\"}],\n \"completion\": [{\"role\": "
        "\"assistant\", \"content\": null, \"tool_calls\": [{\"type\": \"function\", \"function\": "
        "{\"name\": \"f\", \"arguments\": \"{}\"}}]}],\n \"chat_template_kwargs\": {\"x\": 1}\n}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"<image>\\na\"}, {\"role\": "
        "\"assistant\", \"content\": \"b\"}], \"images\": [\"data:image/png;base64,AgAA\"]}\n",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": "
        "{\"url\": \"data:a;base64,AwAA\"}}, {\"type\": \"text\", \"text\": \"a\"}]}, {\"role\": "
        "\"assistant\", \"content\": \"b\"}]}",
        "{\"image\": {\"path\": \"data:a;base64,AQAA\"}, \"conversations\": [{\"from\": \"human\", "
        "\"value\": \"a<image>\"}, {\"from\": \"gpt\", \"value\": \"b\"}]} ",
        "{\"source\": \"a b\", \"target\": \"c\"}\n{\"input\": \"a\", \"output\": \"b\"}     ",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
        "\"content\": \"<think>\\nr</think>b\"}, {\"role\": \"user\", \"content\": \"a\"}, "
        "{\"role\": \"assistant\", \"content\": \"b\", \"reasoning_content\": \"r\"}]}",
    };
    if (k >= (int)(sizeof text / sizeof *text))
        return false;
    *size = strlen(text[k]);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, text[k], *size);
    return true;
}
