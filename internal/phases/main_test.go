package phases_test

import (
	"flag"
	"os"
	"testing"
)

// simulations is how many random runs of each property are made unless
// -rapid.checks says otherwise: a few seconds' worth. Before a release, and after
// a change of the core, run some hundred thousand.
const simulations = "2000"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", simulations); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
