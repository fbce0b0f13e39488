// The report, its options and the exit status.
//
// RUN: %python %S/../Inputs/expect_status.py 1 %device-tidy %s %tiny | FileCheck %s --check-prefixes=CHECK,WARNING
// RUN: %python %S/../Inputs/expect_status.py 1 %device-tidy --warnings-as-errors=* %s %tiny \
// RUN:   | FileCheck %s --check-prefixes=CHECK,ERROR
// RUN: %python %S/../Inputs/expect_status.py 0 %device-tidy --checks=-device-discarded-move %s %tiny | count 0
//
// --output moves the report to a file, --quiet leaves nothing on the terminal.
// RUN: %python %S/../Inputs/expect_status.py 1 %device-tidy --quiet --output=%t.txt %s %tiny 2>&1 | count 0
// RUN: FileCheck %s --check-prefixes=CHECK,WARNING --input-file=%t.txt
// RUN: %python %S/../Inputs/expect_status.py 2 %device-tidy --output=%t.none/x %s %tiny 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOFILE
//
// The summary goes to standard error.
// RUN: not %device-tidy %s %tiny 2>&1 >%t.out | FileCheck %s --check-prefix=SUMMARY
#include <torch/torch.h>

void move(torch::Tensor state) {
	state.cuda(); // a tab in front
}
// CHECK:   {{^}}{{/.*}}report.cpp:[[@LINE-2]]:{{[0-9]+}}:
// WARNING-SAME: warning: the result of 'cuda' is discarded{{.*}}'state'{{.*}} [device-discarded-move]{{$}}
// ERROR-SAME:   error: the result of 'cuda' is discarded{{.*}}'state'{{.*}} [device-discarded-move]{{$}}
// CHECK-NEXT: {{^ +}}[[@LINE-5]] |         state.cuda(); // a tab in front
// CHECK-NEXT: {{^ +\| +[~]*\^}}
// CHECK-NEXT: note: nothing uses 'state' after this: store or return the result of 'cuda'
// NOFILE: error: cannot write {{.*}}x: No such file or directory
// SUMMARY: device-tidy: 1 finding in 1 file; 1 translation unit analysed
