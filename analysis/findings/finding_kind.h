// What a sentence of `report` and `explain` says: its name in JSON, and the condition under which
// it is printed, which tests/laboratory/explain_test.cpp checks against data of known laws.
// docs/findings.md is made of these rows.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

enum class FindingKind {
#define FINDING(name, condition) name,
#include "analysis/findings/finding_kinds.def"
#undef FINDING
};

std::string_view to_string(FindingKind kind);

// docs/findings.md
std::string findings_markdown();

}  // namespace paceline
