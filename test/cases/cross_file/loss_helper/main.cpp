#include "../../cases.h"
#include "losses.h"

static torch::Tensor logits() { return torch::randn({4, 3}, torch::kCUDA); }
static torch::Tensor labels() { return torch::randint(3, {4}, torch::kLong); }

void focal_with_host_labels_bad() { losses::focal(logits(), labels()); }
void focal_with_moved_labels_ok() { losses::focal(logits(), labels().to(torch::kCUDA)); }
void dice_moves_for_itself_ok() { losses::dice(logits(), labels()); }
void weighted_moves_for_itself_ok() { losses::weighted(logits(), labels()); }

DT_MAIN(focal_with_host_labels_bad, focal_with_moved_labels_ok, dice_moves_for_itself_ok,
        weighted_moves_for_itself_ok)
