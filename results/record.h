// One run record, as README.md of this folder describes it: typed access over its JSON.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/layout.h"
#include "results/parameters.h"

namespace paceline {

constexpr int kRecordSchema = 1;
constexpr std::size_t kRecordLimitBytes = 32 << 10;

class Record {
 public:
  // Checks the schema and every value that is used in arithmetic: finite, positive where it must
  // be. Throws input with `where` and the key.
  Record(Json json, std::string where);
  ~Record();
  Record(const Record&);
  Record(Record&&) noexcept;
  Record& operator=(Record&&) noexcept;

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }  // the file it came from

  std::string kind() const;  // measured, published, ...
  std::string study() const;
  std::string point() const;   // Point::text() of the axes that vary
  std::string status() const;  // completed, failed, timeout, preempted
  std::string reason() const;
  std::string identity() const;
  std::string data_hash() const;
  std::string build() const;  // version, commit and dirty flag
  std::string session() const;
  int repeat() const;
  int attempt() const;
  int round() const;
  bool completed() const { return status() == "completed"; }
  bool is_control() const;  // made to be compared with runs of an equal point, never a result
  bool flag(const char* name) const;  // resumed, oversubscribed, throttled, traced...

  Point parameters() const;  // every known parameter that the record gives
  std::string workload() const;
  Layout layout() const;
  std::optional<double> number(const std::string& pointer) const;  // "/timing/fit_seconds"

 private:
  std::unique_ptr<Json> json_;
  std::string where_;
};

// Throws input: unreadable, over 32 KB, cut short, not a record, a newer schema.
Record read_record(const std::filesystem::path& file);

}  // namespace paceline
