package objectdeployments

import (
	"flag"
	"os"
	"testing"
)

// What the properties run with unless a flag says otherwise: some seconds'
// worth of random runs, the same ones each time, so that a red build is about
// the change in it. Before a release, and after a change of the core, run some
// hundred thousand others: -rapid.checks=200000 -rapid.seed=0.
var defaults = map[string]string{
	"rapid.checks": "400",
	"rapid.seed":   "20261121",
}

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range defaults {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
