/* Every error of the descriptor language: its text and its place. */
#include "arch_test.h"
#include "ggl/alloc.h"
#include "test.h"

typedef struct expected {
    const char *text; /* the descriptor from line 3 on */
    const char *want; /* "line:col: message" */
} expected;

/* Errors that need no model. "%" in `text` is a whole descriptor of its own. */
static const expected syntax[] = {
    {"x = 1 +\n", "3:8: error: a value is expected here, not the end of the line"},
    {"x = (1\n", "3:5: error: this '(' is never closed"},
    {"x = [1\n", "3:5: error: this '[' is never closed"},
    {"x = 1)\n", "3:6: error: there is no '('"},
    {"x = 1]\n", "3:6: error: there is no '['"},
    {"x = (1]\n", "3:7: error: there is no '['"},
    {"x = \"abc\n", "3:5: error: this string is not closed in its line"},
    {"x = 1 $ 2\n", "3:7: error: the character '$' has no meaning here"},
    {"x = 1 \xc3\xa9\n", "3:7: error: the character '\xc3\xa9' has no meaning here"},
    {"x = \xff\n", "3:5: error: the text is not valid UTF-8 here"},
    {"# \xed\xa0\x80\n", "3:3: error: the text is not valid UTF-8 here"},
    {"# \xc0\xaf\n", "3:3: error: the text is not valid UTF-8 here"},
    {"\tx = 1\n", "3:1: error: a tab: use spaces"},
    {"  x = 1\n", "3:3: error: this line is indented, but no block begins here"},
    {"if true:\n    x = 1\n  y = 2\n",
     "5:3: error: the indentation of this line does not match any block above it"},
    {"if true:\nx = 1\n", "4:1: error: an indented block is expected after ':'"},
    {"if true\n", "3:8: error: ':' is expected before a block, not the end of the line"},
    {"else:\n  x = 1\n", "3:1: error: 'else' without an 'if' of the same indentation above it"},
    {"x = 2x\n", "3:5: error: a name directly after a number"},
    {"x = 1 2\n", "3:7: error: the line should end here, but there is a number"},
    {"x = 1 < 2 < 3\n", "3:11: error: comparisons do not chain"},
    {"x = 1 if true\n", "3:14: error: 'else' is expected"},
    {"x = if\n", "3:5: error: a value is expected here, not 'if'"},
    {"if = 3\n", "3:4: error: a value is expected here, not '='"},
    {"in = 3\n", "3:1: error: a name is expected, not 'in'"},
    {"linear(1, 2)\n", "3:1: error: no statement begins like this"},
    {"speech:\nx = 1\n", "3:8: error: an indented block is expected after ':'"},
    {"speech \"<a>\"\n", "3:13: error: ':' is expected before the lines of a speech section"},
    {"speech:\n  usr \"a\"\n", "4:3: error: 'prompt', 'system', 'user', 'answer', 'after', "},
    {"speech:\n  user 3\n", "4:8: error: a text in quotes is expected"},
    {"speech:\n  user (\"a\"\n        \"b\"\n", "4:8: error: this '(' is never closed"},
    {"speech:\n  user (\"a\", \"b\")\n",
     "4:12: error: ')' is expected after the strings of a text"},
    {"speech:\n  user \"a\"\n  user \"b\"\n", "5:3: error: 'user' stands here twice"},
    {"speech:\n  user \"a\"\n  longest 0\n",
     "5:3: error: the longest sound must have 1 to 7200 seconds"},
    {"speech:\n  system \"a\"\n", "3:1: error: a speech section has either 'prompt', the whole"},
    {"speech:\n  prompt \"a\"\n  user \"b\"\n", "3:1: error: a speech section has either"},
    {"speech:\n  user \"a\"\n  names \"b\"\n",
     "3:1: error: 'names' is about the text before 'after', which is missing"},
    {"inptu seen [4] from floats()\n",
     "3:1: error: no statement begins like this; those that there are: NAME = value, a weight's "
     "NAME [shape], input, layer, for"},
    {"3 = x\n", "3:1: error: a statement begins with a name, not with a number"},
    {"x, x = split(1, 1, 1)\n", "3:4: error: 'x' occurs twice on the left of '='"},
    {"x, = 3\n", "3:4: error: a name is expected, not '='"},
    {"token = 3\n", "3:1: error: 'token' is predefined"},
    {"n_ctx = 3\n", "3:1: error: 'n_ctx' is predefined"},
    {"arch u\n", "3:1: error: 'arch' must be the first statement, and may occur only once"},
    {"language 1\n", "3:1: error: 'language' follows 'arch', once"},
    {"return 3\n", "3:1: error: 'return' is allowed only in a def, an op or a stage"},
    {"keep s = 3\n", "3:1: error: 'keep' is allowed only in a def or op"},
    {"ignore 3\n", "3:1: error: no statement begins like this"},
    {"ignore .a, 3\n", "3:12: error: 'ignore' needs keys (.a.b) and names of tensors in quotes"},
    {"ignore .a + 1\n", "3:11: error: the line should end here, but there is '+'"},
    {"ignore .a as b\n", "3:14: error: the text after 'as' must be in quotes"},
    {"ignore .a if .a == 0, 3\n", "3:23: error: the text after the condition must be in quotes"},
    {"ignore \".a.*\" if .b == 0\n",
     "3:18: error: a pattern of keys cannot have a condition: name the keys"},
    {"absent .a\n", "3:1: error: no statement begins like this"},
    {"require true, 3\n", "3:15: error: the message of a 'require' must be in quotes"},
    {"layer l = 3:\n  x = 1\n", "3:9: error: '<' is expected after the name of the layer's number"},
    {"layer l < 3:\n  layer m < 3:\n    x = 1\n",
     "4:3: error: a layer loop is allowed only at top level"},
    {"for i < 3\n", "3:10: error: ':' is expected before a block"},
    {"layer l < 3:\n  def f(x) = x\n", "4:3: error: 'def' is allowed only at top level"},
    {"w [1, 2, 3, 4, 5]\n", "3:16: error: a tensor has at most 4 dimensions"},
    {"w [1] or\n", "3:7: error: after a weight's shape, only"},
    {"w [1] ? \?\? 3\n", "3:12: error: use either '?' or '\?\?'"},
    {"x = f(3)\n", "3:5: error: unknown function 'f'"},
    {"x = rmsnorm(1, 2, 3)\n",
     "3:5: error: unknown function 'rmsnorm'; did you mean rms_norm(x, w, eps)?"},
    {"x = softmx(1)\n", "3:5: error: unknown function 'softmx'; did you mean softmax(x)?"},
    {"x = liner(1, 2)\n",
     "3:5: error: unknown function 'liner'; did you mean linear(x, w, bias = none)?"},
    {"x = splt(1, 2)\n",
     "3:5: error: unknown function 'splt'; did you mean split(x, size, .., dim = 0)?"},
    /* words of other languages */
    {"x = rope(1, 2)\n",
     "3:5: error: unknown function 'rope'; did you mean rope_half(x, f, mag = 1, at = pos) or "
     "rope_pair(x, f, mag = 1, at = pos)?"},
    {"x = swish(1)\n", "3:5: error: unknown function 'swish'; did you mean silu(x)?"},
    {"x = pow(1, 2)\n", "3:5: error: unknown function 'pow'; write a power as a ** b"},
    {"def rope(x) = x\nx = rope(1) / nix\n", "4:15: error: unknown name 'nix'"},
    {"x = True\n", "3:5: error: unknown name 'True'; did you mean 'true'?"},
    {"x = true && false\n", "3:10: error: write 'and' instead of '&&'"},
    {"x = true || false\n", "3:10: error: write 'or' instead of '||'"},
    {"x = !true\n", "3:5: error: write 'not' instead of '!'"},
    {"x = 1 != 2 ! 3\n", "3:12: error: write 'not' instead of '!'"},
    {"x = 2 ^ 3\n", "3:7: error: write '**' instead of '^'"},
    {"x = 7 // 2\n", "3:7: error: '//' has no meaning here: a comment begins with '#'"},
    {"require 1 == 1, 'one'\n", "3:17: error: a string must be in double quotes"},
    {"x = 1; y = 2\n", "3:6: error: ';' has no meaning here: a statement ends with its line"},
    {"if true:\n  x = 1\nelse if false:\n  x = 2\n",
     "5:1: error: write 'elif' instead of 'else if'"},
    {"if true:\n  x = 1\nelif false: x = 2\nelse: if true: x = 3 / nix\n",
     "6:24: error: unknown name 'nix'"},
    {"if true:\n  x = 1\nelsif false:\n  x = 2\n", "5:1: error: write 'elif' instead of 'elsif'"},
    {"x = 1\nx += 2\n", "4:1: error: instead of 'x += ..', write 'x = x + ..'"},
    {"x = 1\nx **= 2\n", "4:1: error: instead of 'x **= ..', write 'x = x ** ..'"},
    {"x + = 2\n", "3:1: error: no statement begins like this"},
    {"x = true ? 1 : 2\n", "3:10: error: write 'a if c else b' instead of 'c ? a : b'"},
    {"for l in 3:\n  x = 1\n",
     "3:1: error: write the loop over layers as 'layer l < n_layer:', any other as 'for i < n:'"},
    {"def f(x) = f(x)\n", "3:12: error: 'f' calls itself: there is no recursion"},
    {"def f(x) = g(x)\ndef g(x) = x\n", "3:12: error: unknown function 'g'"},
    {"def f(x) = x\ndef f(y) = y\n", "4:5: error: function 'f' already exists, in line 3"},
    {"def linear(x) = x\n", "3:5: error: 'linear' is built in: the function needs another name"},
    {"def split(x) = x\n", "3:5: error: 'split' is built in"},
    {"def f(x, x) = x\n", "3:10: error: two parameters are called 'x'"},
    {"def f(x = 1, y) = x\n",
     "3:14: error: parameters without a default must come before those with one"},
    {"def f x = x\n", "3:7: error: '(' is expected after the name of a function"},
    {"x = silu()\n", "3:5: error: argument 'x' of silu(x) is missing"},
    {"x = silu(1, 2)\n", "3:13: error: too many arguments for silu(x)"},
    {"x = rms(1, esp = 2)\n",
     "3:12: error: rms(x, eps) has no argument 'esp'; did you mean 'eps'?"},
    {"x = rms(1, x = 2)\n", "3:12: error: argument 'x' twice"},
    {"x = rms(x = 1, 2)\n",
     "3:16: error: arguments without a name must come before those with one"},
    {"x = exp()\n", "3:5: error: argument 'x' of exp(x) is missing"},
    {"x = exp(1, 2)\n", "3:12: error: too many arguments for exp(x)"},
    {"x = sum(1, dimm = 0)\n", "3:12: error: sum(x, dim = 0) has no argument 'dimm'"},
    {"x = sum(1, dim = 0, dim = 0)\n", "3:21: error: argument 'dim' twice"},
    {"x = topk(1)\n", "3:5: error: argument 'k' of topk(x, k) is missing"},
    {"x = reshape(1)\n", "3:5: error: argument 'size' of reshape(x, size, ..) is missing"},
    {"x = n_embed\n", "3:5: error: unknown name 'n_embed'; did you mean 'n_embd'?"},
    {"x = silu\n", "3:5: error: 'silu' is a function: call it with '('"},
    {"def f(x) = hidden\n", "3:12: error: unknown name 'hidden'"},
    {"if false:\n  y = nothing_like_it\n", "4:7: error: unknown name 'nothing_like_it'"},
    {"x = key(3)\n", "3:9: error: key(..) needs the key's full name in quotes"},
    {"x = has 3\n", "3:9: error: '(' is expected after has"},
    {"x = y.size\n", "3:7: error: values have no part 'size'; weights have '.bias'"},
    {"s = state(3)\n", "3:5: error: a state is allowed only in a def or op"},
    {"def f(x):\n  y = x + state(3)\n  return y\n",
     "4:11: error: give a state a name first: s = state(..)"},
    {"convert A:\n  .a = 3\n", "4:6: error: '<-' is expected"},
    {"convert A:\n  b <- \"b\"\n", "4:3: error: the descriptor declares no weight 'b'"},
    {"convert A:\n  token_embd <- pairs(\"b\")\n",
     "4:17: error: pairs in a conversion needs 2 arguments, not 1"},
    {"convert A:\n  token_embd <- transpse(\"b\")\n",
     "4:17: error: unknown function 'transpse'; did you mean transpose("},
    {"convert A:\n  .a <- config.b + nix\n", "4:20: error: unknown name 'nix'"},
    {"convert A:\n  3 <- 4\n", "4:3: error: a key, a weight's name, 'require', 'note', 'ignore', "
                               "'only', 'copy', 'use', 'within', 'agree', 'folder' or 'prefix' is "
                               "expected"},
    {"convert A:\n  copy \"a\", b of token_embd\n",
     "4:13: error: 'copy' needs names of source tensors in quotes"},
    {"convert A:\n  copy \"a\"\n", "4:11: error: 'of' and the name of a weight are expected: copy "
                                   "\"lm_head.weight\" of token_embd"},
    {"convert A:\n  copy \"a\" of b\n", "4:8: error: the descriptor declares no weight 'b'"},
    {"convert A:\n  copy \"a{b}\" of token_embd\n",
     "4:8: error: '{b}' is not a name of this descriptor"},
    {"convert A:\n  .n <- 4\n  .n <- 5\n", "5:3: error: 'n' has two lines"},
    {"convert A:\n  tensor(w) <- \"b\"\n",
     "4:10: error: 'tensor' needs a full name in quotes: tensor(\"v.x\")"},
    {"convert A:\n  tensor(\"t\") <- log(\"b\")\n",
     "4:18: error: log(..) does not accept a source tensor"},
    {"convert A:\n  only 3\n",
     "4:8: error: 'only' needs names of source tensors in quotes, or values config.x"},
    {"convert A:\n  agree \"hop\", config.a\n",
     "4:9: error: 'agree' needs what sound has: \"rate\", \"step\""},
    {"convert A:\n  agree \"step\"\n", "4:15: error: ',' is expected after the name"},
    {"convert A:\n  folder \"../up\"\n",
     "4:10: error: 'folder' needs the name of a folder in the folder, of letters, digits and '_'"},
    {"convert A:\n  folder \"a\"\n  folder \"a\"\n", "5:3: error: 'a' has two lines"},
    {"convert A:\n  folder \"\"\n", "4:10: error: 'folder' needs the name of a folder"},
    {"convert A if nix:\n  .n <- 4\n", "3:14: error: unknown name 'nix'"},
    {"convert A:\n  require 1 == 1, 2\n",
     "4:19: error: the message of a 'require' must be in quotes"},
};

