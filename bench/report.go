package main

import (
	"fmt"
	"io"
	"strconv"

	"lockstep.run/lockstep/bench/measure"
)

// report is everything that a run found out.
type report struct {
	Machine   machine  `json:"machine"`
	Workloads []result `json:"workloads"`
}

// machine says where it was measured.
type machine struct {
	CPUs       int    `json:"cpus"`
	Model      string `json:"model"`
	Platform   string `json:"platform"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	// Load is the number of runnable processes, averaged over the minute before the
	// run: above zero, others were at work.
	Load float64 `json:"loadBefore"`
}

// result has the measurements of one workload.
type result struct {
	Name string `json:"name"`
	measure.Workload
	Raw  measure.RawTimes `json:"raw"`
	Rows []row            `json:"rows"`
}

// row is the outcome of one scenario.
type row struct {
	Scenario string `json:"scenario"`
	measure.Count
	PerObject float64 `json:"requestsPerObject"`
	// Seconds from cause to effect; for rest, its length.
	Seconds float64 `json:"seconds"`
	// RawSeconds is what the bare API server needed for as many creates or deletes,
	// and Raw how many times that the scenario took; 0 where nothing compares.
	RawSeconds float64 `json:"rawSeconds,omitempty"`
	Raw        float64 `json:"ratioToRaw,omitempty"`
	// Served is how much of the seconds was the API server's.
	Served measure.Served `json:"served"`
	// CPUSeconds of the manager, until it was quiet again.
	CPUSeconds float64 `json:"managerCPUSeconds"`
	measure.Memory
	Background  *measure.Background      `json:"background,omitempty"`
	Transitions *measure.TransitionTimes `json:"transitions,omitempty"`
	Neighbours  []measure.NeighbourTimes `json:"neighbours,omitempty"`
	Bytes       *measure.Bytes           `json:"bytes,omitempty"`
	Scrapes     *measure.Scrapes         `json:"scrapes,omitempty"`
	Slices      int                      `json:"slices,omitempty"`
	Stored      *measure.Stored          `json:"stored,omitempty"`
	Profile     []measure.ProfileShare   `json:"profile,omitempty"`
	Budget      []judged                 `json:"budget,omitempty"`
}

// judged is a limit with the measured value.
type judged struct {
	measure.Limit
	Measured float64 `json:"measured"`
	Kept     bool    `json:"kept"`
}

// newRow combines the measurements of a scenario.
func newRow(scenario string, w measure.Workload, raw measure.RawTimes, m measure.Measurement) row {
	r := row{
		Scenario: scenario, Count: m.Count, PerObject: float64(m.Count.Requests) / float64(w.Total()),
		Seconds: m.Span.Seconds(), Served: m.Served, CPUSeconds: m.CPU.Seconds(), Memory: m.Memory,
		Background: m.Background, Transitions: m.Transitions, Neighbours: m.Neighbours, Bytes: m.Bytes, Scrapes: m.Scrapes, Profile: m.Profile,
		Slices: m.Slices, Stored: m.Stored,
	}
	switch scenario {
	case measure.Install, measure.Replay:
		r.RawSeconds = raw.CreateSeconds
	case measure.Delete:
		r.RawSeconds = raw.DeleteSeconds
	}
	if r.RawSeconds > 0 {
		r.Raw = r.Seconds / r.RawSeconds
	}
	for _, l := range measure.Budget(scenario, w, raw, m) {
		r.Budget = append(r.Budget, judged{Limit: l, Measured: m.Value(l.Measure), Kept: len(measure.Exceeded([]measure.Limit{l}, m)) == 0})
	}
	return r
}

// limitOf returns the limit on a measure.
func (r row) limitOf(name string) (float64, bool) {
	for _, l := range r.Budget {
		if l.Measure == name {
			return l.AtMost, true
		}
	}
	return 0, false
}

// exceeded is the number of limits that are not kept.
func (r report) exceeded() int {
	over := 0
	for _, w := range r.Workloads {
		for _, x := range w.Rows {
			for _, l := range x.Budget {
				if !l.Kept {
					over++
				}
			}
		}
	}
	return over
}

func (m machine) print(w io.Writer) {
	fmt.Fprintf(w, "%d CPUs (%s), %s, %s, Kubernetes %s, load %.1f before the run\n", m.CPUs, m.Model, m.Platform, m.Go, m.Kubernetes, m.Load)
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s\n", r.Name, r.Workload)
	if r.Kind != measure.Offers {
		fmt.Fprintf(w, "raw, %d clients, median of %d: %d creates %.2f s, %d deletes %.2f s\n\n",
			r.Raw.Clients, r.Raw.Rounds, r.Total(), r.Raw.CreateSeconds, r.Total(), r.Raw.DeleteSeconds)
	}
	printTable(w, r.times())
	fmt.Fprintln(w)
	printTable(w, r.kinds())
	for _, x := range r.Rows {
		x.printTransitions(w)
		x.printNeighbours(w)
		x.printBytes(w)
		x.printScrapes(w)
		x.printStored(w)
		x.printProfile(w)
	}
}

func (r result) times() [][]string {
	table := [][]string{{
		"scenario", "requests", "at most", "per object", "seconds", "at most", "× raw", "API server", "in flight", "after it", "CPU s", "RssAnon MiB", "RSS MiB", "VmHWM MiB",
	}}
	for _, x := range r.Rows {
		table = append(table, []string{
			x.Scenario, strconv.Itoa(x.Requests), atMost(x, measure.MeasureRequests, "%.0f"), decimals("%.2f", x.PerObject),
			decimals("%.3f", x.Seconds), atMost(x, measure.MeasureSeconds, "%.2f"), decimals("%.2f", x.Raw),
			decimals("%.0f %%", 100*x.Served.Share), decimals("%.1f", x.Served.InFlight), x.background(), x.cpu(),
			inMebibytes(x.RssAnon), inMebibytes(x.RSS), inMebibytes(x.VmHWM),
		})
	}
	return table
}

// cpu is the manager's processor time, where it ran.
func (r row) cpu() string {
	if r.RSS == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", r.CPUSeconds)
}

// background says what came after the effect.
func (r row) background() string {
	if r.Background == nil || r.Background.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %.2f s", r.Background.Requests, r.Background.Seconds)
}

func (r result) kinds() [][]string {
	table := [][]string{{"requests of", "writes", "dry runs", "statuses", "events", "reads", "lists", "(refused)", "apart: watches", "Lease"}}
	for _, x := range r.Rows {
		line := []string{x.Scenario}
		for _, n := range []int{x.Writes, x.DryRuns, x.Statuses, x.Events, x.Reads, x.Lists, x.Refused, x.Watches, x.Leases} {
			line = append(line, strconv.Itoa(n))
		}
		table = append(table, line)
	}
	return table
}

func (r row) printTransitions(w io.Writer) {
	t := r.Transitions
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\n%d transitions, from the arrival of the request that makes the last object of a phase ready, in milliseconds; p99 is %.2f times the watcher's\n\n", t.Count, t.Ratio())
	line := func(what string, q measure.Quantiles) []string {
		return []string{what, fmt.Sprintf("%.1f", q.P50), fmt.Sprintf("%.1f", q.P90), fmt.Sprintf("%.1f", q.P99), fmt.Sprintf("%.1f", q.Max)}
	}
	printTable(w, [][]string{
		{"until", "p50", "p90", "p99", "longest"},
		line("the request is answered", t.Write),
		line("an independent watcher has the event", t.Watcher),
		line("the first write of the next phase arrives", t.Manager),
	})
}

func (r row) printNeighbours(w io.Writer) {
	if len(r.Neighbours) == 0 {
		return
	}
	fmt.Fprintf(w, "\nsmall packages, created together: seconds from creation to Available\n\n")
	table := [][]string{{"small packages", "median", "last", "latest against alone", "large objects before", "and after"}}
	for _, n := range r.Neighbours {
		table = append(table, []string{
			n.Round, fmt.Sprintf("%.2f", n.Median), fmt.Sprintf("%.2f", n.Last), fmt.Sprintf("%+.2f", n.Later), strconv.Itoa(n.Before), strconv.Itoa(n.After),
		})
	}
	printTable(w, table)
}

func (r row) printBytes(w io.Writer) {
	if r.Bytes != nil {
		fmt.Fprintf(w, "\nMiB fetched: %s; published: %s\n", inMebibytes(r.Bytes.Fetched), inMebibytes(r.Bytes.Published))
	}
}

func (r row) printScrapes(w io.Writer) {
	if s := r.Scrapes; s != nil {
		fmt.Fprintf(w, "\n%d scrapes of %d series, at most %d a package, in %.1f KiB: median %.3f s, longest %.3f s\n", s.Number, s.Series, s.OfAPackage, float64(s.Bytes)/(1<<10), s.Median, s.Longest)
	}
}

func (r row) printStored(w io.Writer) {
	if r.Stored != nil && r.Slices > 0 {
		fmt.Fprintf(w, "\nafter %s: %d slices, %d of them written; the largest object is %s with %.1f KiB\n",
			r.Scenario, r.Slices, r.Stored.SlicesWritten, r.Stored.Largest, float64(r.Stored.LargestBytes)/(1<<10))
	}
}

func (r row) printProfile(w io.Writer) {
	if len(r.Profile) == 0 {
		return
	}
	fmt.Fprintf(w, "\nthe manager's %.2f s of processor time in %s; the API server was at work for its requests in %.0f %% of the %.2f s\n\n", r.CPUSeconds, r.Scenario, 100*r.Served.Share, r.Seconds)
	table := [][]string{{"to", "share"}}
	for _, p := range r.Profile {
		table = append(table, []string{p.Work, fmt.Sprintf("%.0f %%", 100*p.Share)})
	}
	printTable(w, table)
}

// document prints everything as a part of a document: the limits first.
func (r report) document(w io.Writer) {
	fmt.Fprintln(w)
	r.Machine.print(w)
	r.printBudget(w)
	for _, res := range r.Workloads {
		res.print(w)
	}
	fmt.Fprintln(w)
}

// printBudget prints every limit with the measured value.
func (r report) printBudget(w io.Writer) {
	table := [][]string{{"workload", "scenario", "measure", "at most", "measured", "kept"}}
	for _, res := range r.Workloads {
		for _, x := range res.Rows {
			for _, l := range x.Budget {
				kept := "yes"
				if !l.Kept {
					kept = "**no**"
				}
				table = append(table, []string{res.Name, x.Scenario, measureNames[l.Measure], inUnit(l.Measure, l.AtMost), inUnit(l.Measure, l.Measured), kept})
			}
		}
	}
	if len(table) == 1 {
		return
	}
	fmt.Fprintf(w, "\nBudget: %d limits, %d not kept\n\n", len(table)-1, r.exceeded())
	printTable(w, table)
}

var measureNames = map[string]string{
	measure.MeasureRequests: "requests",
	measure.MeasureChanges:  "writes, statuses, events",
	measure.MeasureSeconds:  "seconds",
	measure.MeasureRssAnon:  "RssAnon, MiB",
	measure.MeasureP50:      "p50, ms",
	measure.MeasureP99Ratio: "p99 by the watcher's",
	measure.MeasureLargest:  "largest object, KiB",
	measure.MeasureSlices:   "slices written",
	measure.MeasureLater:    "seconds later than alone",

	measure.MeasureSeries:        "series of a package",
	measure.MeasureScrapeBytes:   "scrape, KiB",
	measure.MeasureScrapeSeconds: "scrape, seconds",
}

// inUnit prints a value as its measure is named.
func inUnit(name string, value float64) string {
	switch name {
	case measure.MeasureLargest, measure.MeasureScrapeBytes:
		return fmt.Sprintf("%.1f", value/(1<<10))
	case measure.MeasureRequests, measure.MeasureChanges, measure.MeasureSlices, measure.MeasureSeries:
		return fmt.Sprintf("%.0f", value)
	case measure.MeasureRssAnon:
		return inMebibytes(int64(value))
	case measure.MeasureSeconds, measure.MeasureScrapeSeconds:
		return fmt.Sprintf("%.3f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}
