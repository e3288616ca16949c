# The work of the Perl test: perl_work.pl SCALE SEED prints `check: value` lines.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use List::Util qw(sum0 shuffle);
use Storable qw(freeze thaw dclone);

my ($scale, $state) = @ARGV;
$| = 1;

sub draw { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return $state; }
sub show { print "$_[0]: $_[1]\n"; }

my %table;
for my $n (1 .. 150_000 * $scale) {
  my @parts = map { draw() % 1000 } 1 .. 3;
  $table{"key-" . draw() % 400_000} = { number => $n, name => sprintf("%08x", draw()), parts => \@parts };
}

sub digest {
  my ($table) = @_;
  my $sha = Digest::SHA->new(256);
  $sha->add($_, $table->{$_}{number}, $table->{$_}{name}, @{ $table->{$_}{parts} }) for sort keys %$table;
  return $sha->hexdigest;
}

show("hash", digest(\%table));

my @children;
for my $child (1 .. 3) {  # they read and change their copy while the parent changes its own
  my $pid = open(my $pipe, "-|") // die "fork: $!";
  if (!$pid) {
    my $begin = digest(\%table);
    $_->{number} *= $child + 1 for values %table;
    print "$begin ", digest(\%table), "\n";
    exit 0;
  }
  push @children, $pipe;
}
$_->{number} += 7 for values %table;
for my $child (1 .. 3) {
  chomp(my $line = readline $children[$child - 1]);
  close $children[$child - 1] or die "child $child: status $?";
  show("child $child", $line);
}
show("hash after the children", digest(\%table));

my @keys = sort { $table{$a}{name} cmp $table{$b}{name} || $a cmp $b } keys %table;
show("sorted", sha256_hex(join ",", @keys));
my $text = join " ", map { "$_=$table{$_}{name}" } @keys;
my $found = () = $text =~ /([0-9a-f])\1\1/g;
(my $changed = $text) =~ s/(\w+)-(\d+)/$2:$1/g;
show("matches", $found);
show("replaced", sha256_hex($changed));
my $copy = thaw(freeze(\%table));
show("thawed", digest($copy));
show("cloned", digest(dclone($copy)));
my $packed = pack("(N/a*)*", @keys);
show("packed", sha256_hex($packed));
show("unpacked", join(",", unpack("(N/a*)*", $packed)) eq join(",", @keys) ? "equal" : "different");
delete @table{ @keys[0 .. @keys / 2] };
$table{"new-$_"} = { number => $_, name => "x" x ($_ % 90), parts => [] } for 1 .. 60_000 * $scale;
show("after deletions", digest(\%table));
show("system", `printf %s hello`);
