/* Unpacks quantized weights with NEON. */
#include "lanes_neon.h"
#include "unpack_neon.h"

#include "../quant/interleave_tmpl.h"
