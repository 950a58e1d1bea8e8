"""What machine code elsewhere in the package still needs of the machine."""
