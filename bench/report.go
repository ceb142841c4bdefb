package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// report is everything that a run found out.
type report struct {
	Machine   machine  `json:"machine"`
	Workloads []result `json:"workloads"`
}

// machine says where it was measured.
type machine struct {
	CPUs       int    `json:"cpus"`
	Platform   string `json:"platform"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	// Load is the number of runnable processes, averaged over the minute before the
	// run: above zero, others were at work.
	Load float64 `json:"loadBefore"`
}

// result is what was measured with one workload.
type result struct {
	workload
	Raw  rawTimes `json:"raw"`
	Rows []row    `json:"rows"`
}

// rawTimes are the times that the bare API server needs, medians of Rounds.
type rawTimes struct {
	Clients       int     `json:"clients"`
	Rounds        int     `json:"rounds"`
	CreateSeconds float64 `json:"createSeconds"`
	DeleteSeconds float64 `json:"deleteSeconds"`
}

func (m machine) print(w io.Writer) {
	fmt.Fprintf(w, "%d CPUs, %s, %s, Kubernetes %s, load %.1f before the run\n", m.CPUs, m.Platform, m.Go, m.Kubernetes, m.Load)
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s of %d objects in %s\n", plural(r.Packages, "package"), r.Objects, plural(r.Phases, "phase"))
	fmt.Fprintf(w, "raw, %d clients, median of %d: %d creates %.2f s, %d deletes %.2f s\n\n",
		r.Raw.Clients, r.Raw.Rounds, r.total(), r.Raw.CreateSeconds, r.total(), r.Raw.DeleteSeconds)
	printTable(w, r.times())
	fmt.Fprintln(w)
	printTable(w, r.kinds())
	for _, line := range r.exceeded() {
		fmt.Fprintln(w, line)
	}
}

func (r result) times() [][]string {
	table := [][]string{{"scenario", "requests", "at most", "per object", "seconds", "at most", "× raw", "CPU s", "RssAnon MiB", "RSS MiB", "VmHWM MiB"}}
	for _, x := range r.Rows {
		table = append(table, []string{
			x.Scenario, strconv.Itoa(x.Requests), atMost(x, measureRequests, "%.0f"), decimals("%.2f", x.PerObject),
			decimals("%.3f", x.Seconds), atMost(x, measureSeconds, "%.2f"), decimals("%.2f", x.Raw), fmt.Sprintf("%.2f", x.CPUSeconds),
			inMebibytes(x.RssAnon), inMebibytes(x.RSS), inMebibytes(x.VmHWM),
		})
	}
	return table
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

// exceeded says in words what is over budget.
func (r result) exceeded() []string {
	var lines []string
	limits := 0
	for _, x := range r.Rows {
		limits += len(x.Budget)
		for _, l := range x.exceeded() {
			got, most := fmt.Sprintf("%.3g", x.measured(l.Measure)), fmt.Sprintf("%.3g", l.AtMost)
			switch l.Measure {
			case measureRssAnon:
				got, most = inMebibytes(int64(x.measured(l.Measure)))+" MiB", inMebibytes(int64(l.AtMost))+" MiB"
			case measureRequests, measureWrites:
				got, most = fmt.Sprintf("%.0f", x.measured(l.Measure)), fmt.Sprintf("%.0f", l.AtMost)
			}
			lines = append(lines, fmt.Sprintf("over budget: %s: %s %s, at most %s", x.Scenario, strings.TrimSuffix(l.Measure, "Bytes"), got, most))
		}
	}
	if len(lines) == 0 && limits > 0 {
		return []string{"", fmt.Sprintf("all %d limits are kept", limits)}
	}
	return append([]string{""}, lines...)
}

// printTable prints Markdown; the first line of cells is the head.
func printTable(w io.Writer, table [][]string) {
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range table {
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(w, "| %s%s |", cell, pad)
			} else {
				fmt.Fprintf(w, " %s%s |", pad, cell)
			}
		}
		fmt.Fprintln(w)
		if n == 0 {
			fmt.Fprintf(w, "|%s|", strings.Repeat("-", width[0]+2))
			for _, columns := range width[1:] {
				fmt.Fprintf(w, "%s:|", strings.Repeat("-", columns+1))
			}
			fmt.Fprintln(w)
		}
	}
}

func atMost(x row, measure, format string) string {
	if most, ok := x.limitOf(measure); ok {
		return fmt.Sprintf(format, most)
	}
	return ""
}

// decimals prints a number, and nothing for zero.
func decimals(format string, value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func inMebibytes(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/mebibyte) }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