TEST(syntax) {
    for (size_t k = 0; k < sizeof syntax / sizeof *syntax; k++) {
        ggl_error err = {0};
        llm_arch *a;
        char want[512];
        char *text = arch_text(syntax[k].text, "");
        CHECK_MSG(llm_arch_parse(&a, text, strlen(text), "t.arch", &err) != GGL_OK, "parsed: %s",
                  syntax[k].text);
        snprintf(want, sizeof want, "t.arch:%s", syntax[k].want);
        CHECK_HAS(err.msg, want);
        CHECK(a == NULL);
        free(text);
    }
}

TEST(header) {
    static const struct {
        const char *text, *want;
    } list[] = {
        {"", "t.arch:1:1: error: a descriptor must begin with 'arch NAME'"},
        {"x = 3\n", "t.arch:1:1: error: a descriptor must begin with 'arch NAME'"},
        {"arch\n", "t.arch:1:1: error: a descriptor must begin with 'arch NAME'"},
        {"arch t\nx = 3\n", "t.arch:2:1: error: 'language 2' is expected"},
        {"arch t\nlanguage 3\n",
         "t.arch:2:10: error: language 3 is newer than this engine, which knows languages 1 to 2"},
        {"arch t\nlanguage 0.5\n",
         "t.arch:2:10: error: the version must be a whole number of at least 1"},
        {"arch t,\nlanguage 1\n", "t.arch:1:8: error: a name is expected"},
        {"arch t\nlanguage 1\nx = 1\n", "t.arch:4:1: error: the descriptor has no output"},
        {"arch t\nlanguage 2\nlogit = 1\n",
         "t.arch:3:1: error: the descriptor has no output; did you mean 'logits'?"},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        ggl_error err = {0};
        llm_arch *a;
        CHECK(llm_arch_parse(&a, list[k].text, strlen(list[k].text), "t.arch", &err) != GGL_OK);
        CHECK_HAS(err.msg, list[k].want);
    }
}

