// Package fuzzing is shared by the fuzz targets of the project: seeds from the examples,
// and the invariants of every answer to hostile input.
//
// A target is a function FuzzX in a file x_fuzz_test.go beside the code. Its doc comment
// names the invariants, and ends with a line that names the files it is for:
//
//	// Code: layer.go, name.go
//
// Its corpus is in testdata/fuzz/FuzzX. `go test` runs the corpus, ./task test:fuzz a
// short search, and ./task fuzz a long one, with coverage guidance.
//
// Targets are quick: small inputs, no files, no network. Where a limit allows a
// second of work, they hand in a context that ends earlier ([Context]) and judge
// only what ended in time.
package fuzzing
