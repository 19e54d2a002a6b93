#include "run/frameworks.h"

#include <string>

#include "engine/core/text.h"
#include "engine/launch/program.h"

namespace paceline {

namespace {

constexpr double kImportSeconds = 120;

struct Framework {
  const char* name;
  const char* script;  // prints its version and what it can communicate by
};

constexpr Framework kFrameworks[] = {
    {"PyTorch",
     "import torch, torch.distributed as d\n"
     "have = d.is_available()\n"
     "by = [n for n in ('gloo', 'nccl', 'mpi') if have and getattr(d, 'is_%s_available' "
     "% n)()]\n"
     "print(torch.__version__, 'with', ', '.join(by) or 'no backend', 'and',"
     " torch.cuda.device_count(), 'GPUs')"},
    {"TensorFlow",
     "import tensorflow as t\n"
     "print(t.__version__, 'with', len(t.config.list_physical_devices('GPU')),"
     " 'GPUs')"},
    {"Horovod",
     "import horovod\n"
     "print(horovod.__version__)"},
    {"JAX",
     "import jax\n"
     "print(jax.__version__, 'with', len(jax.devices()), jax.default_backend(),"
     " 'devices')"},
};

// The script's last line tells: a version, or the exception's name and text.
std::string answer(const std::string& python, const Framework& framework) {
  const std::string guarded =
      "import os, sys\n"
      "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\n"
      "sys.stderr = open(os.devnull, 'w')\n"
      "try:\n exec(sys.argv[1])\n"
      "except ModuleNotFoundError as e:\n print('not installed')\n"
      "except BaseException as e:\n"
      " print('cannot be imported:', type(e).__name__, e)\n";
  const std::string text =
      capture_output({python, "-c", guarded, framework.script}, kImportSeconds);
  const std::vector<std::string> lines = split(trim(text), '\n');
  return lines.back().empty() ? "cannot be imported: python3 ended without a word" : lines.back();
}

}  // namespace

Section frameworks_here(const Environment& environment) {
  Section section{"frameworks", {}};
  const auto python = find_program("python3", environment);
  if (!python) {
    section.facts.push_back({"python3", "not on the PATH"});
    return section;
  }
  section.facts.push_back({"python3", python->string()});
  for (const Framework& framework : kFrameworks) {
    section.facts.push_back({framework.name, answer(python->string(), framework)});
  }
  return section;
}

}  // namespace paceline