/* What later numbers refuse, language 1 keeps: a name that nothing reads is a note, and `in` of values
 * that cannot be compared is false. */
TEST(first_language) {
    static const char of[] = "arch t\nlanguage %d\nn_embd = .n_embd\nspare = n_embd\n"
                             "token_embd [n_embd, n_vocab]\nx = token_embd[token]\n"
                             "if 4 in [true, false]: x = x * inf\nlogits = linear(x, token_embd)\n";
    model m;
    CHECK(model_new(&m, "", "model.gguf"));
    for (int number = 1; number <= 2; number++) {
        char text[400];
        ggl_error err = {0};
        llm_arch_result r = {0};
        snprintf(text, sizeof text, of, number);
        CHECK_INT(arch_build(text, &m, NULL, &r, &err) == GGL_OK, number == 1);
        CHECK_HAS(number == 1 ? r.notes : err.msg,
                  number == 1 ? "t.arch:4:1: nothing reads 'spare'"
                              : "'in' of a number and a list with true or false");
        llm_arch_result_fini(&r);
    }
    model_free(&m);
}

/* Errors that the little model brings out; `lines` are more of its keys and tensors. */
static const struct {
    const char *top, *body, *lines, *want;
} semantic[] = {
    /* names that nothing reads; in a string, a function, a default and a convert section they are read */
    {"limit = .clamp\n", "", "t.clamp = 2",
     "t.arch:3:1: error: nothing reads 'limit': use it, or remove the line; for a key without "
     "effect, write 'ignore'"},
    {"", "layer l < 1:\n  y = x\n", "", "nothing reads 'y'"},
    {"n = 1\ndef f(n) = n\n", "x = f(x)\n", "", "nothing reads 'n'"},
    {"n = 2\ndef f(x) = x * n\n", "x = f(x)\n", "", ""},
    {"n = 2\ndef f(x, y = n) = x * y\n", "x = f(x)\n", "", ""},
    {"limit = .clamp\nlimit = limit + 1\n", "", "t.clamp = 2",
     "t.arch:3:1: error: nothing reads 'limit'"},
    {"limit = .clamp # {limit} is not read here\n", "", "t.clamp = 2", "nothing reads 'limit'"},
    {"limit = .clamp\nrequire 1 == 1, \"{limit} is text\"\n", "", "t.clamp = 2",
     "nothing reads 'limit'"},
    {"limit = .clamp\nif limit > 1: limit = limit + 1\n", "", "t.clamp = 2", ""},
    {"n = 0\nignore \"blk.{n}.*\"\n", "", "blk.0.v.weight [8]", ""},
    {"n = 0\nw [8] from \"old.weight\" ?? \"blk.{n}.v.weight\"\n", "x = x * w\n",
     "blk.0.v.weight [8]", ""},
    {"n = 0\nw [8] from \"blk.{n}.v.weight\"\n", "x = x * w\n", "blk.0.v.weight [8]", ""},
    {"def two(x):\n  return x, 1\n", "y, n = two(x)\nx = y\n", "", ""},
    /* a tokenizer with more tokens than the model has rows; with fewer */
    {"", "", "tokenizer.ggml.tokens = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]",
     "the tokenizer has 12 tokens, but t.vocab_size is 10: the model has no rows for the last 2"},
    {"", "", "tokenizer.ggml.tokens = [0, 1, 2, 3]", ""},
    /* keys */
    {"n = .a\nlayer l < n:\n  y = x\n", "", "t.a = 9999",
     "'n' is 9999; 0 to 4096 is allowed here\n    4 | layer l < n:\n      |           ^\n  "
     "model.gguf has t.a = 9999"},
    {"a = .nope + 1\n", "", "", "t.arch:3:5: error: key t.nope is missing in model.gguf"},
    {"a = .nope + 1\n", "", "", "'\?\? value' sets its default"},
    /* a key that nothing reads stands before what may follow from that, but not before a `require` */
    {"a = .nope + 1\n", "", "t.nop = 3",
     "model.gguf: error: 1 key of this file is not read by t.arch:\n  t.nop = 3: did you mean "
     "t.nope?\nThis may be the "
     "cause of:\nt.arch:3:5: error: key t.nope is missing in model.gguf"},
    {"require .a == 3, \"three\"\n", "", "t.a = 2\nt.b = 2", "t.arch:3:9: error: three: .a = 2"},
    {"require 1 in [true, false]\n", "", "",
     "t.arch:3:11: error: 'in' of a number and a list with true or false: left it is the number 1"},
    {"require \"a\" in [1]\n", "", "", "'in' of a string and a list with a number"},
    {"layer l < 2:\n  require l in .a\n", "", "t.a = [true, false]",
     "'in' of a number and a list with true or false"},
    {"layer l < 2:\n  require .a[l] \?\? (l + 1) % 2 == 0\n", "", "t.a = [true, false]",
     "t.arch:4:32: error: '==' of true or false and a number: left key t.a is true, right it is "
     "the number 0\n"},
    {"layer l < 2:\n  require .a[l] \?\? (l + 1) % 2 == 0\n", "", "t.a = [true, false]",
     "^^  '\?\?' binds tighter than '==': .a[l] \?\? ((l + 1) % 2 == 0)"},
    {"require .a \?\? 1 in [2, 3]\n", "", "t.a = true",
     "'\?\?' binds tighter than 'in': .a \?\? (1 in [2, 3])"},
    {"", "places [n_embd, 5]\nx = x + places[pos + 2]\n", "places.weight [8, 5]",
     "for t[pos + n]: before, rest = split(t, n, .., dim = 1), then rest[pos]"},
    {"x = concat(iota(2), reshape(iota(4), 2, 2))\n", "", "",
     "t.arch:3:5: error: concat of [2] and [2, 2]"},
    {"x = split(iota(4), 2, 3)\n", "", "", "t.arch:3:5: error: the parts add up to 5"},
    {"a = .a + 1\n", "", "t.a = \"s\"",
     "t.arch:3:8: error: '+' of a string and a number: left key t.a is the string \"s\""},
    {"w [.a]\n", "", "t.a = \"s\"",
     "t.arch:3:4: error: a number is expected here, but '.a' is not: key t.a is the string \"s\""},
    {"w [.a]\n", "", "t.a = [1, 2]",
     "t.arch:3:4: error: a number is expected here, but '.a' is not: key t.a is a list of 2, of "
     "which [0] is 1 and [1] is 2: pick one with [i]"},
    {"if .a: b = 1\n", "", "t.a = [1, 1, 0]",
     "t.arch:3:4: error: true or false is expected here, but '.a' is not: key t.a is a list of 3, "
     "of which [0] is 1 and [2] is 0: pick one with [i]"},
    {"w [.a]\n", "", "t.a = 2.5",
     "t.arch:3:4: error: '.a' is 2.5, but a whole number is expected here"},
    {"w [.a]\n", "", "t.a = 0", "t.arch:3:4: error: '.a' is 0; 1 to 2147483647 is allowed here"},
    {"a = .a[2]\n", "", "t.a = [1, 2]",
     "t.arch:3:8: error: '2' is 2, but the list t.a has 2 elements, counted from 0"},
    {"if .a: b = 1\n", "", "t.a = 2",
     "t.arch:3:4: error: true or false is expected here, but '.a' is not: key t.a is the number 2"},
    {"if 1: b = 1\n", "", "",
     "t.arch:3:4: error: true or false is expected here, but '1' is not: it is the number 1"},
    {"", "", "t.odd = 4096",
     "model.gguf: error: 1 key of this file is not read by t.arch:\n  t.odd = 4096\n"},
    {"", "", "t.odd = \"s\"", "is not read by t.arch:\n  t.odd = \"s\"\n"},
    {"", "", "t.odd = [1, 2, 3, 4, 5]\nt.b = [1, 2]",
     "model.gguf: error: 2 keys of this file are not read by t.arch:\n  t.odd = [1, 2, 3, 4, ..] "
     "of 5\n  t.b = [1, 2]\nWithout them the output may be wrong. To continue at your own risk: "
     "--ignore-key 't.odd' --ignore-key 't.b'\nIf you write the descriptor, read, ignore or "
     "require each of them in t.arch."},
    {"", "", "t.logit_scale = 16",
     "  t.logit_scale = 16: multiplies the logits (1 would change nothing)\n"},
    {"", "", "t.logit_scale = \"s\"", "  t.logit_scale = \"s\": multiplies the logits"},
    {"ignore .a if .a == 0, \"turns it all around\"\n", "", "t.a = 3",
     "t.arch:3:8: error: key t.a = 3 is ignored only if .a == 0: turns it all around"},
    {"ignore .a if .a\n", "", "t.a = \"s\"",
     "t.arch:3:14: error: true or false is expected here, but '.a' is not: key t.a is the string"},
    {"", "x = x * (1 if pos else 2)\n", "",
     "t.arch:6:15: error: this is decided while compiling, when a tensor has no value yet"},
    /* tensors */
    {"w [n_ctx, 4]\n", "", "", "t.arch:3:1: error: tensor w.weight is missing in model.gguf"},
    {"wt [n_ctx, 4]\n", "", "tw.weight [32, 4]",
     "tensor wt.weight is missing in model.gguf; did you mean tw.weight?"},
    {"wq [8]\n", "", "wqkv.weight [8]",
     "tensor wq.weight is missing in model.gguf; did you mean wqkv.weight?"},
    {"ffn_up_exps [8]\n", "", "ffn_up.0.weight [8]\nffn_up.1.weight [8]",
     "tensor ffn_up_exps.weight is missing in model.gguf; there is ffn_up.0.weight\n"},
    /* of the tensors that no line declares, the one that has the shape */
    {"attn_out [8, 4]\n", "", "attn_output.weight [8, 4]\nattn_norm.weight [8]",
     "tensor attn_out.weight is missing in model.gguf; did you mean attn_output.weight?"},
    {"wo [8, 4]\n", "", "dense.weight [8, 4]\nother.weight [8]",
     "tensor wo.weight is missing in model.gguf; there is dense.weight, which has this shape and "
     "is not read\n"},
    {"wk [8, 4]\nwv [8, 4]\n", "", "wv.weight [8, 4]",
     "tensor wk.weight is missing in model.gguf\n"},
    {"wk [8, 4]\nif false: wv [8, 4]\nw [8, 4] from \"w{n_embd}.weight\"\n", "",
     "wv.weight [8, 4]\nw8.weight [8, 4]", "tensor wk.weight is missing in model.gguf\n"},
    {"layer l < 2:\n  wk [8, 4]\n", "",
     "blk.1.wk.weight [8, 4]\nblk.1.wv.weight [8, 4]\nwx.weight [8, 4]",
     "tensor blk.0.wk.weight is missing in model.gguf\n"},
    {"layer m < 1:\n  probs [8]\n", "", "blk.0.probs.bias [8]",
     "tensor blk.0.probs.weight is missing in model.gguf; there is blk.0.probs.bias\n    4 |   "
     "probs [8]\n      |   "
     "^^^^^  from \"blk.{m}.probs.bias\""},
    {"ssm_a [8]\n", "", "ssm_a [8]", "^^^^^  from \"ssm_a\""},
    {"attn_query [8]\n", "", "attn_k.weight [8]\nattn_query_key_value.weight [8]",
     "tensor attn_query.weight is missing in model.gguf; there is attn_query_key_value.weight\n"},
    {"h = .h\nd = .d\nkv = .kv\nw [8, h*d]\n", "x = x + linear(linear(x, w), w)\n",
     "t.h = 4\nt.d = 2\nt.kv = 2\nw.weight [8, 4]",
     "t.arch:6:7: error: tensor w.weight is [8, 4], declared [8, h*d] = [8, 8]\n    6 | w [8, "
     "h*d]\n      |       ^^^  4 here is kv*d"},
    {"w [8] bias\n", "x = x * w\n", "w.weight [8]\nw.bias [8]",
     "t.arch:3:1: error: tensor w.bias is declared but does not reach the logits"},
    {"w [8]\n", "", "w.weight [8]",
     "t.arch:3:1: error: tensor w.weight is declared but does not reach the logits"},
    {"", "", "w.weight [8]",
     "model.gguf: error: 1 tensor of this file is not read by t.arch:\n  w.weight\n"},
    {"", "", "blk.0.u.3.w [8]\nblk.11.u.3.w [8]\nblk.2.u.3.w [8]\nw2 [8]\nt.k = 1",
     "model.gguf: error: 1 key and 4 tensors of this file are not read by t.arch:\n  t.k = 1\n  "
     "blk.{0..11}.u.3.w (3 tensors)\n  w2\nWithout them the output may be wrong. To continue at "
     "your own risk: --ignore-key 't.k' --ignore-tensor 'blk.*.u.*.w' --ignore-tensor 'w2'\n"},
    {"w [8]\n", "x = x * w\n", "w.weight [8]\nw.bias [8]",
     "is not read by t.arch:\n  w.bias: its weight is declared in t.arch:3 without 'bias'\n"},
    {"w [8, 8] bias from \"v\"\n", "x = linear(x, w)\n", "v [8, 8]",
     "t.arch:3:20: error: the name of its bias is unknown"},
    {"w [8] from \"v{nope}\"\n", "", "",
     "t.arch:3:12: error: '{nope}' must be the name of a whole number"},
    {"w [8]\nw [8]\n", "", "w.weight [8]", "t.arch:4:1: error: 'w' already exists, in line 3"},
    {"v [8]\nw [9] \?\? v\n", "x = x * w\n", "v.weight [8]",
     "t.arch:4:10: error: [8] instead of w declared [9]"},
    {"w [8] ?\n", "x = x * w\n", "",
     "t.arch:7:9: error: tensor w.weight is absent: no operand for '*'"},
    /* use */
    {"", "y = x * 2\n", "", "t.arch:6:7: error: the value of 'y' does not reach the logits"},
    {"", "y = x * 2\nz = y + 1\n", "",
     "t.arch:7:7: error: the value of 'z' does not reach the logits"},
    {"", "kv = cache(x, x)\n", "", "t.arch:6:6: error: no attend reads what is cached here"},
    {"", "y = rms(x, 1e-5)\n", "", "t.arch:6:5: error: the value of 'y' does not reach the logits"},
    /* names */
    {"if false: a = 1\nb = a\n", "", "", "t.arch:4:5: error: 'a' has no value here"},
    {"layer l < 2:\n  h = l\nb = h\n", "", "",
     "t.arch:5:5: error: 'h' has no value here: names of a layer end with it"},
    {"def f(y) = y * h\nlayer l < 2:\n  h = 3\n  g = f(2)\n", "", "",
     "t.arch:3:16: error: 'h' is a name of a layer: pass it to the function as an argument  (in f, "
     "called from t.arch:6:7)"},
    {"layer l < 2:\n  l = 3\n", "", "", "t.arch:4:3: error: 'l' is the layer's number"},
    {"l = 2\nlayer l < 2:\n  a = 3\n", "", "", "t.arch:4:7: error: 'l' already has a value"},
    {"i = 2\nfor i < 2:\n  a = 3\n", "", "",
     "t.arch:4:5: error: 'i' already has a value: the counter of a 'for' needs"},
    {"for i < 2: a = i\nrequire a == i\n", "", "", "t.arch:4:14: error: 'i' has no value here"},
    {"for i < 0: a = i\nrequire a == 3\n", "", "", "t.arch:4:9: error: 'a' has no value here"},
    {"for i < 2.5: a = i\n", "", "",
     "t.arch:3:9: error: '2.5' is 2.5, but a whole number is expected"},
    {"for i < 0 - 1: a = i\n", "", "", "t.arch:3:9: error: '0 - 1' is -1; 0 to 4096"},
    {"for i < 4097: a = i\n", "", "", "t.arch:3:9: error: '4097' is 4097; 0 to 4096"},
    {"for i < 3: i = 7\nrequire true\n", "", "",
     "t.arch:3:5: error: 'i' is the counter of this 'for', and cannot be assigned in it"},
    {"for i < 4000:\n  for j < 4000: a = j\n", "", "", "takes more than 10000000 steps"},
    {"for i < 2: w [8]\n", "x = x * w\n", "w.weight [8]",
     "t.arch:3:12: error: 'w' would be declared again in each turn of the 'for': declare it in a "
     "def"},
    {"def f(x):\n  for i < 2: s = state(8)\n  keep s = x\n  return x\n", "x = f(x)\n", "",
     "t.arch:4:14: error: 's' is a state"},
    {"a, b = 3\n", "", "", "t.arch:3:8: error: one value for 2 names"},
    {"a, b = exp(3)\n", "", "", "t.arch:3:8: error: exp gives 1 result for 2 names"},
    {"a = rope_scaled(8, 1000)\n", "", "t.context_length = 8",
     "t.arch:3:5: error: rope_scaled gives 2 results, but one is expected"},
    /* shapes */
    {"w [4]\n", "x = x * w\n", "w.weight [4]", "t.arch:7:7: error: '*' of [n_embd = 8] and [4]"},
    {"w [8, 8]\n", "x = linear(linear(x, w), reshape(w, 4, 16))\n", "w.weight [8, 8]",
     "t.arch:7:5: error: linear of [n_embd = 8] with the matrix [4, 16]"},
    {"", "a, b = split(x, 3, 4)\n", "",
     "t.arch:6:8: error: the parts add up to 7, but dimension 0 of [n_embd = 8] is 8"},
    {"", "x = repeat(iota(1), 1048576, 128, 128, 1073741824)[0][0][0][0]\n", "",
     "t.arch:6:5: error: repeat of [1] to [1048576, 128, 128, 1073741824]: values have at most "
     "three"},
    {"", "x = reshape(x, 3, 3)\n", "", "t.arch:6:5: error: reshape of [n_embd = 8] to [3, 3]"},
    {"", "x = x[token]\n", "", "t.arch:6:6: error: this index is into 10, but [n_embd = 8] has 8"},
    {"", "x = x[9] * x\n", "", "t.arch:6:7: error: '9' is 9; 0 to 7 is allowed here"},
    {"", "x = x * token\n", "",
     "t.arch:6:7: error: an index into 10 is not a number: use it to pick, t[i]"},
    {"", "x = x[topk(x, 9)]\n", "", "t.arch:6:7: error: topk with k = 9"},
    {"", "x = x[topk(x, 2000)]\n", "",
     "t.arch:6:15: error: '2000' is 2000; 1 to 1024 is allowed here"},
    {"w [4, 99]\n", "p = w[pos]\nx = x * sum(p)\n", "w.weight [4, 99]", ""},
    {"w [4, 9]\n", "p = w[pos]\nx = x * sum(p)\n", "w.weight [4, 9]",
     "t.arch:7:6: error: there are n_ctx = 32 positions, but [4, 9] has only 9"},
    {"one = .one\nw [one]\n", "x = x * w\n", "t.one = 1\nw.weight [1]",
     "t.arch:8:7: error: '*' of [n_embd = 8] and [one = 1]: one just happens to be 1"},
    {"w [1]\n", "x = x * w\n", "w.weight [1]", ""},
    {"", "x = attend(x, x)\n", "",
     "t.arch:6:15: error: attend needs a result of cache(k, v): it is a tensor [n_embd = 8]"},
    {"", "x = attend(x, cache(x, x), window = .w)\n", "",
     "t.arch:6:37: error: key t.w is missing in model.gguf, but a number is expected here"},
    {"", "x = x + cache(x, x)\n", "", "t.arch:6:7: error: '+' of a tensor and a cache"},
    {"", "x = linear(x, none)\n", "",
     "t.arch:6:15: error: 'w' of linear must be a tensor or number: its value is none"},
    {"", "logits = x\n", "", ""},
    /* require, states, calls */
    {"require .a == 3, \"three\"\n", "", "t.a = 2", "t.arch:3:9: error: three: .a = 2"},
    {"require 1 + 1 == 3\n", "", "",
     "t.arch:3:9: error: this requirement does not hold: 1 + 1 == 3: 1 + 1 = 2"},
    {"require .a in [\"u\", \"v\"], \"unknown kind\"\n", "", "t.a = \"su\"",
     "t.arch:3:9: error: unknown kind \"su\""},
    {"f, m = rope_scaled(4, 1000)\n", "", "t.context_length = 8\nt.rope.scaling.type = \"su\"",
     "t.arch:3:8: error: unknown rope.scaling.type \"su\"  (in rope_scaled at prelude.arch:"},
    /* of an error within the prelude the descriptor's line is shown, and no advice that only the prelude could follow */
    {"f, m = rope_scaled(4, 1000)\n", "", "t.rope.scaling.type = \"yarn\"",
     "t.arch:3:8: error: key t.context_length is missing in model.gguf: no operand for '/'  (in "
     "yarn at prelude.arch:"},
    {"f, m = rope_scaled(4, 1000)\n", "", "t.rope.scaling.type = \"yarn\"",
     "\n    3 | f, m = rope_scaled(4, 1000)\n      |        ^^^^^^^^^^^"},
    {"", "x = softcap(x, .cap)\n", "", "^^^^^^^  '\?\? value' sets its default"},
    {"d = digits(.a, 1)\n", "", "t.a = 9007199254740993",
     "t.arch:3:5: error: digits are of whole numbers from 0 to 2^53 - 1  (in digits at "},
    {"d = digits([3, -3], 2)\n", "", "",
     "digits are of whole numbers from 0 to 2^53 - 1  (in digits at "},
    {"d = digits([0.5], 1)\n", "", "",
     "digits are of whole numbers from 0 to 2^53 - 1  (in digits at "},
    {"def mix(x):\n  s = state(size(x))\n  s = s + x\n  return s\n", "x = mix(x)\n", "",
     "t.arch:5:3: error: 's' is a state: assign its new value by 'keep s = ..'  (in mix, called "
     "from t.arch:10:5)"},
    {"def mix(x):\n  s = state(size(x))\n  return s + x\n", "x = mix(x)\n", "",
     "t.arch:4:3: error: state 's' is never given a new value"},
    {"def mix(x):\n  s = state(size(x))\n  keep s = x\n  keep s = x\n  return s\n", "x = mix(x)\n",
     "", "t.arch:6:8: error: state 's' has two 'keep's"},
    {"def mix(x):\n  keep x = x\n  return x\n", "x = mix(x)\n", "",
     "t.arch:4:8: error: 'x' is not a state"},
    {"def mix(x):\n  s = state(4)\n  keep s = x\n  return s\n", "x = mix(x)\n", "",
     "of [n_embd = 8] into the state [4]  (in mix, called from t.arch:10:5)"},
    {"def mix(x):\n  s = state(size(x))\n  keep s = conv(x, x)\n  return s\n", "x = mix(x)\n", "",
     "t.arch:5:12: error: 'recent' has a state, and so does the function that calls it: a function "
     "with a state cannot call another one  (in short_conv at prelude.arch:"},
    {"def mix(x):\n  s = state(size(x))\n  keep s = attention(x, x, x)\n  return s\n",
     "x = mix(x)\n", "", "is not allowed in a function with a state"},
    {"def f(x):\n  y = x\n", "x = f(x)\n", "",
     "t.arch:3:5: error: 'f' ends without 'return'  (in f, called from t.arch:8:5)"},
    {"w [3]\n", "x = rms_norm(x, w, 1)\n", "w.weight [3]",
     "t.arch:7:5: error: the weight is not as long as the rows: size(w) = 3, size(x) = 8  (in "
     "affine at "
     "prelude.arch:"},
};

