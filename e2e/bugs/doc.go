// Command bugs shows that the tests can fail. Each patch in this folder changes the engine's
// sources and breaks one of the invariants of docs/development/invariants.md on purpose. Its
// header names the tests that have to notice:
//
//	# Bug: the next phase is opened although an earlier one is not ready
//	# Invariant: 1
//	# Caught by: go test ./internal/controllers/objectdeployments -run ^TestEngine$
//	# Says: phase \d+ of \S+ was opened
//
// The first line describes the bug in plain words; its continuation lines are indented. The
// last two lines form a pair, and there is one pair per test: the test has to fail, and a
// line of its output has to match the regular expression, so that a broken build or another
// failure does not count. One test belongs to the package, preferably the simulation, and one
// runs on an API server.
//
// The command applies a patch to copies of the files, and the go command reads the copies
// instead (-overlay in GOFLAGS). So the checkout never changes, and the manager that an
// end-to-end test builds has the bug, too.
//
//	./task bugs                        every bug, every test (needs the sandbox's binary)
//	./task bugs -- -level unit         only tests that need no control plane
//	./task bugs -- -only 03,11         some of them
//	./task bugs -- -baseline           the same tests without a bug: they have to pass
//	./task bugs -- -list               only print the table
//
// The patches have little context, so they still apply after lines have moved. If a patch no
// longer applies, rewrite it: change the sources as its header describes, and use
// git diff -U2. A bug that no test notices is a gap in the tests, not in the patch.
//
// The table is short: a bug or two for each promise. For the tests of pure packages,
// ./task mutate generates bugs.
package main
