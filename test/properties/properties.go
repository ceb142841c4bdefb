// Package properties runs property tests (pgregory.net/rapid) with the same random cases each time,
// so that a red build is caused by the change in it.
package properties

import (
	"flag"
	"strconv"
	"testing"
)

// Main runs the tests of a package with a fixed seed and checks cases for each property, unless
// flags override this. After a change of the engine's core, and before a release, run some hundred
// thousand other cases with -rapid.checks=200000 -rapid.seed=0.
func Main(m *testing.M, checks int) {
	Set(checks)
	m.Run()
}

// Set does what Main does before it runs the tests, for a TestMain with further steps.
func Set(checks int) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.seed": "20261127"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}