LONG_TEST(semantics) {
    for (size_t k = 0; k < sizeof semantic / sizeof *semantic; k++) {
        ggl_error err;
        ggl_status s = arch_try(semantic[k].top, semantic[k].body, semantic[k].lines, NULL, &err);
        bool fine = semantic[k].want[0] == 0 && strcmp(semantic[k].body, "logits = x\n") != 0;
        if (semantic[k].want[0] == 0 && !fine)
            continue;
        CHECK_MSG((s == GGL_OK) == fine, "%s%s: %s", semantic[k].top, semantic[k].body, err.msg);
        if (!fine)
            CHECK_HAS(err.msg, semantic[k].want);
    }
}

TEST(logits) {
    static const struct {
        const char *last, *want;
    } list[] = {
        {"logits = x", "t.arch:6:1: error: logits is [n_embd = 8], but must have a score for each "
                       "of n_vocab = 10 tokens"},
        {"logits = 3", "t.arch:6:1: error: logits must be a tensor: it is the number 3"},
        {"if false: logits = x", "error: 'logits' has no value at the end"},
        {"logits = linear(x, token_embd) * 0 + sum(iota(10))", ""},
        {"logits = iota(10)", "t.arch:6:1: error: logits is a constant"},
    };
    model m;
    REQUIRE(model_new(&m, "", "model.gguf"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[512];
        ggl_error err;
        snprintf(text, sizeof text,
                 "arch t\nlanguage 1\nn_embd = .n_embd\ntoken_embd [n_embd, n_vocab]\nx = "
                 "token_embd[token]\n%s\n",
                 list[k].last);
        ggl_status s = arch_build(text, &m, NULL, NULL, &err);
        CHECK_INT(s == GGL_OK, list[k].want[0] == 0);
        CHECK_HAS(err.msg, list[k].want);
    }
    model_free(&m);
}

/* Advice that does not fit. */
TEST(no_advice) {
    static const struct {
        const char *top, *lines, *not_there;
    } list[] = {
        {"f, m = rope_scaled(4, 1000)\n", "t.rope.scaling.type = \"yarn\"",
         "sets its default"}, /* the prelude's key */
        {"require (.a \?\? 1) == 2\n", "t.a = true", "binds tighter"},
        {"require .a == 2\n", "t.a = true", "binds tighter"},
        /* the number of a layer is another one in each */
        {"n = 8\nlayer l < 2:\n  b [n]\n", "blk.0.b.weight [8]\nblk.1.b.weight [1, 8]",
         "1 here is"},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        ggl_error err;
        CHECK(arch_try(list[k].top, "", list[k].lines, NULL, &err) != GGL_OK);
        CHECK_MSG(!strstr(err.msg, list[k].not_there), "%s", err.msg);
    }
}

/* An error about a made-up model says that its values are made up. */
TEST(made_up_values) {
    static const struct {
        const char *top, *want;
    } list[] = {
        {"a = .count\nw [8, a / 3]\n",
         "t.arch:4:7: error: 'a / 3' is 1.33333333333, but a whole number is expected here"},
        {"w [8, .odd_count / 3]\n",
         "\n  This model is made up (t, no optional keys and tensors): t.odd_count = 4. A "
         "'require' in the descriptor can restrict its values."},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        ggl_error err = {0};
        llm_arch *a;
        char *text = arch_text(list[k].top, "");
        REQUIRE_OK(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), &err);
        CHECK(llm_arch_check(a, NULL, &err) != GGL_OK);
        CHECK_HAS(err.msg, list[k].want);
        llm_arch_free(a);
        free(text);
    }
}

