#include "workloads/workload.h"

namespace paceline {

Workload make_gpt2_124m() {
  // 50,257 tokens, filled up to a multiple of 64 as nanoGPT and llm.c do.
  Workload workload = gpt_workload("gpt2-124m", "GPT-2 small: 12 layers, width 768, context 1024",
                                   {12, 12, 768, 1024, 50304}, "openwebtext");
  workload.defaults.set("batch_per_replica", std::int64_t{4});
  workload.defaults.set("learning_rate", 0.0006);
  workload.defaults.set("beta2", 0.95);
  return workload;
}

}  // namespace paceline
