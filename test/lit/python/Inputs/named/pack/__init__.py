"""Its modules are called as libraries are."""
