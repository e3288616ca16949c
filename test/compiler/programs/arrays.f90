! What Fortran does with memory that faults cannot foresee: gathers, scatters, chains of pointers, whole arrays. Some 40
! MiB; prints digests.
module lists
  implicit none
  type :: link
    integer(8) :: key = 0
    type(link), pointer :: next => null()
  end type
end module

program arrays
  use lists
  implicit none
  integer(8), parameter :: n = 1000000, links = 300000
  integer(8), allocatable :: values(:), places(:)
  real(8), allocatable :: x(:), matrix(:, :)
  type(link), pointer :: first, made
  integer(8) :: i, j, total
  real(8) :: sum_of_x

  allocate (values(n), places(n), x(n), matrix(500, 500))
  do i = 1, n
    places(i) = mod(i * 2654435761_8, n) + 1
    values(i) = ieor(i, 77_8)
    x(i) = real(mod(i, 1000_8), 8)
  end do
  total = 0
  do i = 1, n
    total = ieor(total * 31, values(places(i)))
  end do
  print *, total
  do i = 1, n, 3
    x(places(i)) = x(places(i)) + real(values(i), 8)
  end do
  x(2:n) = x(2:n) * 0.5_8 + x(1:n - 1)
  sum_of_x = 0
  do i = n, 1, -1
    sum_of_x = sum_of_x * 0.5_8 + x(i)
  end do
  print *, sum_of_x
  do j = 1, 500
    do i = 1, 500
      matrix(i, j) = real(mod(i * j, 17_8), 8)
    end do
  end do
  matrix = transpose(matrix) + matmul(matrix, matrix)
  print *, sum(matrix), maxval(matrix(:, 7))

  nullify (first)
  do i = 1, links
    allocate (made)
    made%key = i * 7
    made%next => first
    first => made
  end do
  total = 0
  do while (associated(first))
    total = total * 3 + first%key
    made => first%next
    deallocate (first)
    first => made
  end do
  print *, total
end program
