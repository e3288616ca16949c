#include "trace/memory_curve.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "trace/replay.hpp"

namespace hinterland::trace {
namespace {

constexpr std::array kTimesRecorded = {1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0};
constexpr unsigned kThreadsMax = 4;  // each with a model of all pages

std::uint64_t fetches_of(const TraceFile& trace, const ReplayOptions& settings, std::uint64_t faults_max) {
  Replay replay(settings);
  std::uint64_t left = faults_max;
  trace.for_each_fault([&](const FaultRecord& fault) {
    if (left > 0) replay.fault(fault), --left;
  });
  return replay.result().fetches;
}

}  // namespace

std::vector<CurvePoint> memory_curve(const TraceFile& trace, std::uint64_t faults_max) {
  ReplayOptions recorded = recorded_settings(trace);
  if (recorded.policy == nullptr || recorded.local_bytes == 0) return {};
  recorded.outlook = std::make_shared<const ReplayOutlook>(trace, faults_max);
  std::array<CurvePoint, kTimesRecorded.size()> points;
  std::atomic<std::size_t> next{0}, needed{points.size()};
  auto work = [&] {
    // Relaxed: who takes which point is all that is agreed on; the points are read after the threads have ended.
    for (std::size_t i;
         (i = next.fetch_add(1, std::memory_order_relaxed)) < needed.load(std::memory_order_relaxed);) {
      ReplayOptions settings = recorded;
      settings.local_bytes =
          static_cast<std::uint64_t>(static_cast<double>(recorded.local_bytes) * kTimesRecorded[i]);
      points[i] = {settings.local_bytes, fetches_of(trace, settings, faults_max)};
      if (points[i].fetches == 0) needed.store(i + 1, std::memory_order_relaxed);
    }
  };
  std::vector<std::jthread> threads;
  unsigned cpus = std::clamp(std::thread::hardware_concurrency(), 1u, kThreadsMax);
  for (unsigned i = 1; i < cpus; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  std::vector<CurvePoint> curve;
  for (const CurvePoint& point : points) {
    if (point.local_bytes == 0) break;
    curve.push_back(point);
    if (point.fetches == 0) break;
  }
  return curve;
}

}  // namespace hinterland::trace
