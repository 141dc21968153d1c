/* llm-tokenize, between its files. */
#ifndef TOOLS_TOKENIZE_TOOL_H
#define TOOLS_TOKENIZE_TOOL_H

/* `llm-tokenize train`: makes a tokenizer from texts. argv[0] is the command's name. Returns the exit code. */
int tokenize_train(int argc, char **argv);

#endif
