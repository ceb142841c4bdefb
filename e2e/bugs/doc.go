// Command bugs shows that the tests can fail. Each patch in this folder breaks
// one of the invariants of docs/development/invariants.md on purpose, in the engine's sources; its
// header names the tests that have to notice:
//
//	# Bug: the next phase is opened although an earlier one is not ready
//	# Invariant: 1
//	# Caught by: go test ./internal/controllers/objectdeployments -run ^TestEngine$
//	# Says: phase \d+ of \S+ was opened
//
// Bug is in plain words; further lines of it are indented. Caught by and Says come
// in pairs, as many as there are tests: the test fails, and a line of its output
// matches the regular expression, so that no broken build and no other failure
// counts. One is a test of the package, best the simulation, and one is a test on an
// API server.
//
// A patch is applied to copies of the files that it touches, and the go command reads
// those instead (-overlay in GOFLAGS). So the checkout is never changed, and the manager
// that an end-to-end test builds has the bug, too.
//
//	./task bugs                        every bug, every test (needs the sandbox's binary)
//	./task bugs -- -level unit         only what needs no control plane
//	./task bugs -- -only 03,11         some of them
//	./task bugs -- -baseline           the same tests without a bug: they have to pass
//	./task bugs -- -list               the table alone
//
// The patches have little context and are found wherever it is. One that does not
// apply any more is rewritten: change the sources as the header says, and take
// git diff -U2. A bug that no test notices is a gap of the tests, not of the patch.
//
// The table is short: a bug or two for each promise. What tests of the pure packages
// notice is the business of ./task mutate, which makes its bugs itself.
package main
