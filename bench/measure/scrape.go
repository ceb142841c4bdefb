package measure

import (
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
	// Median and Longest are the seconds that one took.
	Median  float64 `json:"medianSeconds"`
	Longest float64 `json:"longestSeconds"`
}

// scrape: the metrics are read while nothing happens.
func (c *Cluster) scrape() Measurement {
	c.tb.Helper()
	scrapes, took := &Scrapes{}, []float64{}
	m := c.measure(func() ([]sandbox.Entry, Span) {
		ticks := time.NewTicker(scrapeInterval)
		defer ticks.Stop()
		start := time.Now()
		for time.Since(start) < c.o.Rest {
			select {
			case begun := <-ticks.C:
				text := harness.Metrics(c.tb, c.metrics)
				took = append(took, time.Since(begun).Seconds())
				scrapes.Bytes, scrapes.Series = len(text), 0
				for line := range strings.Lines(text) {
					if !strings.HasPrefix(line, "#") {
						scrapes.Series++
					}
				}
			case <-c.tb.Context().Done():
				return c.since(), Span{Start: start, End: time.Now()}
			}
		}
		return c.since(), Span{Start: start, End: time.Now()}
	})
	if slices.Sort(took); len(took) > 0 {
		scrapes.Number, scrapes.Median, scrapes.Longest = len(took), took[len(took)/2], took[len(took)-1]
	}
	m.Scrapes = scrapes
	return m
}
