"""Names that a file which exports the same names could not use."""

builtin = struct(CcInfo = CcInfo, cc_common = cc_common)
