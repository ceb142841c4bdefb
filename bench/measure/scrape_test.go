package measure

import (
	"testing"
	"testing/synctest"
	"time"
)

// A read that is late, since the one before took longer than the interval, takes no longer for that.
func TestScrapesThatAreLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := []time.Duration{9 * scrapeInterval / 4, scrapeInterval / 4, scrapeInterval / 4}
		got := scrapeFor(t.Context(), 17*scrapeInterval/4, func() string {
			time.Sleep(reads[0])
			reads = reads[1:]
			return "# HELP a\na 1\nb 2\n"
		})
		if want := (Scrapes{Number: 3, Series: 2, Bytes: 17, Median: 0.25, Longest: 2.25}); *got != want {
			t.Errorf("got %+v, want %+v", *got, want)
		}
	})
}
