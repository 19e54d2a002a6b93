// The formats, a file each.
#pragma once

#include "results/import/format.h"

namespace paceline {

bool is_nccl_tests(std::string_view text);
ImportContent read_nccl_tests(const ForeignFile& file);
bool is_osu(std::string_view text);
ImportContent read_osu(const ForeignFile& file);
bool is_jobstats(std::string_view text);
ImportContent read_jobstats(const ForeignFile& file);
bool is_horovod_timeline(std::string_view text);
ImportContent read_horovod_timeline(const ForeignFile& file);
bool is_google_benchmark(std::string_view text);
ImportContent read_google_benchmark_file(const ForeignFile& file);
bool is_mlperf(std::string_view text);
ImportContent read_mlperf(const ForeignFile& file);
bool is_csv_table(std::string_view text);
ImportContent read_csv_table(const ForeignFile& file);

}  // namespace paceline
