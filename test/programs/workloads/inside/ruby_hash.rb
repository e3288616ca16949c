# The work of the Ruby test: ruby_hash.rb ENTRIES SEED prints `check: value` lines.
entries, state = ARGV.map(&:to_i)

# Drawn by a product modulo a power of two, so that every run has the same.
lists = Hash.new { |hash, key| hash[key] = [] }
entries.times do
  state = (state * 1103515245 + 12345) & 0x7fffffff
  lists[state % (entries / 6 + 1)] << state.to_s
end
puts "keys: #{lists.size}"
puts "sum: #{lists.values.map { |list| list.map(&:to_i).sum }.sum}"
puts "first: #{lists.keys.sort.first(5).inspect}"
$stdout.flush
child = fork { puts "last, sorted by a child: #{lists.values.flatten.sort.last}" }
Process.wait(child)
puts "longest: #{lists.max_by { |key, list| [list.size, key] }[0]}"
exit($?.exitstatus)
