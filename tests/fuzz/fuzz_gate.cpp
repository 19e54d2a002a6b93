// Google Benchmark's JSON and records from untrusted files, through the gate and the explanation:
// the first part is a file of benchmarks, the others are records.
#include "analysis/explain/explain.h"
#include "analysis/gate/render.h"
#include "engine/core/error.h"
#include "tests/fuzz/parts.h"

namespace {

using namespace paceline;

void judge_against_itself(const Side& side) {
  const Judgement judgement = judge(side, side, {});
  const Document document = gate_document(judgement, {});
  to_text(document);
  to_markdown(document);
  to_json_text(document);
  gate_junit(judgement, {});
  gate_annotations(judgement);
  github_action_json(side);
}

template <typename Act>
void unless_refused(Act act) {
  try {
    act();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzFolder benchmarks, records;
  std::vector<std::string_view> parts = split_path(data, size);
  benchmarks.fill({"b.json"}, {parts.front()});
  parts.erase(parts.begin());
  records.fill({"1.1.json", "2.1.json", "3.1.json"}, parts);
  unless_refused([] {
    judge_against_itself(read_google_benchmark("baseline", benchmarks.path() / "b.json"));
  });
  unless_refused([] { judge_against_itself(read_side("baseline", {records.path()})); });
  unless_refused([] {
    const StoreContent content = load_store(records.path());
    to_text(explanation_document(explain(content, Base::matched)), {.details = true});
    to_json_text(explanation_document(explain(content, Base::best)));
  });
  return 0;
}
