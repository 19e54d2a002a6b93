// Downloads published data sets: resumable, verified, and atomic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace paceline {

// The files that `paceline data fetch` knows: URLs, sizes, and published checksums. docs/data.md
// has the source of each number.

struct PublishedFile {
  std::string name;  // also the last part of its URL
  std::string base;  // the URL without the name and the slash
  std::uint64_t bytes = 0;
  std::string algorithm;  // "sha256" or "md5", as published
  std::string digest;     // hexadecimal
};

struct PublishedSet {
  std::string name, about;
  std::vector<PublishedFile> files;
  // For archives: the folder to keep, and its approximate size in bytes.
  std::string folder;
  std::uint64_t unpacked_bytes = 0;

  std::uint64_t bytes() const;
};

const std::vector<PublishedSet>& published_sets();
const PublishedSet& published_set_at(const std::string& name);  // throws usage

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
// usage for a mirror that is no URL, and options that do not apply to the set.
std::string describe_fetch(const PublishedSet& set, const FetchOptions& options);

// Returns a line that describes the result. If the network fails, partial files stay in
// OUT/.partial for the next call. Archives are unpacked into an empty OUT. Throws input naming the
// URL or file: no space, no network, wrong size or checksum, an archive that writes elsewhere, an
// existing file.
std::string fetch_set(const PublishedSet& set, const FetchOptions& options);

// Downloads one file over HTTP, with retries.

// Resumes after the existing bytes of `partial` with an HTTP Range request, and leaves exactly
// `bytes` bytes there. Restarts if the server does not support ranges. Uses the proxies of the
// environment (https_proxy, no_proxy). Throws input naming the URL and the cause; the received data
// is kept.
void download(const std::string& url, const std::filesystem::path& partial, std::uint64_t bytes,
              const FetchOptions& options);

// Digest of a file's content as lower-case hexadecimal digits. `algorithm` is "sha256" or "md5".
// Calls `progress` with the bytes read so far. Throws input if the file cannot be read.
std::string file_digest(
    const std::filesystem::path& file, const std::string& algorithm,
    const std::function<void(double)>& progress = [](double) {});

}  // namespace paceline
