// Downloads published files: checked, resumed, whole or not there.
#pragma once

#include <filesystem>
#include <string>

#include "engine/input/prepare/published_sets.h"

namespace paceline {

struct FetchOptions {
  std::filesystem::path out;
  std::string mirror;     // a URL instead of each file's own; empty: none
  bool tfrecord = false;  // class folders become TFRecord shards
  bool quiet = false;
  int retries = 6;           // after failures that may pass
  double pause_seconds = 1;  // before the first retry; doubles with each
  int stalled_seconds = 60;  // without a byte: a failure
  int threads = 1;           // that write shards
};

// Where a file comes from under these options.
std::string url_of(const PublishedFile& file, const FetchOptions& options);

// A line for each file with URL, size and checksum, and the room needed; starts nothing. Throws
// usage for options that do not fit the set.
std::string describe_fetch(const PublishedSet& set, const FetchOptions& options);

// Returns a line for people: what is there now. Partial files stay in OUT/.partial for the next
// call when the network fails. What an archive holds comes into an OUT that has nothing else.
// Throws input naming the URL or the file: no room, no network, a size or checksum that differs, an
// archive that would write elsewhere, a name that is taken.
std::string fetch_set(const PublishedSet& set, const FetchOptions& options);

}  // namespace paceline
