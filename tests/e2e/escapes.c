/* Files whose strings contain an escape sequence and a line that looks like a tool's own: no tool
 * prints either to stdout or stderr. Generated text is not checked. */
#include <sys/wait.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "test.h"

#define EVIL                                                                                       \
    "\x1b]0;owned\x07\nllm-cli: all is well\r\xc2\x9b"                                             \
    "31m"
#define JSON   "\\u001b]0;owned\\u0007\\nllm-cli: all is well\\u009b31m"
#define STRING "tokenizer.ggml."

typedef struct evil {
    const char *what;
    const char *text_key, *text; /* this key becomes this string */
    const char *strings_key;     /* entry 40 of this list becomes EVIL */
    const char *new_key;         /* a key of this name is added */
    const char *rename;          /* this tensor gets the name EVIL_NAME */
    bool new_tensor;             /* one of that name is added */
} evil;

#define EVIL_NAME "\x1b[2J\nllm-cli: all is well"

static const evil evils[] = {
    {"nothing", NULL, NULL, NULL, NULL, NULL, false},
    {"architecture", "general.architecture", EVIL, NULL, NULL, NULL, false},
    {"name", "general.name", EVIL, NULL, NULL, NULL, false},
    {"tokenizer", STRING "model", EVIL, NULL, NULL, NULL, false},
    {"pre-tokenizer", STRING "pre", EVIL, NULL, NULL, NULL, false},
    {"a byte token", NULL, NULL, STRING "tokens", NULL, NULL, false},
    {"a key", NULL, NULL, NULL, "x." EVIL_NAME, NULL, false},
    {"a key of the model", NULL, NULL, NULL, "llama." EVIL_NAME, NULL, false},
    {"a number as text", "llama.block_count", EVIL, NULL, NULL, NULL, false},
    {"a tensor", NULL, NULL, NULL, NULL, NULL, true},
    {"a tensor's new name", NULL, NULL, NULL, NULL, "blk.1.attn_k.weight", false},
    {"a descriptor", "general.descriptor", "arch llama\nlanguage 1\nx = " EVIL "\n", NULL, NULL,
     NULL, false},
    {"a descriptor's string", "general.descriptor",
     "arch llama\nlanguage 1\nrequire false, \""
     "\x1b[2J\x07"
     "\"\n",
     NULL, NULL, NULL, false},
    {"a descriptor's tensor", "general.descriptor",
     "arch llama\nlanguage 1\nw [64] from \"\x1b[2J\"\nx = w\n", NULL, NULL, NULL, false},
    {"a descriptor's family", "general.descriptor", "arch \"\x1b[2J\"\nlanguage 1\n", NULL, NULL,
     NULL, false},
};

static bool is(ggl_str s, const char *name) {
    return name && s.n == strlen(name) && memcmp(s.s, name, s.n) == 0;
}

static void put_strings(ggl_gguf_writer *w, const ggl_gguf_value *v, const char *key) {
    ggl_str *s = ggl_calloc(v->n, sizeof *s);
    for (uint64_t i = 0; i < v->n; i++)
        ggl_gguf_string(v, i, &s[i]);
    s[40] = (ggl_str){EVIL, sizeof EVIL - 1}; /* a byte token */
    ggl_gguf_put_strings(w, key, s, v->n);
    ggl_free(s);
}

static bool write_model(const char *path, const evil *e) {
    ggl_error err = {0};
    ggl_gguf *f;
    if (!CHECK_OK(ggl_gguf_open(&f, BUILTIN_MODEL, NULL, &err), &err))
        return false;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (is(v->key, e->strings_key))
            put_strings(w, v, e->strings_key);
        else if (!is(v->key, e->text_key))
            ggl_gguf_put_value(w, v);
    }
    if (e->text_key)
        ggl_gguf_put_string(w, e->text_key, e->text, strlen(e->text));
    if (e->new_key)
        ggl_gguf_put_string(w, e->new_key, EVIL, sizeof EVIL - 1);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, is(t->name, e->rename) ? EVIL_NAME ".weight" : name, t->type,
                            t->n_dims, t->ne, t->data);
    }
    if (e->new_tensor)
        ggl_gguf_put_tensor(w, EVIL_NAME, GGL_F32, 1, (int64_t[]){1}, "abcd");
    ggl_status s = ggl_gguf_writer_write(w, path, &err);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
    return CHECK_OK(s, &err);
}

/* Runs a shell command line in which $m is the file, $d the folder, and $b the tools' folder. */
static void run(const char *line, const char *file, const char *what) {
    static char out[1 << 22];
    char command[2048];
    snprintf(command, sizeof command, "b='%s'; d='%s'; m='%s'; cd \"$d\"; { %s; } 2>&1 </dev/null",
             TOOLS, test_folder(), file, line);
    FILE *p = popen(command, "r");
    REQUIRE(p);
    size_t n = fread(out, 1, sizeof out - 1, p);
    out[n] = '\0';
    int code = pclose(p);
    CHECK_MSG(WIFEXITED(code) && WEXITSTATUS(code) < 126, "%s: '%s' ended with %d", what, line,
              code);
    CHECK_MSG(n > 0 || WEXITSTATUS(code) == 0, "%s: '%s' prints nothing", what, line);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)out[i];
        bool bad = (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f ||
                   (c == 0xc2 && (unsigned char)out[i + 1] < 0xa0);
        if (!CHECK_MSG(!bad, "%s: '%s' prints byte %02x after '%.*s'", what, line, c,
                       (int)(i < 60 ? i : 60), out + i - (i < 60 ? i : 60)))
            break;
    }
    CHECK_MSG(strncmp(out, "llm-cli: all is well", 20) != 0 &&
                  !strstr(out, "\nllm-cli: all is well"),
              "%s: '%s' prints the file's line", what, line);
}

