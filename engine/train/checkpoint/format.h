// A checkpoint is a folder, complete under its name or not there:
//
//   manifest.json             what it is of, how far it is, each file's size and checksum
//   parameters.safetensors    parameters by canonical name and layout, and the mean over ranks of
//   the
//                             running averages of batch_norm: a whole model, for any reader
//   optimizer.safetensors     "NAME/first" and "NAME/second": what the optimizer keeps of parameter
//                             NAME (update.h: a and b); absent where it keeps nothing
//   statistics.safetensors    "rank-0/NAME": each rank's own running averages; absent without
//                             batch_norm
//
// Values have the device's real type (F32, of the reference device F64), so nothing is rounded.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "engine/core/memory.h"
#include "engine/device/device.h"
#include "engine/plan/plan.h"
#include "engine/train/checkpoint/manifest.h"

namespace paceline {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kParametersFile[] = "parameters.safetensors";

// The host's copy of what a program carries from step to step, in the device's layout.
struct Snapshot {
  Memory parameters, first, second;   // arenas; the optimizer's may be empty
  std::vector<std::byte> statistics;  // of all ranks, an arena each
};

// Which files: a model alone, or all that a run needs to go on.
enum class CheckpointContent { model, everything };

// Writes the folder, whole or not at all; a folder of that name is replaced. `program` only
// converts layouts, and may be computing. Fills in manifest.files. Returns the bytes. Throws input
// where the file system does not take it.
std::size_t write_checkpoint(const std::filesystem::path& folder, const Snapshot& snapshot,
                             const Program& program, const Plan& plan, CheckpointManifest& manifest,
                             CheckpointContent content);

// Throws input: no checkpoint, or a manifest that is damaged.
CheckpointManifest read_manifest(const std::filesystem::path& folder);

// Compares sizes and checksums. Throws input naming the first file that is missing, cut short or
// altered.
void verify_checkpoint(const std::filesystem::path& folder, const CheckpointManifest& manifest);

// All of it into `snapshot`, whose arenas are made as the plan has them; statistics of
// manifest.ranks ranks. Throws input naming file and tensor where it is not as the plan wants it.
void read_checkpoint(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                     const Program& program, const Plan& plan, int optimizer_arenas,
                     Snapshot& snapshot);

}  // namespace paceline
