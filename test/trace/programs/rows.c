/* Sums of rows of a matrix, taken at random, a row being some pages. rows ROWS LOOKUPS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 2048 };

__attribute__((noinline)) static double row_sum(const double* row, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += row[i];
  }
  return sum;
}

int main(int count, char** arguments) {
  size_t rows = count > 1 ? strtoul(arguments[1], NULL, 10) : 1024,
         lookups = count > 2 ? strtoul(arguments[2], NULL, 10) : 2000;
  double* matrix = malloc(rows * VALUES * sizeof *matrix);
  if (matrix == NULL) return 3;
  for (size_t i = 0; i < rows * VALUES; ++i) matrix[i] = (double)(i % 100);
  uint64_t state = 1;
  double sum = 0;
  for (size_t i = 0; i < lookups; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    sum += row_sum(matrix + (state >> 33) % rows * VALUES, VALUES);
  }
  printf("%.0f\n", sum);
  free(matrix);
  return 0;
}
