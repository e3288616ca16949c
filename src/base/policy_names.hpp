// The policies that come with Hinterland, a row each: the option table, the registry (policy/policies.hpp) and what
// is tried of them all are made from it. The default comes first.
#pragma once

// X(the policy's table, which its file in src/policy/ defines; the name that users give, which the table has, too)
#define HL_POLICIES(X)                    \
  X(kLearnerPolicy, "learner")            \
  X(kSecondChancePolicy, "second-chance") \
  X(kFifoPolicy, "fifo")                  \
  X(kLruPolicy, "lru")                    \
  X(kPriorityPolicy, "priority")          \
  X(kSievePolicy, "sieve")                \
  X(kS3FifoPolicy, "s3-fifo")             \
  X(kTwoQueuePolicy, "2q")                \
  X(kArcPolicy, "arc")                    \
  X(kLirsPolicy, "lirs")                  \
  X(kWTinyLfuPolicy, "w-tinylfu")         \
  X(kMglruPolicy, "mglru")
