#include "workloads/workload.h"

namespace paceline {

Workload make_gpt_tiny() {
  Workload workload =
      gpt_workload("gpt-tiny", "text by bytes, GPT of 4 layers, width 256, context 128",
                   {4, 4, 256, 128, 256}, "text");
  workload.defaults.set("batch_per_replica", std::int64_t{16});
  workload.defaults.set("learning_rate", 0.001);
  return workload;
}

}  // namespace paceline