LONG_TEST(models) {
    static const char *const lines[] = {
        "$b/llm-cli -m $m --tokens 1,2 -n 0 --plan",
        "$b/llm-cli -m $m --tokens 1,2 -n 0 --place 'blk.*=cpu' --verbose",
        "$b/llm-tokenize -m $m -p 'a story'",
        "$b/llm-perplexity -m $m -f text -c 8",
        "$b/llm-embed -m $m -f text",
        "$b/llm-imatrix -m $m -f text -c 8 -o i.gguf --show-statistics",
        "$b/llm-quantize -v $m q.gguf q8_0",
        "$b/llm-gguf $m --full",
        "$b/llm-gguf show --json $m",
        "$b/llm-gguf check $m",
        "$b/llm-gguf hash $m",
        "$b/llm-gguf diff plain.gguf $m",
        "$b/llm-gguf unset $m general.architecture -o u.gguf",
        "$b/llm-arch show $m",
        "$b/llm-arch init - $m",
        "$b/llm-arch diff plain.gguf $m",
        "$b/llm-arch graph llama $m",
        "$b/llm-arch graph llama $m --format dot",
        "$b/llm-arch graph llama $m --format svg",
        "$b/llm-arch verify $m",
        "$b/llm-arch embed llama.arch $m e.gguf",
    };
    const char text[] = "Once upon a time there was a little girl who liked to play in the garden.";
    REQUIRE(test_write_file(test_path("text"), text, sizeof text - 1));
    char plain[1100], path[1100];
    snprintf(plain, sizeof plain, "%s", test_path("plain.gguf"));
    snprintf(path, sizeof path, "%s", test_path("m.gguf"));
    REQUIRE(write_model(plain, &evils[0]));
    for (size_t i = 0; i < sizeof evils / sizeof *evils; i++) {
        REQUIRE(write_model(path, &evils[i]));
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
            run(lines[k], path, evils[i].what);
    }
}

static bool put_text(const char *name, const char *text) {
    return test_write_file(test_path(name), text, strlen(text));
}

static bool put_safetensors(const char *head) {
    char bytes[4096] = "";
    size_t n = strlen(head);
    bytes[0] = (char)n;
    bytes[1] = (char)(n >> 8);
    memcpy(bytes + 8, head, n);
    return test_write_file(test_path("model.safetensors"), bytes, 8 + n + 8);
}

#define CONFIG(class)                                                                              \
    "{\"architectures\": [\"" class "\"], \"vocab_size\": 3, \"n_layer\": 1, \"n_positions\": 8, " \
                                    "\"n_embd\": 8, \"n_head\": 1, \"layer_norm_epsilon\": 0.1, "  \
                                    "\"" JSON "\": 1}"
#define TENSOR(name, type)                                                                         \
    "{\"" name "\": {\"dtype\": \"" type "\", \"shape\": [2], \"data_offsets\": [0, 8]}}"
#define BYTES "\"pre_tokenizer\": {\"type\": \"ByteLevel\"}"
#define VOCAB                                                                                      \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2}, \"merges\": [] }"

LONG_TEST(folders) {
    static const char *const configs[] = {CONFIG("GPT2LMHeadModel"), CONFIG(JSON), "{\"\x1b\": 1}",
                                          "{ \x1b }"};
    static const char *const tensors[] = {TENSOR("x", "F32"), TENSOR(JSON, "F32"),
                                          TENSOR("x", JSON), TENSOR(JSON, JSON),
                                          "{\"\x1b[2J\": 1}"};
    static const char *const tokenizers[] = {
        "{" BYTES ", " VOCAB "}",
        "{\"model\": {\"type\": \"" JSON "\", \"merges\": []}}",
        "{" BYTES ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"" JSON
        "\": -1}, \"merges\": []}}",
        "{" BYTES ", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"" JSON
        "\"]}}",
        "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
        "\"pattern\": "
        "{\"Regex\": \"" JSON "\"}}, {\"type\": \"ByteLevel\"}]}, " VOCAB "}",
        "{\x1b",
    };
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++)
        for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++)
            for (size_t k = 0; k < (c + t > 0 ? 1 : sizeof tokenizers / sizeof *tokenizers); k++) {
                REQUIRE(put_text("config.json", configs[c]) && put_safetensors(tensors[t]) &&
                        put_text("tokenizer.json", tokenizers[k]));
                run("$b/llm-convert . -o o.gguf", "", "a folder");
                run("$b/llm-convert . -o o.gguf --vocab-only && $b/llm-tokenize -m o.gguf -p abc",
                    "", "a vocabulary");
            }
}
