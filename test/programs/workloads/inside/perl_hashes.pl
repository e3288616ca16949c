# The work of the Perl test of large hashes: perl_hashes.pl KEYS SEED prints `check: value` lines.
use strict;
use warnings;
use Digest::SHA;

my ($keys, $state) = @ARGV;
$| = 1;
$ENV{PERL_HASH_SEED} eq "0" or die "PERL_HASH_SEED must be 0, so that hashes lie the same in each run\n";

# Texts are drawn by a product modulo a prime, so that every run has the same.
sub draw { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return $state; }
sub show { print "$_[0]: $_[1]\n"; }

my (%number_of, %keys_of, %lists);
for my $n (1 .. $keys) {
  my $key = sprintf("%08x-%d", draw(), $n % 97);
  $number_of{$key} = $n;
  push @{ $lists{ draw() % ($keys / 4 + 1) } }, $key;
}
show("keys", scalar keys %number_of);

# Few keys are looked up often, most hardly ever, as in counts of words.
my @all = sort keys %number_of;
my $sum = 0;
for my $round (1 .. 10 * @all) {
  my $key = $all[@all * (draw() / 2**31)**4];
  $sum = ($sum * 31 + $number_of{$key}) % 1000003;
  $number_of{$key} += $round if $round % 5 == 0;
}
show("looked up", $sum);

$keys_of{ $number_of{$_} % 5003 }{$_} = 1 for @all;
show("inverted", join ",", map { scalar keys %{ $keys_of{$_} } } (sort { $a <=> $b } keys %keys_of)[0 .. 9]);

my $sha = Digest::SHA->new(256);
my @some = @all[grep { $_ % 16 == 0 } 0 .. $#all];
$sha->add($_, "=", $number_of{$_}, "\n") for sort { $number_of{$a} <=> $number_of{$b} || $a cmp $b } @some;
show("by value", $sha->hexdigest);

delete $number_of{$_} for grep { $number_of{$_} % 3 == 0 } @all;
$sha = Digest::SHA->new(256);
for my $list (grep { $_ % 8 == 0 } sort { $a <=> $b } keys %lists) {
  $sha->add("$list:", map { $number_of{$_} // "gone" } sort @{ $lists{$list} });
}
show("lists", $sha->hexdigest);
