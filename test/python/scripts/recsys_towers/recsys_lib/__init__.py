"""Small implicit feedback toolbox."""
