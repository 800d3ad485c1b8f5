// Command report judges a run of Kubernetes' own tests of sig-network: it reads ginkgo's
// report, prints which tests passed, failed, and were left out with the reason of each,
// and ends with 1 when one failed. A test that was neither run nor left out for a stated
// reason counts as failed: none goes missing in silence.
//
//	conformance-report --excluded excluded.txt report.json                judge a run
//	conformance-report --excluded excluded.txt --record run.json ...      and keep it
//	conformance-report --from run.json --insert page.md                   put a kept run into a document
package main
