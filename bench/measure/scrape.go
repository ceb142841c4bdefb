package measure

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// scrapeInterval is how often the scenario Scrape reads the metrics.
const scrapeInterval = time.Second

// Scrapes are the reads of the manager's metrics in the scenario Scrape.
type Scrapes struct {
	Number int `json:"number"`
	// Series and Bytes are those of the last one.
	Series int `json:"series"`
	Bytes  int `json:"bytes"`
	// OfAPackage is how many of them a package has with its revisions, at most.
	OfAPackage int `json:"seriesOfAPackage"`
	// Median and Longest are the seconds that one took.
	Median  float64 `json:"medianSeconds"`
	Longest float64 `json:"longestSeconds"`
}

// scrape: the metrics are read while nothing happens.
func (c *Cluster) scrape() Measurement {
	c.tb.Helper()
	var scrapes *Scrapes
	m := c.measure(func() ([]sandbox.Entry, Span) {
		start := time.Now()
		scrapes = scrapeFor(c.tb.Context(), c.o.Rest, func() string { return harness.Metrics(c.tb, c.metrics) })
		return c.since(), Span{Start: start, End: time.Now()}
	})
	m.Scrapes = scrapes
	return m
}

// scrapeFor reads metrics for a while.
func scrapeFor(ctx context.Context, rest time.Duration, read func() string) *Scrapes {
	scrapes, took := &Scrapes{}, []float64{}
	ticks := time.NewTicker(scrapeInterval)
	defer ticks.Stop()
	for start := time.Now(); time.Since(start) < rest && ctx.Err() == nil; {
		select {
		case <-ticks.C:
			begun := time.Now() // the tick may have waited for the read before
			text := read()
			took = append(took, time.Since(begun).Seconds())
			scrapes.count(text)
		case <-ctx.Done():
		}
	}
	if slices.Sort(took); len(took) > 0 {
		scrapes.Number, scrapes.Median, scrapes.Longest = len(took), took[len(took)/2], took[len(took)-1]
	}
	return scrapes
}

var labels = regexp.MustCompile(`(pko_\w+)="([^"]*)"`)

// count counts the series of a read.
func (s *Scrapes) count(text string) {
	s.Bytes, s.Series, s.OfAPackage = len(text), 0, 0
	packages := map[[2]string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		s.Series++
		of := map[string]string{}
		for _, label := range labels.FindAllStringSubmatch(line, -1) {
			of[label[1]] = label[2]
		}
		// pko_name of the series of a revision is the revision's.
		if name := cmp.Or(of["pko_package_instance"], of["pko_name"]); name != "" {
			key := [2]string{of["pko_namespace"], name}
			packages[key]++
			s.OfAPackage = max(s.OfAPackage, packages[key])
		}
	}
}
