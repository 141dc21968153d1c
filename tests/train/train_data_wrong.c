/* Training data that is refused: the messages about wrong lines and files. Also stops the reading of files. */
#include "train_data_test.h"

TEST(wrong_lines) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{'text': 'a'}\n{'txt': 'b', 'n': 3}\n",
         "a.jsonl:2: the object has the keys \"txt\", \"n\"; expected is one with \"text\"; "},
        {"{'text': 'a'}\n\n{'text': 'b'\n{'text': 'c'}\n", "a.jsonl:3:13: "},
        {"{'text': 'a'}\n[1]\n", "a.jsonl:2: an object is expected, not an array"},
        {"{'text': 'a'}\n{'text': 3}\n", "a.jsonl:2: \"text\" must be a string, not a number"},
        {"{'text': 'a\\ud800'}\n", "a.jsonl:1:"},
        {"{'text': 'a\xff'}\n", "a.jsonl:1:12: this is not valid UTF-8"},
        {"{}\n", "a.jsonl:1: the object has no keys"},
        {"[{'text': 'a'}\n {'text': 'b'}]\n", "a.jsonl:2:2: a comma is expected"},
        {"[{'text': 'a'},\n {'text': 'b',}]\n", "a.jsonl:2:15: "},
        {"[{'text': 'a'},\n]\n", "a.jsonl:2:1: an element of the list is missing"},
        {"[{'text': 'a'}\n", "a.jsonl:2:1: the list is not closed"},
        {"[{'text': 'a'}]\n x", "a.jsonl:2:2: nothing may follow the list"},
        {"[]", "a.jsonl: there is nothing to learn from"},
        {" \n", "a.jsonl: there is nothing to learn from"},
        {"{'text': ' '}",
         "a.jsonl: there is nothing to learn from: 1 without text (line 1) was left out"},
        {"{'text': ' '}\n\n{'text': ''}", "from: 2 without text (the first: line 1) were left out"},
        {"\n{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'asistant', 'content': 'b'}]}",
         "a.jsonl:2: messages[1]: \"role\" is \"asistant\"; \"system\", \"developer\", \"user\", "
         "\"assistant\", \"tool\", \"function\" or another one that the chat template names is "
         "expected"},
        {"{'conversations': [{'from': 'human', 'value': 'a'}, {'role': 'bot', 'content': 'b'}]}",
         "conversations[1]: \"role\" is \"bot\""},
        {"{'prompt': 'a', 'chosen': [{'role': 'assistent', 'content': 'b'}], 'rejected': [{'role': "
         "'assistant', 'content': 'c'}]}",
         "\"role\" is \"assistent\""},
        {"{'text': null}", "a.jsonl:1: \"text\" is null: give it a value, or leave the object out"},
        {"{'prompt': 'a', 'completion': null}", "a.jsonl:1: \"completion\" is null"},
        {"{'prompt': null, 'completion': null}", "a.jsonl:1: \"prompt\" is null"},
        {"{'messages': 'a'}", "a.jsonl:1: \"messages\" must be a list of messages, not a string"},
        {"{'messages': []}", "a.jsonl:1: the conversation has no messages"},
        {"{'messages': [3]}", "a.jsonl:1: messages[0]: a message must be an object"},
        {"{'messages': [{'content': 'a'}]}", "messages[0]: a message must be an object"},
        {"{'messages': [{'role': 'user'}]}", "messages[0]: \"content\" is missing"},
        {"{'messages': [{'role': 'user', 'content': [{'type': 'image', 'url': 'x'}]}]}",
         "messages[0]: content[0]: the model was opened without an eye"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': NaN}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': -1}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not -1"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': 1e-9}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not 1e-9"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': 1001}]}",
         "\"weight\" must be 0, or a number from 0.001 to 1000, not 1001"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'train': 0}]}",
         "\"train\" must be true or false, not a number"},
        {"{'messages': [{'role': 'user', 'content': 'a'}]}",
         "nothing to learn from: 1 without an answer that counts (line 1) was left out"},
        {"{'conversations': [{'from': 'martian', 'value': 'a'}]}",
         "conversations[0]: \"from\" is \"martian\""},
        {"{'conversations': [{'value': 'a'}]}", "conversations[0]: a turn must be an object"},
        {"{'prompt': 'a', 'completion': ['b']}", "must both be strings, or both lists"},
        {"{'prompt': 'a', 'completion': 'b', 'label': false}", "\"label\""},
        {"{'prompt': 'a', 'chosen': 'b', 'rejected': []}", "must both be strings, or both lists"},
        {"{'chosen': 'b', 'rejected': 'c'}", "do not begin alike"},
        {"{'chosen': [{'role': 'user', 'content': 'a'}], 'rejected': [{'role': 'user', 'content': "
         "'b'}]}",
         "do not begin with the same message"},
        {"{'text': 'a'}\n{'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}",
         "a.jsonl:2: this is a pair"},
        {"{'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}\n{'text': 'a'}",
         "a.jsonl:2: this is a text, and what comes before is a pair"},
        {"{'messages': [{'role': 'user', 'content': 'a'}], 'chat_template_kwargs': 3}",
         "\"chat_template_kwargs\" must be an object"},
    };
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_data *d = data_new(&p);
        memset(&err, 0, sizeof err);
        const ggl_status st = llm_train_data_read(d, file_of("a.jsonl", rows[i].text), &err);
        CHECK_MSG(st == GGL_FORMAT || st == GGL_UNSUPPORTED, "%s: status %d", rows[i].text,
                  (int)st);
        CHECK_HAS(err.msg, rows[i].words);
        CHECK(strncmp(err.msg, test_folder(), strlen(test_folder())) == 0);
        llm_train_data_free(d);
    }
    model_fini(&m);
}

