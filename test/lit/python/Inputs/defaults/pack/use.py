import pack
from pack import ops

print(pack, ops)
