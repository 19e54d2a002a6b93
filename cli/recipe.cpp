#include "cli/recipe.h"

#include <fmt/format.h>

#include <string>

#include "engine/core/error.h"

namespace paceline {

namespace {

// A parameter that says something only beside a value of another one.
void check_only_with(const Point& p, const char* name, bool wanted, const char* of,
                     const char* fix) {
  if (wanted || !p.find(name)) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}", name, of), "",
              fmt::format("leave {} out, or {}", name, fix));
}

void default_schedule(Point& p) {
  const std::string schedule = p.text("schedule").value_or("constant");
  const bool step = schedule == "step", polynomial = schedule == "polynomial";
  check_only_with(p, "decay_epochs", step, "of schedule step", "give --schedule step");
  check_only_with(p, "decay_factor", step, "of schedule step", "give --schedule step");
  check_only_with(p, "power", polynomial, "of schedule polynomial", "give --schedule polynomial");
  check_only_with(p, "end_rate", polynomial || schedule == "cosine",
                  "of schedules cosine and polynomial", "give --schedule cosine");
  if (step) {
    if (!p.find("decay_epochs")) {
      throw Error(ErrorKind::usage, "schedule step needs the epochs where the rate falls", "",
                  "give --decay-epochs, as 30,60,80");
    }
    decay_epochs_of(*p.text("decay_epochs"));
    p.set_default("decay_factor", 0.1);
  }
  if (polynomial || schedule == "cosine") p.set_default("end_rate", 0.0);
  if (polynomial) p.set_default("power", 1.0);
  const auto warmup = p.real("warmup_epochs");
  const auto epochs = p.integer("epochs");
  if (warmup && epochs && *warmup > static_cast<double>(*epochs)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("a warm-up of {} epochs is longer than the training of {}", *warmup, *epochs),
        "", "warm up for fewer epochs, or train longer");
  }
}

void check_gradients(const Point& p) {
  check_only_with(p, "weight_decay_form", p.find("weight_decay") != nullptr, "of weight_decay",
                  "give --weight-decay");
  if (p.real("clip_norm").value_or(0) > 0 && p.real("clip_value").value_or(0) > 0) {
    throw Error(ErrorKind::usage, "gradients are clipped by clip_norm or by clip_value", "",
                "give one of them");
  }
}

void check_goal(const Point& p) {
  if (const auto until = p.text("until")) goal_of(*until);
  for (const char* name : {"until", "evaluate_every"}) {
    check_only_with(p, name, p.text("evaluate") == "epoch", "for evaluations after epochs",
                    "give --evaluate epoch");
  }
}

// One spelling, as it is part of a point's identity.
void default_augmentation(Point& p, const Shape& sample) {
  const auto text = p.text("augment");
  if (!text) return;
  const Augmentation augmentation = augmentation_of(*text);
  check_augmentation(augmentation, sample.height, sample.width);
  p.set("augment", text_of(augmentation));
}

ScheduleSpec schedule_spec_of(const Point& p) {
  ScheduleSpec spec;
  spec.decay = decay_of(p.text("schedule").value_or("constant"));
  spec.warmup_epochs = p.real("warmup_epochs").value_or(0);
  if (const auto epochs = p.text("decay_epochs")) spec.decay_epochs = decay_epochs_of(*epochs);
  spec.decay_factor = p.real("decay_factor").value_or(spec.decay_factor);
  spec.end_rate = p.real("end_rate").value_or(spec.end_rate);
  spec.power = p.real("power").value_or(spec.power);
  return spec;
}

}  // namespace

void default_recipe(Point& p, const Shape& sample) {
  default_augmentation(p, sample);
  default_schedule(p);
  check_gradients(p);
  check_goal(p);
  if (p.find("weight_decay")) p.set_default("weight_decay_form", std::string("decoupled"));
}

void set_recipe(TrainConfig& config, const Point& p) {
  config.schedule = schedule_spec_of(p);
  config.weight_decay = p.real("weight_decay").value_or(0);
  config.decoupled_decay = p.text("weight_decay_form") != "l2";
  config.clip_norm = p.real("clip_norm").value_or(0);
  config.clip_value = p.real("clip_value").value_or(0);
  config.evaluate_every = static_cast<int>(p.integer("evaluate_every").value_or(1));
  if (const auto until = p.text("until")) config.until = goal_of(*until);
  config.accumulate = static_cast<int>(p.integer("accumulate").value_or(1));
  if (const auto augment = p.text("augment")) config.augment = augmentation_of(*augment);
}

}  // namespace paceline
