/* The search of fit_min_tmpl.h for four runs at once, on every processor. */
#define FIT(name) name##_four
#include "fit_min_tmpl.h"
