int single() { return 1; }
