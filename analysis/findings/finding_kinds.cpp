#include "analysis/findings/findings.h"

namespace paceline {

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::runs_differ:
      return "runs_differ";
    case FindingKind::survivors:
      return "survivors";
    case FindingKind::own_nodes:
      return "own_nodes";
    case FindingKind::own_session:
      return "own_session";
    case FindingKind::sessions_differ:
      return "sessions_differ";
    case FindingKind::sessions_alike:
      return "sessions_alike";
    case FindingKind::rounds_trend:
      return "rounds_trend";
    case FindingKind::slow_first_round:
      return "slow_first_round";
    case FindingKind::rounds_resemble:
      return "rounds_resemble";
    case FindingKind::one_session:
      return "one_session";
    case FindingKind::speed_ups:
      return "speed_ups";
    case FindingKind::slower_than_one:
      return "slower_than_one";
    case FindingKind::no_loss:
      return "no_loss";
    case FindingKind::hidden_loss:
      return "hidden_loss";
    case FindingKind::above_ideal:
      return "above_ideal";
    case FindingKind::steady:
      return "steady";
    case FindingKind::grows:
      return "grows";
    case FindingKind::falls:
      return "falls";
    case FindingKind::uneven:
      return "uneven";
    case FindingKind::unclear:
      return "unclear";
    case FindingKind::unjudged:
      return "unjudged";
    case FindingKind::phases:
      return "phases";
    case FindingKind::causes_alike:
      return "causes_alike";
    case FindingKind::too_few_sizes:
      return "too_few_sizes";
    case FindingKind::speed_up_bound:
      return "speed_up_bound";
    case FindingKind::peak:
      return "peak";
    case FindingKind::settings:
      return "settings";
    case FindingKind::lower_quality:
      return "lower_quality";
    case FindingKind::left_out:
      return "left_out";
    case FindingKind::implied_samples:
      return "implied_samples";
    case FindingKind::control:
      return "control";
  }
  return "?";
}

}  // namespace paceline
