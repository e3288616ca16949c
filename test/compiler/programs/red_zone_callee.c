// What red_zone_caller.c calls: compiled with the plug-in, so that it has hints.
struct node {
  struct node* next;
  long value;
  long rest[62];
};

long steps(struct node* node, long from) {
  unsigned long sum = (unsigned long)from;
  for (int i = 0; i < 20; ++i) {
    sum = sum * 5 + (unsigned long)node->value;
    node = node->next;
  }
  return (long)sum;
}
