/* What llm-train prints, and the picture of the losses. */
#ifndef TOOLS_TRAIN_SHOW_H
#define TOOLS_TRAIN_SHOW_H

#include <stdio.h>

#include "common/drawing.h"
#include "llm/train.h"

/* Prints what was opened. */
void train_show_facts(const llm_training_facts *f, bool is_adapter);
/* Prints a line about a step. */
void train_show_step(const llm_training_report *r);
/* Writes it as a JSON object and a line feed. */
void train_log_step(FILE *out, const llm_training_report *r);
/* Describes the losses of all steps so far. */
void train_curve(drawing *d, const llm_training *t);

#endif
