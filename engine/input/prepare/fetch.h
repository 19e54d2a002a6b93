// Downloads published data sets: resumable, verified, and atomic.
#pragma once

#include <filesystem>
#include <string>

#include "engine/input/prepare/published_sets.h"

namespace paceline {

struct FetchOptions {
  std::filesystem::path out;
  std::string mirror;     // replaces the URL of each file; empty: none
  bool tfrecord = false;  // converts class folders to TFRecord shards
  bool quiet = false;
  int retries = 6;           // after temporary failures
  double pause_seconds = 1;  // before the first retry; doubles each time
  int stalled_seconds = 60;  // without data until it counts as a failure
  int threads = 1;           // for writing shards
};

// The URL of a file with these options.
std::string make_url(const PublishedFile& file, const FetchOptions& options);

// One line per file with URL, size and checksum, and the required space. Downloads nothing. Throws
// usage for options that do not apply to the set.
std::string describe_fetch(const PublishedSet& set, const FetchOptions& options);

// Returns a line that describes the result. If the network fails, partial files stay in
// OUT/.partial for the next call. Archives are unpacked into an empty OUT. Throws input naming the
// URL or file: no space, no network, wrong size or checksum, an archive that writes elsewhere, an
// existing file.
std::string fetch_set(const PublishedSet& set, const FetchOptions& options);

}  // namespace paceline
