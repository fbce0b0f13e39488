int missing();
int main() { return missing(); }
