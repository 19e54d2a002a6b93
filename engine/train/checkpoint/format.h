// A checkpoint is a folder that appears complete or not at all:
//
//  - manifest.json: what it is of, how far it is, each file's size and checksum;
//  - parameters.safetensors: parameters by canonical name and layout, and the mean over ranks of
//    the running averages of batch_norm: a whole model, for any reader;
//  - optimizer.safetensors: "NAME/first" and "NAME/second", what the optimizer keeps of parameter
//    NAME (update.h: a and b); absent if it keeps nothing;
//  - statistics.safetensors: "rank-0/NAME", each rank's own running averages; absent without
//    batch_norm.
//
// Values have the device's real type (F32; F64 on the reference device), so nothing is rounded.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/core/memory.h"
#include "engine/device/device.h"
#include "engine/plan/plan.h"
#include "engine/train/checkpoint/manifest.h"

namespace paceline {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kParametersFile[] = "parameters.safetensors";

// The host's copy of a program's state, in the device's layout.
struct Snapshot {
  Memory parameters, first, second;   // arenas; the optimizer's may be empty
  std::vector<std::byte> statistics;  // of all ranks, one arena each
};

// The mean over ranks, in the order of ranks, of arenas of floats or doubles that lie one behind
// the other.
std::vector<std::byte> mean_of_ranks(std::span<const std::byte> all, int ranks, DType real);

// The model alone, or everything needed to resume.
enum class CheckpointContent { model, everything };

// Throws input if something is there that is not a checkpoint: it would be lost.
void check_replaceable(const std::filesystem::path& folder);

// Writes the folder atomically, replacing an existing checkpoint. `program` only converts layouts,
// and may be computing. Sets manifest.files. Returns the number of bytes. Throws input if the file
// system fails, and as check_replaceable().
std::size_t write_checkpoint(const std::filesystem::path& folder, const Snapshot& snapshot,
                             const Program& program, const Plan& plan, CheckpointManifest& manifest,
                             CheckpointContent content);

// Throws input if it is not a checkpoint or its manifest is damaged.
CheckpointManifest read_manifest(const std::filesystem::path& folder);

// Checks sizes and checksums. Throws input naming the first file that is missing, cut short or
// modified.
void verify_checkpoint(const std::filesystem::path& folder, const CheckpointManifest& manifest);

// Throws usage if it is a model without the state that a run of this plan and optimizer resumes
// from.
void check_has_state(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                     const Plan& plan, int optimizer_arenas);

// Reads everything into `snapshot`, whose arenas are allocated for the plan; statistics for
// manifest.ranks ranks. Throws input naming file and tensor if they do not match the plan.
void read_checkpoint(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                     const Program& program, const Plan& plan, int optimizer_arenas,
                     Snapshot& snapshot);

}  // namespace paceline
