"""What the whole-program tests, the demo and the program benchmark share. Standard library only."""