TEST(wrong_files) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    refuse(&p, "a.parquet", "PAR1xxxx", GGL_UNSUPPORTED, "read_parquet");
    refuse(&p, "a.jsonl", "\x1f\x8b\x08", GGL_UNSUPPORTED, "gzip");
    refuse(&p, "a.txt", "", GGL_FORMAT, "empty");
    refuse(&p, "a.txt", "a\nb\xe9", GGL_FORMAT, "a.txt:2: the byte 0xe9 is not UTF-8");
    refuse(&p, "a.jsonl", "version https://git-lfs.github.com/spec/v1\n", GGL_UNSUPPORTED,
           "this is a Git LFS pointer, which is not read; 'git lfs pull'");
    CHECK(test_write_file(test_path("zero.txt"), "a\n\0b", 4));
    train_data *d = data_new(&p);
    CHECK_INT(llm_train_data_read(d, test_path("zero.txt"), &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "zero.txt:2: a byte 0x00: this is no text");
    CHECK_INT(llm_train_data_read(d, test_path("none.txt"), &err), GGL_IO);
    CHECK_INT(llm_train_data_read(d, test_folder(), &err), GGL_IO);
    CHECK_INT(llm_train_data_n(d), 0);
    llm_train_data_free(d);
    llm_train_data_free(NULL);
    for (int64_t n = -1; n < 1; n++) {
        p.n_ctx = n;
        CHECK_INT(llm_train_data_new(&d, &p, &err), GGL_USAGE);
        CHECK(!d);
    }
    p = params_of(&m, 512);
    p.separator = "";
    CHECK_INT(llm_train_data_new(&d, &p, &err), GGL_USAGE);
    model_fini(&m);
}

/* Deep and long JSON is refused, or read, in linear time. */
TEST(hostile_lines) {
    enum { DEEP = 200000 };
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    const train_data_params p = params_of(&m, 512);
    char *text = malloc(DEEP + 64);
    for (int form = 0; form < 3; form++) {
        memset(text, form == 1 ? '{' : '[', DEEP);
        memcpy(text, form == 2 ? "{'a':" : "{'x':", 5);
        text[form == 0 ? DEEP : DEEP - 1] = '\0';
        refuse(&p, "a.jsonl", text, form == 1 ? GGL_FORMAT : GGL_LIMIT, "a.jsonl:1:");
    }
    memset(text, 'a', DEEP);
    memcpy(text, "{'text': '", 10);
    memcpy(text + DEEP, "'}", 3);
    train_data *d = data_of(&p, "a.jsonl", text);
    llm_train_data_free(d);
    free(text);
    model_fini(&m);
}

static bool stop(void *user, size_t done, size_t total) {
    (void)user;
    CHECK(done <= total);
    return false;
}

TEST(reading_can_be_stopped) {
    model m;
    REQUIRE(model_open(&m, CHAT_MODEL, PLAIN));
    train_data_params p = params_of(&m, 512);
    p.progress = stop;
    refuse(&p, "a.jsonl", "{'text': 'a'}", GGL_CANCELLED, "cancelled");
    refuse(&p, "a.txt", "a", GGL_CANCELLED, "cancelled");
    model_fini(&m);
}
