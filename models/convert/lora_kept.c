/* How much of a change is left after rounding; see llm/internal/lora_folder.h. */
#include <math.h>
#include <stdio.h>

#include "llm/internal/lora_folder.h"

double llm_lora_share(double change, double lost) {
    return change > 0 && lost < INFINITY ? fmax(0, 1 - lost / change) : 1;
}

void llm_lora_keep(llm_lora_kept *k, const char *name, double change, double lost) {
    const double share = llm_lora_share(change, lost);
    if (!(change > 0))
        return;
    if (k->change == 0 || share < k->least) {
        k->least = share;
        snprintf(k->weight, sizeof k->weight, "%s", name);
    }
    k->change += change;
    k->lost += lost;
}
