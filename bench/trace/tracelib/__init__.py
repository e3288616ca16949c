"""What the scripts of bench/trace share."""