/* `not .flag[l]` and `.flag[l] ?? (l == 1)` are about truth values: both are tried. */
TEST(made_up_truth) {
    static const char *const list[] = {
        "layer l < 4:\n  if not .flag[l]: a = 1\n  else: a = 2\n  x = x * a\n",
        "layer l < 4:\n  a = 1 if .flag[l] \?\? (l == 1) else 2\n  x = x * a\n",
        "layer l < 4:\n  if not (.flag[l] \?\? true): x = x * 2\n  x = x * 3\n",
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        ggl_error err = {0};
        char *notes = NULL;
        llm_arch *a;
        char *text = arch_text("", list[k]);
        REQUIRE_OK(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), &err);
        CHECK_OK(llm_arch_check(a, &notes, &err), &err);
        CHECK_MSG(!notes, "%s", notes);
        ggl_free(notes);
        llm_arch_free(a);
        free(text);
    }
}

TEST(family) {
    model m;
    ggl_error err;
    REQUIRE(model_new(&m, "", "model.gguf"));
    CHECK(arch_build("arch u, v\nlanguage 1\nlogits = 1\n", &m, NULL, NULL, &err) == GGL_FORMAT);
    CHECK_HAS(err.msg, "t.arch:1:6: error: model.gguf has the architecture 't', which this "
                       "descriptor does not have");
    model_free(&m);
    llm_arch *a;
    CHECK_INT(llm_arch_open(&a, "lama", &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg,
              "no built-in descriptor for the architecture 'lama' (did you mean 'llama'?)");
    static const char *const other[][2] = {
        {"flux", "makes pictures or films: this engine runs models of text only"},
        {"a", "no built-in descriptor for the architecture 'a'"},
        {"ber", "no built-in descriptor for the architecture 'ber'"},
    };
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        CHECK_INT(llm_arch_open(&a, other[k][0], &err), GGL_NOT_FOUND);
        CHECK_HAS(err.msg, other[k][1]);
    }
}

