import torch

import pack.ops

torch.set_default_tensor_type(torch.cuda.FloatTensor)
print(pack.ops)
