/* Where llm_transcribe begins: the numbers of openai/whisper and whisper.cpp. */
#include "llm/senses.h"

#include "ggl/internal/params.h"

void llm_transcribe_fill_default(llm_transcribe_params *p, size_t size) {
    const llm_transcribe_params d = {.size = sizeof d,
                                     .temperature_step = 0.2f,
                                     .least_logprob = -1,
                                     .no_speech = 0.6f,
                                     .most_ratio = 2.4f,
                                     .vad_threshold = 0.5f,
                                     .vad_min_speech_duration_ms = 250,
                                     .vad_min_silence_duration_ms = 100,
                                     .vad_speech_pad_ms = 30,
                                     .vad_samples_overlap = 0.1f};
    ggl_params_fill(p, size, &d, sizeof d);
}