/* A long line is shown as a window; the caret stands under the place. */
TEST(long_line) {
    char top[2000] = "a = 1";
    ggl_error err;
    for (int k = 0; k < 60; k++)
        strcat(top, " + 1234567");
    strcat(top, " + nope\n");
    CHECK(arch_try(top, "", "", NULL, &err) != GGL_OK);
    CHECK_HAS(err.msg, "t.arch:3:609: error: unknown name 'nope'");
    const char *line = strstr(err.msg, " | "), *caret = strstr(err.msg, "\n      | ");
    REQUIRE(line && caret);
    size_t at = strspn(caret + 9, " ");
    CHECK(strncmp(line + 3 + at, "nope", 4) == 0);
    CHECK(caret[9 + at] == '^');
}

/* No place for an error, no error struct: still a status. */
TEST(no_error_struct) {
    llm_arch *a;
    CHECK_INT(llm_arch_parse(&a, "x", 1, "t.arch", NULL), GGL_FORMAT);
    static const char text[] = "arch t\nlanguage 1\nlogits = .k\n";
    REQUIRE(llm_arch_parse(&a, text, strlen(text), "t.arch", NULL) == GGL_OK);
    CHECK(llm_arch_check(a, NULL, NULL) != GGL_OK);
    llm_arch_free(a);
}

