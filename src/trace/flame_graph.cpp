#include "trace/flame_graph.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "trace/exports.hpp"

namespace hinterland::trace {
namespace {

constexpr double kSmallest = 1e-5;  // share of all faults below which nodes are left out

struct Faults {
  std::array<double, kFaultKinds> by_kind{};
  double all = 0;
  void add(const std::array<double, kFaultKinds>& kinds, double sum) {
    for (std::size_t i = 0; i < kFaultKinds; ++i) by_kind[i] += kinds[i];
    all += sum;
  }
};

std::string text_of(const Frame& frame) {
  std::string where = frame.file.empty() ? frame.module : frame.file + ":" + std::to_string(frame.line);
  return without_arguments(frame.function) + (frame.inlined ? " (inlined)" : "") +
         (where.empty() ? "" : " \u2014 " + where);
}

class Texts {
 public:
  std::uint32_t of(const std::string& text) {
    auto [at, fresh] = by_text_.try_emplace(text, static_cast<std::uint32_t>(texts.size()));
    if (fresh) texts.push_back(text);
    return at->second;
  }
  // Symbols give out one frame for an address, again and again.
  std::uint32_t of(const Frame* frame) {
    auto [at, fresh] = by_frame_.try_emplace(frame, 0);
    if (fresh) at->second = of(text_of(*frame));
    return at->second;
  }
  std::vector<std::string> texts;

 private:
  std::unordered_map<const Frame*, std::uint32_t> by_frame_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
};

// The stacks in the order of their paths: each node of the tree is then a stretch of them, and needs no memory.
class Paths {
 public:
  Paths(const TraceFile& trace, const Profile& profile, Symbols& symbols) : faults_(trace.stacks.size()) {
    root_ = texts.of(std::string("all faults"));
    for (const CallStack& stack : profile.stacks) faults_[stack.stack].add(stack.faults, stack.all);
    for (std::uint32_t stack = 0; stack < faults_.size(); ++stack) {
      if (faults_[stack].all == 0) continue;
      Path path{stack, static_cast<std::uint32_t>(frames_.size()), 0};
      for (const Frame* frame : frames_of(trace.stacks[stack], symbols)) frames_.push_back(texts.of(frame));
      path.length = static_cast<std::uint32_t>(frames_.size() - path.first);
      paths_.push_back(path);
    }
    std::sort(paths_.begin(), paths_.end(), [this](const Path& a, const Path& b) {
      auto order = std::lexicographical_compare_three_way(frames(a).begin(), frames(a).end(), frames(b).begin(),
                                                          frames(b).end());
      return order != 0 ? order < 0 : a.stack < b.stack;
    });
  }
  std::string tree() {
    Node root{root_, 0, paths_.size(), {}};
    for (const Path& path : paths_) root.faults.add(faults_[path.stack].by_kind, faults_[path.stack].all);
    smallest_ = kSmallest * root.faults.all;
    write(root, 0);
    return std::move(json_);
  }
  Texts texts;

 private:
  struct Path {
    std::uint32_t stack, first, length;  // of frames_
  };
  struct Node {
    std::uint32_t text;
    std::size_t begin, end;  // of paths_
    Faults faults;
  };

  std::span<const std::uint32_t> frames(const Path& path) const { return {&frames_[path.first], path.length}; }

  std::vector<Node> children_of(const Node& node, std::size_t depth) const {
    std::vector<Node> children;
    for (std::size_t i = node.begin; i < node.end; ++i) {
      if (paths_[i].length <= depth) continue;  // it ends in the node
      std::uint32_t text = frames_[paths_[i].first + depth];
      if (children.empty() || children.back().text != text) children.push_back({text, i, i, {}});
      children.back().end = i + 1;
      children.back().faults.add(faults_[paths_[i].stack].by_kind, faults_[paths_[i].stack].all);
    }
    std::erase_if(children, [this](const Node& child) { return child.faults.all < smallest_; });
    std::stable_sort(children.begin(), children.end(),
                     [](const Node& a, const Node& b) { return a.faults.all > b.faults.all; });
    return children;
  }

  // The frames from this one on that all of its faults go through, as JSON; the children of the last one. The end of
  // a stack is mostly such a row, and most of a large tree are ends of stacks.
  std::string row_from(const Node& node, std::size_t& depth, std::vector<Node>& children) const {
    std::string row = std::to_string(node.text);
    children = children_of(node, depth);
    const bool alone = !is_row(node, children);
    while (is_row(node, children)) {
      const Node only = children.front();
      row += ',' + std::to_string(only.text);
      children = children_of(only, ++depth);
    }
    return alone ? row : '[' + row + ']';
  }
  static bool is_row(const Node& node, const std::vector<Node>& children) {
    return children.size() == 1 && children.front().faults.by_kind == node.faults.by_kind;
  }

  void write(const Node& node, std::size_t depth) {
    std::vector<Node> children;
    json_ += '[' + row_from(node, depth, children) + ",[";
    auto last = std::find_if(node.faults.by_kind.rbegin(), node.faults.by_kind.rend(),
                             [](double faults) { return std::llround(faults) != 0; });
    for (auto kind = node.faults.by_kind.begin(); kind != last.base(); ++kind)
      json_ += (kind == node.faults.by_kind.begin() ? "" : ",") + std::to_string(std::llround(*kind));
    json_ += "],[";
    bool first = true;
    for (const Node& child : children) {
      if (!first) json_ += ',';
      first = false;
      write(child, depth + 1);
    }
    json_ += "]]";
  }

  std::uint32_t root_ = 0;
  std::vector<Faults> faults_;  // by stack of the trace
  std::vector<Path> paths_;
  std::vector<std::uint32_t> frames_;  // of all paths, outermost first
  double smallest_ = 0;
  std::string json_;
};

}  // namespace

FlameGraph make_flame_graph(const TraceFile& trace, const Profile& profile, Symbols& symbols) {
  Paths paths(trace, profile, symbols);
  std::string tree = paths.tree();
  return {std::move(paths.texts.texts), std::move(tree)};
}

}  // namespace hinterland::trace
