// Package fuzzing is shared by the fuzz targets of the project: it has seeds from the examples, and
// the invariants of every answer to hostile input.
//
// A target is a function FuzzX in a file x_fuzz_test.go next to the code. Its doc comment names the
// invariants, and ends with a line that names the files it covers:
//
//	// Code: layer.go, name.go
//
// Its corpus is in testdata/fuzz/FuzzX. `go test` runs the corpus, ./task test:fuzz a short search,
// and ./task fuzz a long one, with coverage guidance.
//
// Targets are quick: small inputs, no files, no network. If a limit permits a second of work, they
// pass a context that ends earlier ([Context]) and judge only inputs that ended in time.
package fuzzing