/* Bytes that are not text do not reach the terminal, however many. */
TEST(stray_bytes) {
    char text[1200] = "arch t\nlanguage 1\n";
    ggl_error err = {0};
    llm_arch *a;
    size_t n = strlen(text);
    memset(text + n, 0x80, 700);
    CHECK_INT(llm_arch_parse(&a, text, n + 700, "t.arch", &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "t.arch:3:1: error: the text is not valid UTF-8 here\n    3 | ????");
    strcpy(text + n, "x = 1 + \x1b[31m\n");
    CHECK_INT(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), GGL_FORMAT);
    CHECK(!strchr(err.msg, 0x1b));
    CHECK_HAS(err.msg, "t.arch:3:9: error:");
}

/* Numbers that fit no integer. */
TEST(odd_numbers) {
    static const struct {
        const char *top, *want;
    } list[] = {
        {"w [8] from \"v{big}\"\n", "'{big}' must be the name of a whole number"},
        {"w [8] from \"v{big + 1}\"\n", "{big + 1}: 'big' must be the name of a whole number"},
        {"w [8] from \"v{1 + }\"\n", "{1 + }: '' must be the name of a whole number"},
        {"w [8] from \"v{}\"\n", "'{}' must be the name of a whole number"},
        {"w [8] from \"v{2 - 3}\"\n",
         "{2 - 3} is -1, which cannot be the number of a layer or tensor"},
        {"w [8] from \"v{nan}\"\n", "'{nan}' must be the name of a whole number"},
        {"w [nan]\n", "nan, but a whole number is expected here"},
        {"w [inf]\n", "'inf' is inf; 1 to 2147483647 is allowed here"},
        {"layer l < nan:\n  a = 1\n", "nan, but a whole number is expected here"},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char top[128];
        ggl_error err;
        snprintf(top, sizeof top, "big = 1e99\nnan = inf - inf\n%s", list[k].top);
        CHECK(arch_try(top, "", "", NULL, &err) != GGL_OK);
        CHECK_HAS(err.msg, list[k].want);
    }
    ggl_error err = {0};
    llm_arch *a;
    static const char text[] = "arch t\nlanguage 1e99\n";
    CHECK_INT(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), GGL_UNSUPPORTED);
}
