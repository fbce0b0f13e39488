"""Versions of libraries, which programs compare with what they need."""

import dt


@dt.models(
    "packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version", "pkg_resources.packaging.version.parse"
)
class Version:
    def __init__(self, version=None):
        self.version = version

    def __ge__(self, other):
        return dt.is_newer(self.version, other.version)

    def __gt__(self, other):
        return dt.is_newer(self.version, other.version)

    def __le__(self, other):
        return dt.is_newer(other.version, self.version)

    def __lt__(self, other):
        return dt.is_newer(other.version, self.version)


@dt.models(
    "accelerate.utils.is_*_version",
    "diffusers.utils.is_*_version",
    "peft.import_utils.is_*_version",
    "transformers.utils.is_*_version",
)
def is_version(operation, version):
    if operation in (">=", ">"):
        return dt.is_newer(dt.unknown(), version)
    if operation in ("<=", "<"):
        return dt.is_newer(version, dt.unknown())
    return dt.unknown()
