// Package scale measures what a node costs with many Services: 10,000 with 10 endpoints
// each unless LACE_SCALE_SERVICES says otherwise.
//
//	go test -run '^$' -bench . -benchtime 20x ./bench/scale
//
// One operation is the change of one endpoint, from saving the file to every worker
// going by the new tables. Beside it are reported the time from starting the agent with
// a full folder to the tables in use, and the resident memory of both processes.
package scale
