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

// The series of a package are its own and those of its revisions, apart from those of a package of the same name elsewhere.
func TestSeriesOfAPackage(t *testing.T) {
	t.Parallel()
	var got Scrapes
	got.count(`# HELP a b
go_goroutines 5
lockstep_package_summary{pko_name="shop",pko_namespace="a",summary="Available",version=""} 1
package_operator_package_revision{pko_name="shop",pko_namespace="a"} 1
package_operator_object_set_created_timestamp_seconds{pko_name="shop-1",pko_namespace="a",pko_package_instance="shop"} 1
lockstep_package_summary{pko_name="shop",pko_namespace="",summary="Available",version=""} 1
`)
	if got.Series != 5 || got.OfAPackage != 3 {
		t.Errorf("got %+v", got)
	}
}
