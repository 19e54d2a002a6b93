#include <gtest/gtest.h>

#include "slurm/commands.h"

namespace paceline {
namespace {

std::string poll_state(const ElementStates& states, std::int64_t job, int element) {
  const auto found = states.find({job, element});
  return found == states.end() ? "none" : found->second.state + "|" + found->second.detail;
}

TEST(JobStates, Squeue) {
  const ElementStates states = parse_squeue(
      "5_[2-7%2]|PENDING|JobArrayTaskLimit\n5_0|RUNNING|None\n5_1|COMPLETING|None\n"
      "6_[1,4,6-8]|PENDING|Priority\n9|RUNNING|None\nnonsense\n");
  EXPECT_EQ(states.size(), 13U);
  EXPECT_EQ(poll_state(states, 5, 7), "PENDING|JobArrayTaskLimit");
  EXPECT_EQ(poll_state(states, 5, 0), "RUNNING|None");
  EXPECT_EQ(poll_state(states, 6, 6), "PENDING|Priority");
  EXPECT_EQ(poll_state(states, 6, 5), "none");
  EXPECT_EQ(poll_state(states, 9, 0), "none");
  EXPECT_TRUE(states.at({5, 1}).in_queue());
  EXPECT_TRUE(states.at({5, 2}).pending());
  EXPECT_FALSE(states.at({5, 0}).pending());
}

// The last element to start carries the array's own id; steps are not elements.
TEST(JobStates, Sacct) {
  const ElementStates states = parse_sacct(
      "5_0|COMPLETED|0:0|n1\n5_1|FAILED|71:0|n2\n5_1.batch|FAILED|71:0|n2\n5_1.0|FAILED|137:0|n2\n"
      "5_2|CANCELLED by 1000|0:15|n1\n5_3|TIMEOUT|0:0|n[1-2]\n5_4|OUT_OF_ME+|0:125|n1\n"
      "5_[5-6]|PENDING|0:0|None assigned\n");
  EXPECT_EQ(states.size(), 7U);
  EXPECT_EQ(poll_state(states, 5, 0), "COMPLETED|on n1");
  EXPECT_EQ(poll_state(states, 5, 1), "FAILED|exit code 71:0, on n2");
  EXPECT_EQ(poll_state(states, 5, 2), "CANCELLED|exit code 0:15, on n1");
  EXPECT_EQ(poll_state(states, 5, 3), "TIMEOUT|on n[1-2]");
  EXPECT_EQ(poll_state(states, 5, 6), "PENDING|");
  EXPECT_FALSE(states.at({5, 2}).in_queue());
  EXPECT_EQ(poll_state(states, 5, 4), "OUT_OF_MEMORY|exit code 0:125, on n1");
  const ElementStates cut = parse_sacct(
      "5_0|CANCELLED+|0:0|\n5_1|NODE_FAIL|1:0|n1\n5_2|REQUEUED|0:0|n1\n5_3|REQUEUE_H+|0:0|\n"
      "5_4|COMPLETED+|0:0|n1\n");
  EXPECT_EQ(poll_state(cut, 5, 0), "CANCELLED|");
  EXPECT_EQ(poll_state(cut, 5, 1), "NODE_FAIL|exit code 1:0, on n1");
  EXPECT_TRUE(cut.at({5, 2}).pending() && cut.at({5, 3}).pending());
  EXPECT_EQ(poll_state(cut, 5, 4), "COMPLETED|on n1");
}

TEST(JobStates, ScontrolAndTheFileOfCompletedJobs) {
  const ElementStates shown = parse_job_lines(
      "JobId=18 ArrayJobId=5 ArrayTaskId=0 JobName=a JobState=RUNNING Reason=None ExitCode=0:0 "
      "NodeList=n1\n"
      "JobId=5 ArrayJobId=5 ArrayTaskId=7 JobName=a JobState=FAILED Reason=NonZeroExitCode "
      "ExitCode=3:0 NodeList=n2\n"
      "JobId=5 ArrayJobId=5 ArrayTaskId=2-4,6%2 JobName=a JobState=PENDING Reason=Resources\n"
      "JobId=44 JobName=plain JobState=RUNNING\n");
  EXPECT_EQ(shown.size(), 6U);
  EXPECT_EQ(poll_state(shown, 5, 0), "RUNNING|on n1");
  EXPECT_EQ(poll_state(shown, 5, 7), "FAILED|exit code 3:0, on n2");
  EXPECT_EQ(poll_state(shown, 5, 6), "PENDING|Resources");
  // A job that was put back has a line a turn: the last one counts.
  const ElementStates completed = parse_job_lines(
      "JobId=18 UserId=root(0) Name=a JobState=NODE_FAIL ArrayJobId=5 ArrayTaskId=0 NodeList=n1 "
      "ExitCode=0:0\n"
      "JobId=18 UserId=root(0) Name=a JobState=COMPLETED ArrayJobId=5 ArrayTaskId=0 NodeList=n2 "
      "ExitCode=0:0\nJobId=3 JobState=COMPLETED ArrayJobId= ArrayTaskId= ExitCode=0:0\n");
  EXPECT_EQ(completed.size(), 1U);
  EXPECT_EQ(poll_state(completed, 5, 0), "COMPLETED|on n2");
}

}  // namespace
}  // namespace paceline
