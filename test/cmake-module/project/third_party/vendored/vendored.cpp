int vendored() { return 1; }
